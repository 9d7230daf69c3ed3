// Package playlist reads HLS playlists for seeds, packagers and headless viewers. Read leaves references as they are written,
// which Resolve makes addresses of; List names the segments of a site.
package playlist

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mogiioin/hls-m3u8/m3u8"
)

// MaxBytes bounds a playlist; its reader sees to it.
const MaxBytes = 4 << 20

// MaxSegments bounds the segments of a media playlist. A longer one is refused before it is parsed, which takes many times its length.
const MaxSegments = 65536

const (
	maxSequence = 1<<53 - 1
	maxSeconds  = 86_400 // of a duration; so the sum of those of a playlist is less than a time.Duration holds
)

// Master is a master playlist.
type Master struct {
	Variants     []Variant
	Alternatives []Alternative
	Variables    Variables // that the playlists which it names may import; nil: it defines none
}

// Variant is a rendition of the whole presentation. Playlists of I-frames alone are left out.
type Variant struct {
	URI, Name, Resolution string
	Audio                 string // group of audio renditions
	Bandwidth             int64  // bits/s
}

// Alternative is a rendition of one track.
type Alternative struct {
	Type, Group, Name string
	URI               string // empty: the track is part of the variants
}

// Media is a media playlist.
type Media struct {
	Segments []Segment
	Live     bool          // it may grow
	Target   time.Duration // longest segment, a day at most
	Sequence int64         // media sequence number of the first segment
	HoldBack time.Duration // how far behind the end a player is to stay; 0: it does not say

	LowLatency *LowLatency // nil: segments have no parts
}

// Object is a resource or a range of one.
type Object struct {
	URI            string
	Offset, Length int64 // Length 0: all of it
}

// Segment is one entry of a media playlist.
type Segment struct {
	Object
	Init     *Object   // initialization segment; segments that share it point to one value
	Duration float64   // seconds, as written; 0: it is none, as one below 0, above a day or "nan"
	Gap      bool      // it has no media
	At       time.Time // wall clock of its first sample; zero: unknown
	Parts    []Part    // that the playlist lists of it
}

// Resolve makes an address of a reference, as a player does. What is none stays as it is: the origin says what it thinks of it.
func Resolve(base *url.URL, ref string) string {
	u, err := base.Parse(strings.TrimSpace(ref))
	if err != nil {
		return ref
	}
	return u.String()
}

// Read parses a playlist that takes no variables from elsewhere. Exactly one of the three results is not nil.
func Read(data []byte) (*Master, *Media, error) { return ReadFrom(Source{}, data) }

// ReadFrom parses a playlist. Exactly one of the three results is not nil. The error is an ErrVariables where a variable has no value.
func ReadFrom(source Source, data []byte) (*Master, *Media, error) {
	if n := bytes.Count(data, []byte("#EXTINF")); n > MaxSegments {
		return nil, nil, fmt.Errorf("it lists %d segments; at most %d", n, MaxSegments)
	}
	if v, a := bytes.Count(data, []byte("#EXT-X-STREAM-INF:")), bytes.Count(data, []byte("#EXT-X-MEDIA:")); v*a > MaxSegments {
		return nil, nil, fmt.Errorf("it lists %d variants that may have %d renditions each; at most %d in all", v, a, MaxSegments)
	}
	f := newFiller(source, data)
	data, err := readable(data, f)
	if err != nil {
		return nil, nil, err
	}
	data, parts, err := takeParts(data)
	if err != nil {
		return nil, nil, err
	}
	p, _, err := m3u8.Decode(*bytes.NewBuffer(data), false)
	if err != nil {
		return nil, nil, err
	}
	switch p := p.(type) {
	case *m3u8.MasterPlaylist:
		m := masterOf(p)
		m.Variables = f.known
		return m, nil, nil
	case *m3u8.MediaPlaylist:
		media := mediaOf(p)
		if parts != nil {
			c := p.ServerControl
			if c == nil {
				c = &m3u8.ServerControl{}
			}
			if err := parts.apply(media, c.PartHoldBack, c.CanBlockReload); err != nil {
				return nil, nil, err
			}
		}
		return nil, media, nil
	}
	return nil, nil, errors.New("it is neither master nor media")
}

func masterOf(p *m3u8.MasterPlaylist) *Master {
	m := &Master{}
	for _, v := range p.Variants {
		if v != nil && !v.Iframe {
			m.Variants = append(m.Variants, Variant{URI: v.URI, Name: v.Name, Resolution: v.Resolution, Audio: v.Audio, Bandwidth: int64(v.Bandwidth)})
		}
	}
	for _, a := range p.GetAllAlternatives() {
		m.Alternatives = append(m.Alternatives, Alternative{Type: a.Type, Group: a.GroupId, Name: a.Name, URI: a.URI})
	}
	return m
}

func mediaOf(p *m3u8.MediaPlaylist) *Media {
	out := &Media{Live: !p.Closed, Target: time.Duration(min(p.TargetDuration, maxSeconds)) * time.Second, Sequence: int64(min(p.SeqNo, maxSequence))}
	if c := p.ServerControl; c != nil && c.HoldBack > 0 && c.HoldBack <= maxSeconds {
		out.HoldBack = time.Duration(c.HoldBack * float64(time.Second))
	}
	var init *Object
	begin := func(m *m3u8.Map) {
		if m == nil {
			return
		}
		if next := (Object{m.URI, m.Offset, m.Limit}); init == nil || *init != next {
			init = &next
		}
	}
	begin(p.Map)
	var at time.Time // of the next segment
	var last Object  // a byte range without an offset begins where the one before ended
	for _, s := range p.Segments {
		if s == nil {
			break
		}
		begin(s.Map)
		of := Object{s.URI, s.Offset, s.Limit}
		if of.Offset == notSaid {
			if of.Offset = 0; of.Length > 0 && of.URI == last.URI {
				of.Offset = last.Offset + last.Length
			}
		}
		last = of
		switch {
		case !s.ProgramDateTime.IsZero():
			at = s.ProgramDateTime
		case s.Discontinuity:
			at = time.Time{}
		}
		out.Segments = append(out.Segments, Segment{Object: of, Init: init, Duration: s.Duration, Gap: s.Gap, At: at})
		if !at.IsZero() {
			at = at.Add(time.Duration(s.Duration * float64(time.Second)))
		}
	}
	return out
}
