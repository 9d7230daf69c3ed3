package seed

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// TestLiveTitlesStayBounded follows a channel for hours: objects above 8 MiB, and playlists under a new name each time, as
// origins do that hand out sessions.
func TestLiveTitlesStayBounded(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	c := newListings("demo")
	const window, step = 6, 10 * time.Second
	var oldest *ref
	for i := range 1000 {
		r := &playlist.Listed{Live: true, Target: step}
		for n := i; n < i+window; n++ {
			path := fmt.Sprintf("/live/%d.ts", n)
			r.Segments = append(r.Segments, playlist.Entry{Name: segment.WholeName(path), Path: path})
		}
		c.take(fmt.Sprintf("/live/index.m3u8?session=%d", i), r, now)
		fresh := c.lookup(segment.NewID("demo", r.Segments[window-1].Name))
		c.divide(fresh, 20<<20)
		if i == 0 {
			oldest = fresh
		}
		if parts := c.following(&ref{id: segment.NewID("demo", "/live/9.ts#0-4194303"), playlist: "virtual /live/9.ts"}, 9); i > 10 && i < 16 && len(parts) != 4 {
			t.Fatalf("%d parts follow the first of five", len(parts))
		}
		c.forget(now)
		now = now.Add(step)
	}
	most := window + int(listingKept/step) + 2
	if len(c.refs) > 6*most || len(c.order) > 2*most {
		t.Errorf("%d segments and %d listings are kept of a window of %d", len(c.refs), len(c.order), window)
	}
	if c.lookup(oldest.id) != nil || c.lookup(segment.NewID("demo", "/live/5.ts#0-4194303")) != nil {
		t.Error("what left the playlists long ago is still listed")
	}
	if !c.live {
		t.Error("not live")
	}
	weighed := int64(0)
	for _, r := range c.refs {
		weighed += r.weight()
	}
	for path := range c.order {
		weighed += listingBytes + int64(len(path))
	}
	if c.bytes != weighed {
		t.Errorf("the listings say that they take %d bytes, their parts %d", c.bytes, weighed)
	}
	ended := &playlist.Listed{Segments: []playlist.Entry{{Name: segment.WholeName("/vod/1.ts"), Path: "/vod/1.ts"}}}
	c.take("/vod/index.m3u8", ended, now)
	now = now.Add(24 * time.Hour)
	c.forget(now)
	if len(c.refs) != 1 || len(c.order) != 1 || c.live {
		t.Errorf("%d segments and %d listings: a playlist with an end is loaded once, and stays", len(c.refs), len(c.order))
	}
}
