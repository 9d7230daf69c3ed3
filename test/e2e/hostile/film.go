package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/leeway-video/leeway/internal/segment"
)

// film is what a hostile viewer says that it holds: the segments of one rendition's playlist.
type film struct {
	urls   map[segment.ID]string
	order  []segment.ID
	bodies map[segment.ID][]byte
}

// loadFilm reads a media playlist and derives the IDs of its segments (a path without a query is its own key).
func loadFilm(ctx context.Context, site, playlist string) (*film, error) {
	base, err := url.Parse(playlist)
	if err != nil {
		return nil, fmt.Errorf("hostile: playlist %s: %w", playlist, err)
	}
	text, err := get(ctx, playlist)
	if err != nil {
		return nil, err
	}
	f := &film{urls: map[segment.ID]string{}, bodies: map[segment.ID][]byte{}}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		u, err := base.Parse(line)
		if err != nil {
			return nil, fmt.Errorf("hostile: playlist %s: entry %q: %w", playlist, line, err)
		}
		id := segment.NewID(site, segment.WholeName(u.EscapedPath()))
		f.urls[id] = u.String()
		f.order = append(f.order, id)
	}
	if len(f.order) == 0 {
		return nil, fmt.Errorf("hostile: playlist %s: no segments; is it a media playlist?", playlist)
	}
	for _, id := range f.order {
		if f.bodies[id], err = get(ctx, f.urls[id]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// piece is the true bytes of a piece; the caller may change them.
func (f *film) piece(id segment.ID, i int) ([]byte, bool) {
	body, ok := f.bodies[id]
	if !ok || i >= segment.Pieces(int64(len(body))) {
		return nil, false
	}
	from := i * segment.PieceSize
	return append([]byte(nil), body[from:from+segment.PieceLen(int64(len(body)), i)]...), true
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("hostile: get %s: %w", url, err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("hostile: get %s: %w", url, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("hostile: get %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("hostile: get %s: %s", url, res.Status)
	}
	return body, nil
}
