package testkit

import (
	"testing"

	"github.com/leeway-video/leeway/internal/metric"
)

func TestRecorderDropsWhatDoesNotFit(t *testing.T) {
	count := &metric.Def{Name: "leeway_x_things_total", Kind: metric.Counter, Labels: []metric.Label{{Name: "source", Values: metric.Sources}}}
	wait := &metric.Def{Name: "leeway_x_wait_seconds", Kind: metric.Histogram, Buckets: []float64{1}}
	var r Recorder
	r.Add(count, 2, "seed")
	r.Add(count, 3, "seed")
	r.Observe(wait, 0.5)
	r.Observe(wait, 0.25)
	if v := r.Value(count, "seed"); v != 5 {
		t.Errorf("value %v, want 5", v)
	}
	if v, n := r.Value(wait), r.Count(wait); v != 0.75 || n != 2 {
		t.Errorf("histogram %v of %d, want 0.75 of 2", v, n)
	}
	r.Add(count, -1, "seed")
	r.Add(count, 1, "moon")
	r.Add(count, 1)
	r.Set(count, 1, "seed")
	r.Add(wait, 1)
	if r.Dropped() != 5 || r.Value(count, "seed") != 5 {
		t.Errorf("dropped %d, value %v; want 5 and 5", r.Dropped(), r.Value(count, "seed"))
	}
	metric.Discard.Add(count, 1, "seed")
}

// TestAFigureThatCannotBeIsNotZero: a test that asks for it compares nothing.
func TestAFigureThatCannotBeIsNotZero(t *testing.T) {
	count := &metric.Def{Name: "leeway_x_things_total", Kind: metric.Counter, Labels: []metric.Label{{Name: "source", Values: metric.Sources}}}
	for _, labels := range [][]string{nil, {"moon"}, {"seed", "peer"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q has a figure", labels)
				}
			}()
			(&Recorder{}).Value(count, labels...)
		}()
	}
}
