package loadgen

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/webtorrent"
)

// TestEveryBurdenIsCounted: each kind is refused under a name of its own, and the others go on.
func TestEveryBurdenIsCounted(t *testing.T) {
	for kind, want := range map[Kind]struct {
		family string
		label  string
	}{
		HalfOpen:  {"leeway_tracker_rejected_total", "half-open"},
		Malformed: {"leeway_tracker_webtorrent_refused_total", "bad-message"},
		Oversized: {"leeway_tracker_rejected_total", "oversized"},
		Flood:     {"leeway_tracker_webtorrent_refused_total", "rate-limited"},
		Deaf:      {"leeway_tracker_rejected_total", "slow"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			var metrics testkit.Recorder
			addr, _ := serve(t, false, func(c *tracker.Config) {
				c.Metrics, c.MessagesPerSecond, c.BeatEvery = &metrics, 100, 10*time.Millisecond
				if kind == Deaf {
					c.MessagesPerSecond = 1 << 20
				}
			})
			honest, err := Open(t.Context(), Config{Protocol: WebTorrent, Address: addr, Path: "/announce", Sources: sources(1), Sessions: 4, Swarms: 1, Offers: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer honest.Close()
			a, err := Assail(Config{Protocol: WebTorrent, Address: addr, Path: "/announce", Sources: sources(4)[1:], Sessions: 4}, kind, 50_000)
			if err != nil {
				t.Fatal(err)
			}
			var counted *metric.Def
			for _, d := range slices.Concat(tracker.Metrics(), webtorrent.Metrics()) {
				if d.Name == want.family {
					counted = d
				}
			}
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for end := time.After(30 * time.Second); metrics.Value(counted, want.label) == 0; {
				select {
				case <-tick.C:
				case <-end:
					t.Fatal("never counted")
				}
			}
			r, err := honest.Pace(t.Context(), 50, time.Second, nil)
			if err != nil || r.Acks == 0 {
				t.Errorf("honest sessions: %+v, %v", r, err)
			}
			if sent, _ := a.End(); sent == 0 {
				t.Error("nothing was sent")
			}
		})
	}
	if _, err := Assail(Config{}, "yelling", 1); err == nil {
		t.Error("a kind that there is not was taken")
	}
}
