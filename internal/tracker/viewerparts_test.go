package tracker

import (
	"testing"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestPartsAreCountedBySourceWithTheirTrees: what no viewer can have played is cut.
func TestPartsAreCountedBySourceWithTheirTrees(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	swarm := v.join().Swarm
	v.send(&signal.Stats{Swarm: swarm, Interval: 10_000, Parts: map[string]int64{"origin": 2, "peer": 18, "hops": 40, "lost": 1 << 40}})
	testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defClamped) == 1 })
	for source, want := range map[string]float64{"origin": 2, "seed": 0, "peer": 18} {
		if got := w.metrics.Value(defParts, "demo", source, "peer"); got != want {
			t.Errorf("%v parts of %s", got, source)
		}
	}
	if hops, lost := w.metrics.Value(defPartHops, "demo"), w.metrics.Value(defPartLost, "demo"); hops != 40 || lost <= 0 || lost > 10_000 {
		t.Errorf("%v hops, %v parents lost", hops, lost)
	}
}
