package playlist

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// MaxRenditions bounds the media playlists of a master playlist. Further ones are left out.
const MaxRenditions = 64

// Entry is a segment as a playlist lists it, under the name by which peers know it.
type Entry struct {
	Name        segment.Name
	Path        string // on the site, with its query; that of the key where the reference names a host
	Ranged      bool
	First, Last int64 // of a range, both inclusive
	// Made is when the last sample of a live segment was there by the stream's own clock, ms since 1970; 0: not live, or unknown.
	Made int64
}

// Listed is what a media playlist lists of its site's paths.
type Listed struct {
	Segments []Entry // in playback order, an initialization segment before the first that needs it
	Live     bool
	Target   time.Duration // longest segment
	Duration time.Duration // of all segments
	Parts    *Parts        // of a low-latency playlist; nil: segments have no parts
	Chunked  *Chunked      // of a representation whose segments can be asked for while they are made; nil: they cannot
}

// Renditions are the media playlists of a master playlist, or the representations of an MPD.
type Renditions struct {
	Paths           []string
	Representations []*Representation
	Refused         error // representations of which nothing is listed
	Bitrate         int64 // highest, bits/s; 0 unknown
	Variables       Variables
}

// List reads a playlist or an MPD that was found at a path of a site, and names what it lists; a live MPD as of now. A media playlist
// imports variables of the master playlist that names it. Exactly one of the three results is not nil.
func List(s *site.Site, path string, imports Variables, data []byte, now time.Time) (*Renditions, *Listed, error) {
	base, err := url.Parse("http://" + s.Hosts()[0] + path)
	if err != nil {
		return nil, nil, fmt.Errorf("playlist %s: %w", path, err)
	}
	if mpd.Is(data) {
		m, err := resolver{s, base}.mpd(path, data, now)
		return m, nil, err
	}
	m, media, err := ReadFrom(Source{URL: base, Imports: imports, site: s}, data)
	if err != nil {
		return nil, nil, fmt.Errorf("playlist %s: %w", path, err)
	}
	r := resolver{s, base}
	if m != nil {
		return r.master(m), nil, nil
	}
	return nil, r.media(media), nil
}

// resolver makes keys and paths of the references in one playlist.
type resolver struct {
	site *site.Site
	base *url.URL
}

// resolve returns the key of a reference and its path below fetch_base; ok is false for what is not the site's.
func (r resolver) resolve(ref string) (key, path string, ok bool) {
	u, err := url.Parse(strings.TrimSpace(ref))
	if err != nil {
		return "", "", false
	}
	abs := r.base.ResolveReference(u)
	abs.Fragment = ""
	return r.named(abs, u.IsAbs() || u.Host != "")
}

// named is the key and the path of what a reference was resolved to. absolute: it named a host.
func (r resolver) named(abs *url.URL, absolute bool) (key, path string, ok bool) {
	path = abs.RequestURI()
	var err error
	if !absolute {
		key, err = r.site.KeyOfPath(path)
		return key, path, err == nil
	}
	// An absolute URL is one as viewers see it, perhaps with tokens in its path that origins behind seeds do not have.
	if key, err = r.site.Key(abs.String()); err != nil {
		return "", "", false
	}
	path, _, _ = strings.Cut(key, "?")
	if abs.RawQuery != "" {
		path += "?" + abs.RawQuery
	}
	return key, path, true
}

func (r resolver) master(p *Master) *Renditions {
	m, seen := &Renditions{Variables: p.Variables}, map[string]bool{}
	add := func(ref string) {
		if ref == "" {
			return
		}
		if _, path, ok := r.resolve(ref); ok && !seen[path] && len(m.Paths) < MaxRenditions {
			seen[path] = true
			m.Paths = append(m.Paths, path)
		}
	}
	for _, v := range p.Variants {
		add(v.URI)
		m.Bitrate = max(m.Bitrate, v.Bandwidth)
	}
	for _, a := range p.Alternatives {
		if a.Type == "AUDIO" || a.Type == "VIDEO" {
			add(a.URI)
		}
	}
	return m
}

func (r resolver) media(p *Media) *Listed {
	out := &Listed{Live: p.Live, Target: p.Target, Parts: r.parts(p)}
	add := func(o Object, made int64) {
		if l, ok := r.entry(o); ok && len(out.Segments) < MaxSegments {
			l.Made = made
			out.Segments = append(out.Segments, l)
		}
	}
	var init *Object
	var seconds float64
	for _, s := range p.Segments {
		seconds += s.Duration
		if s.Init != init {
			init = s.Init
			add(*init, 0)
		}
		if !s.Gap {
			add(s.Object, s.made(p.Live))
		}
	}
	out.Duration = time.Duration(seconds * float64(time.Second))
	return out
}

// made is when the last sample of a live segment was there, ms since 1970; 0: unknown.
func (s *Segment) made(live bool) int64 {
	if !live || s.At.IsZero() {
		return 0
	}
	return s.At.Add(time.Duration(s.Duration * float64(time.Second))).UnixMilli()
}

func (r resolver) entry(o Object) (Entry, bool) {
	key, path, ok := r.resolve(o.URI)
	if !ok {
		return Entry{}, false
	}
	return entryOf(key, path, o.Length > 0, o.Offset, o.Offset+o.Length-1)
}

func entryOf(key, path string, ranged bool, first, last int64) (Entry, bool) {
	if path == key {
		path = key // one string in memory, not two
	}
	if !ranged {
		return Entry{Name: segment.WholeName(key), Path: path}, true
	}
	l := Entry{Path: path, Ranged: true, First: first, Last: last}
	l.Name = segment.RangeName(key, first, last)
	return l, l.Name != ""
}
