package viewer

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mogiioin/hls-m3u8/m3u8"
)

// rendition is one quality of the film.
type rendition struct {
	name    string
	url     string
	bitrate int64 // bits per second, as it is played; 0 unknown
	audio   string
	list    []entryRef // nil until its playlist is here
	fetched bool
}

// entryRef is a segment and the initialization segment that it needs, which has no duration.
type entryRef struct {
	Reference
	init *Reference
}

// end of the rendition on the timeline.
func (r *rendition) end() time.Duration {
	if len(r.list) == 0 {
		return 0
	}
	last := r.list[len(r.list)-1]
	return last.Start + last.Duration
}

// at is the index of the segment at a moment of the timeline, len(list) behind the end.
func (r *rendition) at(t time.Duration) int {
	i, found := slices.BinarySearchFunc(r.list, t, func(e entryRef, t time.Duration) int {
		switch {
		case e.Start+e.Duration <= t:
			return -1
		case e.Start > t:
			return 1
		}
		return 0
	})
	_ = found // between two segments is where the next begins
	return i
}

const (
	longestSegment = 86_400    // seconds
	maxOffset      = 1<<53 - 1 // of a byte range
)

// errLive is why a playlist is not played.
var errLive = errors.New("the playlist has no end: live streams are not played by the headless viewer")

// mapRange finds the byte range of an initialization segment in quotes, as the standard has it, which the library
// (hls-m3u8 0.6.1) takes for part of the number.
var mapRange = regexp.MustCompile(`(?m)^(#EXT-X-MAP:[^\r\n]*BYTERANGE=)"(\d+)(@\d+)?"`)

// parsePlaylist reads a playlist found at base. Of a master it returns the renditions, the lowest first, and those of
// audio; of a media playlist its segments. A film that is shown speed times as fast has segments that are so much
// shorter, and bitrates so much higher.
func parsePlaylist(base string, data []byte, speed float64) (video, audio []*rendition, list []entryRef, err error) {
	data = mapRange.ReplaceAllFunc(data, func(line []byte) []byte {
		m := mapRange.FindSubmatch(line)
		if len(m[3]) == 0 {
			m[3] = []byte("@0")
		}
		return slices.Concat(m[1], m[2], m[3])
	})
	at, err := url.Parse(base)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("playlist %s: %w", base, err)
	}
	p, _, err := m3u8.Decode(*bytes.NewBuffer(data), false)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("playlist %s: %w", at.Path, err)
	}
	switch p := p.(type) {
	case *m3u8.MasterPlaylist:
		video, audio = masterOf(p, at, speed)
		if len(video) == 0 {
			return nil, nil, nil, fmt.Errorf("playlist %s: no renditions", at.Path)
		}
	case *m3u8.MediaPlaylist:
		if !p.Closed {
			return nil, nil, nil, fmt.Errorf("playlist %s: %w", at.Path, errLive)
		}
		if list = mediaOf(p, at, speed); len(list) == 0 {
			return nil, nil, nil, fmt.Errorf("playlist %s: no segments", at.Path)
		}
	default:
		return nil, nil, nil, fmt.Errorf("playlist %s is neither master nor media", at.Path)
	}
	return video, audio, list, nil
}

func resolve(base *url.URL, ref string) string {
	u, err := base.Parse(strings.TrimSpace(ref))
	if err != nil {
		return ref // the origin will say what it thinks of it
	}
	return u.String()
}

func masterOf(p *m3u8.MasterPlaylist, base *url.URL, speed float64) (video, audio []*rendition) {
	for _, v := range p.Variants {
		if v == nil || v.Iframe || v.URI == "" {
			continue
		}
		name := v.Name
		if name == "" {
			name = v.Resolution
		}
		video = append(video, &rendition{
			name: name, url: resolve(base, v.URI), bitrate: int64(float64(v.Bandwidth) * speed), audio: v.Audio,
		})
	}
	slices.SortStableFunc(video, func(a, b *rendition) int { return int(a.bitrate - b.bitrate) })
	for _, a := range p.GetAllAlternatives() {
		if a.Type == "AUDIO" && a.URI != "" {
			audio = append(audio, &rendition{name: a.Name, url: resolve(base, a.URI), audio: a.GroupId})
		}
	}
	return video, audio
}

func mediaOf(p *m3u8.MediaPlaylist, base *url.URL, speed float64) []entryRef {
	var list []entryRef
	var init *Reference
	var at time.Duration
	setInit := func(m *m3u8.Map) {
		if m != nil {
			r := reference(base, m.URI, m.Limit, m.Offset)
			r.Start, init = at, &r
		}
	}
	setInit(p.Map)
	previous, end := "", int64(0) // a byte range without an offset begins where the one before ended
	for _, s := range p.Segments {
		if s == nil {
			break
		}
		setInit(s.Map)
		offset := s.Offset
		if s.Limit > 0 && offset == 0 && s.URI == previous {
			offset = end
		}
		previous, end = s.URI, offset+s.Limit
		if !(s.Duration > 0 && s.Duration <= longestSegment) {
			continue // nothing to be seen of it
		}
		r := reference(base, s.URI, s.Limit, offset)
		r.Start, r.Duration = at, max(time.Microsecond, time.Duration(s.Duration/speed*float64(time.Second)).Round(time.Microsecond))
		at += r.Duration
		if !s.Gap {
			list = append(list, entryRef{r, init})
		}
	}
	return list
}

func reference(base *url.URL, ref string, limit, offset int64) Reference {
	r := Reference{URL: resolve(base, ref)}
	if limit > 0 && limit <= maxOffset && offset >= 0 && offset <= maxOffset {
		r.Ranged, r.First, r.Last = true, offset, offset+limit-1
	}
	return r
}
