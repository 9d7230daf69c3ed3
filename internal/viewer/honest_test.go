package viewer

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// asked is what came of a world in which many viewers ask one.
type asked struct {
	stalled int   // links that ended so
	links   int   // that should not have
	peers   int64 // bytes
	all     int64
	wasted  int64
}

// askOne has viewers come at such intervals and ask one whose uplink is thin.
func askOne(t testing.TB, askers int, up float64, every time.Duration) asked {
	s := newScene(t, func(w *world) *film { return newFilm(w, 50, 2*time.Second, 250_000) })
	s.viewer(access{up: up, down: 2.5e6}, nil)
	s.w.run(20 * time.Second)
	for range askers {
		s.viewer(access{up: 125_000, down: 2.5e6}, nil)
		s.w.run(every)
	}
	s.w.run(150 * time.Second)
	s.check()
	sum := asked{links: askers, peers: s.bytes("peer")}
	sum.all = sum.peers + s.bytes("seed") + s.bytes("origin")
	for i, a := range s.viewers {
		now := a.now()
		sum.wasted += now.Stats.WastedBytes
		sum.stalled += now.LinksClosed[peer.CloseStalled]
		if now.Banned > 0 {
			t.Errorf("viewer %d: %d banned", i, now.Banned)
		}
	}
	return sum
}

// TestNoHonestPeerIsBlamedForABusyLine has many ask one whose uplink is thin: it does not come to what some of them ask for before they
// take it back. No link ends for that.
func TestNoHonestPeerIsBlamedForABusyLine(t *testing.T) {
	testkit.InOneGoroutine(t)
	ended := 0
	for _, c := range []struct {
		askers int
		up     float64
	}{{7, 125_000}, {7, 62_500}, {3, 25_000}} {
		t.Run(fmt.Sprintf("%d ask one of %.0f kB/s", c.askers, c.up/1000), func(t *testing.T) {
			got := askOne(t, c.askers, c.up, 500*time.Millisecond)
			ended += got.stalled
			if got.peers < got.all/4 {
				t.Errorf("%d of %d bytes are of viewers: they hardly ask each other", got.peers, got.all)
			}
		})
	}
	if ended > 0 {
		t.Errorf("%d links ended as stalled", ended)
	}
}

// BenchmarkBusyElsewhere plays more such worlds, with other uplinks, numbers of viewers and intervals (docs/experiments/peer-protocol.md).
func BenchmarkBusyElsewhere(b *testing.B) {
	for b.Loop() {
		var sum asked
		for askers := 2; askers <= 7; askers++ {
			for _, up := range []float64{15_000, 20_000, 25_000, 30_000, 45_000, 60_000, 90_000, 125_000} {
				for _, every := range []time.Duration{300 * time.Millisecond, 1300 * time.Millisecond} {
					got := askOne(b, askers, up, every)
					sum.stalled += got.stalled
					sum.links += got.links
					sum.peers += got.peers
					sum.all += got.all
					sum.wasted += got.wasted
				}
			}
		}
		b.ReportMetric(float64(sum.stalled), "stalled")
		b.ReportMetric(float64(sum.links), "links")
		b.ReportMetric(float64(sum.peers)/float64(sum.all), "offload")
		b.ReportMetric(float64(sum.wasted)/1e6, "wasted-MB")
	}
}
