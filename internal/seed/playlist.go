package seed

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Limits of what a playlist may bring.
const (
	maxPlaylist   = 4 << 20 // bytes
	maxRenditions = 64      // of a title
)

// listed is a segment as a playlist lists it.
type listed struct {
	name        segment.Name
	path        string // below fetch_base, with its query
	ranged      bool
	first, last int64
}

// rendition is one media playlist, parsed.
type rendition struct {
	segments []listed // in playback order, an initialization segment before the first that needs it
	live     bool
	target   time.Duration
}

// master is a master playlist, parsed.
type master struct {
	paths   []string // of media playlists
	bitrate int64    // highest, bits/s; 0 unknown
}

// parsePlaylist reads a playlist that was found at path. Exactly one of the results is not nil.
func parsePlaylist(s *site.Site, path string, data []byte) (*master, *rendition, error) {
	base, err := url.Parse("http://" + s.Hosts()[0] + path)
	if err != nil {
		return nil, nil, fmt.Errorf("playlist %s: %w", path, err)
	}
	m, media, err := playlist.Read(data)
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
	path = abs.RequestURI()
	if !u.IsAbs() && u.Host == "" {
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

func (r resolver) master(p *playlist.Master) *master {
	m, seen := &master{}, map[string]bool{}
	add := func(ref string) {
		if ref == "" {
			return
		}
		if _, path, ok := r.resolve(ref); ok && !seen[path] && len(m.paths) < maxRenditions {
			seen[path] = true
			m.paths = append(m.paths, path)
		}
	}
	for _, v := range p.Variants {
		add(v.URI)
		m.bitrate = max(m.bitrate, v.Bandwidth)
	}
	for _, a := range p.Alternatives {
		if a.Type == "AUDIO" || a.Type == "VIDEO" {
			add(a.URI)
		}
	}
	return m
}

func (r resolver) media(p *playlist.Media) *rendition {
	out := &rendition{live: p.Live, target: p.Target}
	add := func(o playlist.Object) {
		if l, ok := r.listed(o); ok && len(out.segments) < playlist.MaxSegments {
			out.segments = append(out.segments, l)
		}
	}
	var init *playlist.Object
	for _, s := range p.Segments {
		if s.Init != init {
			init = s.Init
			add(*init)
		}
		if !s.Gap {
			add(s.Object)
		}
	}
	return out
}

func (r resolver) listed(o playlist.Object) (listed, bool) {
	key, path, ok := r.resolve(o.URI)
	if !ok {
		return listed{}, false
	}
	if path == key {
		path = key // one string in memory, not two
	}
	if o.Length <= 0 {
		return listed{name: segment.WholeName(key), path: path}, true
	}
	l := listed{path: path, ranged: true, first: o.Offset, last: o.Offset + o.Length - 1}
	l.name = segment.RangeName(key, l.first, l.last)
	return l, l.name != ""
}
