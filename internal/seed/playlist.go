package seed

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mogiioin/hls-m3u8/m3u8"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
)

// Limits of what a playlist may bring.
const (
	maxPlaylist   = 4 << 20 // bytes
	maxRenditions = 64      // of a title
	maxListed     = 65536   // segments of a rendition
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

// mapRange finds the byte range of an initialization segment. The standard has it in quotes, which the library
// (hls-m3u8 0.6.1) takes for part of the number; it would drop the whole line without an error.
var mapRange = regexp.MustCompile(`(?m)^(#EXT-X-MAP:[^\r\n]*BYTERANGE=)"(\d+)(@\d+)?"`)

// parsePlaylist reads a playlist that was found at path. Exactly one of the results is not nil.
func parsePlaylist(s *site.Site, path string, data []byte) (*master, *rendition, error) {
	data = mapRange.ReplaceAllFunc(data, func(line []byte) []byte {
		m := mapRange.FindSubmatch(line)
		offset := m[3]
		if len(offset) == 0 {
			offset = []byte("@0")
		}
		return slices.Concat(m[1], m[2], offset)
	})
	if n := bytes.Count(data, []byte("#EXTINF")); n > maxListed { // before they are made, each of which takes many times its length
		return nil, nil, fmt.Errorf("playlist %s lists %d segments; at most %d", path, n, maxListed)
	}
	p, _, err := m3u8.Decode(*bytes.NewBuffer(data), false)
	if err != nil {
		return nil, nil, fmt.Errorf("playlist %s: %w", path, err)
	}
	base, err := url.Parse("http://" + s.Hosts()[0] + path)
	if err != nil {
		return nil, nil, fmt.Errorf("playlist %s: %w", path, err)
	}
	r := resolver{s, base}
	switch p := p.(type) {
	case *m3u8.MasterPlaylist:
		m := r.master(p)
		return m, nil, nil
	case *m3u8.MediaPlaylist:
		return nil, r.media(p), nil
	}
	return nil, nil, fmt.Errorf("playlist %s is neither master nor media", path)
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

func (r resolver) master(p *m3u8.MasterPlaylist) *master {
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
		if v == nil || v.Iframe {
			continue
		}
		add(v.URI)
		m.bitrate = max(m.bitrate, int64(v.Bandwidth))
	}
	for _, a := range p.GetAllAlternatives() {
		if a.Type == "AUDIO" || a.Type == "VIDEO" {
			add(a.URI)
		}
	}
	return m
}

func (r resolver) media(p *m3u8.MediaPlaylist) *rendition {
	out := &rendition{live: !p.Closed, target: time.Duration(p.TargetDuration) * time.Second}
	var init *m3u8.Map
	addInit := func(m *m3u8.Map) {
		if m == nil || m.Equal(init) {
			return
		}
		init = m
		if l, ok := r.listed(m.URI, m.Limit, m.Offset); ok {
			out.segments = append(out.segments, l)
		}
	}
	addInit(p.Map)
	previous, end := "", int64(0) // a byte range without an offset begins where the one before ended
	for _, s := range p.Segments {
		if s == nil || len(out.segments) >= maxListed {
			break
		}
		if s.Map != nil {
			addInit(s.Map)
		}
		offset := s.Offset
		if s.Limit > 0 && offset == 0 && s.URI == previous {
			offset = end
		}
		previous, end = s.URI, offset+s.Limit
		if l, ok := r.listed(s.URI, s.Limit, offset); ok && !s.Gap {
			out.segments = append(out.segments, l)
		}
	}
	return out
}

func (r resolver) listed(ref string, limit, offset int64) (listed, bool) {
	key, path, ok := r.resolve(ref)
	if !ok {
		return listed{}, false
	}
	if path == key {
		path = key // one string in memory, not two
	}
	if limit <= 0 {
		return listed{name: segment.WholeName(key), path: path}, true
	}
	name := segment.RangeName(key, offset, offset+limit-1)
	return listed{name: name, path: path, ranged: true, first: offset, last: offset + limit - 1}, name != ""
}
