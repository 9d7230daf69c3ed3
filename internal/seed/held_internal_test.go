package seed

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// TestWhenViewersHoldLiveSegmentsIsCounted: of whole segments near the edge, that were published while the viewer was linked.
func TestWhenViewersHoldLiveSegmentsIsCounted(t *testing.T) {
	const segments, duration = 10, 2 * time.Second
	for name, c := range map[string]struct {
		made   time.Duration // ago, the newest
		linked time.Duration // ago
		n      int           // of the playlist's segments, that the viewer says it holds
		state  peer.State
		vod    bool
		want   float64 // s; below 0: not counted
	}{
		"the newest":                 {made: time.Second, linked: time.Minute, n: 9, state: peer.HoldsComplete, want: 1},
		"the sixth":                  {made: time.Second, linked: time.Minute, n: 4, state: peer.HoldsComplete, want: 11},
		"further back":               {made: time.Second, linked: time.Minute, n: 3, state: peer.HoldsComplete, want: -1},
		"in part":                    {made: time.Second, linked: time.Minute, n: 9, state: peer.HoldsPartial, want: -1},
		"withdrawn":                  {made: time.Second, linked: time.Minute, n: 9, state: peer.HoldsNone, want: -1},
		"published before the link":  {made: time.Second, linked: time.Second / 2, n: 9, state: peer.HoldsComplete, want: -1},
		"a clock that is ahead":      {made: -time.Second / 2, linked: time.Minute, n: 9, state: peer.HoldsComplete, want: 0},
		"a clock that is far ahead":  {made: -time.Minute, linked: time.Minute, n: 9, state: peer.HoldsComplete, want: -1},
		"a stream of another time":   {made: time.Hour, linked: 2 * time.Hour, n: 9, state: peer.HoldsComplete, want: -1},
		"a film, which has no clock": {made: time.Second, linked: time.Minute, n: 9, state: peer.HoldsComplete, vod: true, want: -1},
		"what no playlist lists":     {made: time.Second, linked: time.Minute, n: 99, state: peer.HoldsComplete, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			d, rec := newDesk(t, 1<<20), &testkit.Recorder{}
			d.supply.sink = rec
			list := &playlist.Listed{Live: !c.vod}
			for n := range segments {
				path := fmt.Sprintf("/film/%d.ts", n)
				e := playlist.Entry{Name: segment.WholeName(path), Path: path}
				if !c.vod {
					e.Made = d.now.Add(-c.made - time.Duration(segments-1-n)*duration).UnixMilli()
				}
				list.Segments = append(list.Segments, e)
			}
			d.title.index().take("/film/index.m3u8", list, *d.now)
			d.opened.Store(d.now.Add(-c.linked).UnixMilli())
			id := segment.NewID("demo", segment.WholeName(fmt.Sprintf("/film/%d.ts", c.n)))
			if err := d.Message(peer.Have{Entries: []peer.HaveEntry{{Segment: id, State: c.state}}}); err != nil {
				t.Fatal(err)
			}
			switch n, took := rec.Count(mHeld, "demo"), rec.Value(mHeld, "demo"); {
			case c.want < 0 && n != 0:
				t.Errorf("counted, as %.3f s", took)
			case c.want >= 0 && (n != 1 || took != c.want):
				t.Errorf("%d times, %.3f s", n, took)
			}
		})
	}
}
