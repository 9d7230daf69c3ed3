package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// weighing has a title's seed rest by what its home and its seed know (spec/cluster.md, "What peers save").
type weighing struct {
	swarm.Balance
	s     *scene
	flows swarm.Flows
	begun int // rests
}

// credit takes in what viewers report of each other.
func (w *weighing) credit(from signal.ID, m *signal.Stats) {
	if w == nil {
		return
	}
	for id, p := range m.Peers {
		w.flows.Saved += w.s.tracker.home.Claim(from, id, swarm.Bytes{Direct: p.In}, swarm.Bytes{Direct: p.Out}).Direct
	}
}

// look is at each title message of the home.
func (w *weighing) look() {
	t, seed := w.s.tracker, w.s.seed
	t.home.Expire(time.Time{}, w.s.w.now)
	w.flows.Cost = 0
	for _, b := range seed.held {
		w.flows.Cost += int64(len(b))
	}
	changed := w.Look(w.flows, len(t.order), w.s.w.now)
	if seed.rests = w.Rests(); changed && seed.rests {
		w.begun++
	}
	w.s.w.After(10*time.Second, w.look)
}

// weighed plays an audience whose title may rest, and says how often it did.
func (a audience) weighed(t testing.TB) (tally, int) {
	w := &weighing{}
	a.trouble = func(s *scene, _ time.Duration) {
		w.s, s.tracker.weighs = s, w
		s.w.After(10*time.Second, w.look)
	}
	return a.play(t), w.begun
}

// thinLines are those of `leeway-lab bench swarm --case uplinks`.
var thinLines = []homes{{"5/1", 1, access{up: 125_000, down: 625_000, delay: 30 * time.Millisecond}}}

// TestPeersThatCostMoreAreLeftAlone: three viewers behind thin uplinks have less from each other than the seed fetches for them. They get
// the origin alone, and nothing stalls for it. Virtual time: the same figures on every machine.
func TestPeersThatCostMoreAreLeftAlone(t *testing.T) {
	testkit.InOneGoroutine(t)
	a := audience{viewers: 3, film: 8 * time.Minute, within: 10 * time.Second, lines: thinLines, seed: 1}
	always := a.play(t)
	got, rests := a.weighed(t)
	t.Logf("saved %.3f instead of %.3f, %d rests; %+v", got.saved, always.saved, rests, got)
	if rests == 0 || always.saved > -0.05 || got.saved < always.saved/2 {
		t.Errorf("saved %.3f instead of %.3f, %d rests", got.saved, always.saved, rests)
	}
	if got.stalls > always.stalls || got.bitrate < 0.98*always.bitrate || got.startup > always.startup {
		t.Errorf("%+v instead of %+v", got, always)
	}
}

// BenchmarkBalance plays audiences whose title may rest, and whose title may not.
func BenchmarkBalance(b *testing.B) {
	for _, c := range []struct {
		name string
		audience
	}{
		{"thin-4", audience{viewers: 4, film: 20 * time.Minute, within: 10 * time.Second, lines: thinLines}},
		{"thin-3", audience{viewers: 3, film: 20 * time.Minute, within: 10 * time.Second, lines: thinLines}},
		{"mixed-2", audience{viewers: 2, film: 20 * time.Minute, within: time.Minute}},
		{"mixed-3", audience{viewers: 3, film: 20 * time.Minute, within: time.Minute}},
		{"mixed-4", audience{viewers: 4, film: 10 * time.Minute, within: time.Minute}},
		{"mixed-12", audience{viewers: 12, film: 5 * time.Minute, within: 150 * time.Second}},
	} {
		b.Run(c.name, func(b *testing.B) {
			const traces = 4
			for b.Loop() {
				var always, weighed tally
				rests := 0
				for seed := range uint64(traces) {
					c.seed = seed + 1
					always.add(c.play(b), traces)
					got, n := c.weighed(b)
					weighed.add(got, traces)
					rests += n
				}
				b.ReportMetric(always.saved, "saved-always")
				b.ReportMetric(weighed.saved, "saved")
				b.ReportMetric(always.offload, "offload-always")
				b.ReportMetric(weighed.offload, "offload")
				b.ReportMetric(float64(rests), "rests")
				b.ReportMetric(float64(weighed.stalls-always.stalls), "stalls-added")
				b.ReportMetric(weighed.bitrate/always.bitrate, "bitrate-ratio")
			}
		})
	}
}
