package metric

import (
	"strings"
	"testing"
)

func TestLintNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		def  Def
		want string // part of the error, "" for none
	}{
		{Def{Name: "leeway_x_things_total", Help: "things", Kind: Counter, Labels: []Label{Site(), {"source", Sources}}}, ""},
		{Def{Name: "leeway_x_open", Help: "open things", Kind: Gauge}, ""},
		{Def{Name: "leeway_x_wait_seconds", Help: "wait", Kind: Histogram, Buckets: []float64{1, 2}}, ""},
		{Def{Name: "x_things_total", Help: "things", Kind: Counter}, "name is not"},
		{Def{Name: "leeway_Things_total", Help: "things", Kind: Counter}, "name is not"},
		{Def{Name: "leeway_x_things_total", Help: "things", Kind: Gauge}, "_total"},
		{Def{Name: "leeway_x_things", Help: "things", Kind: Counter}, "_total"},
		{Def{Name: "leeway_x_wait_ms", Help: "wait", Kind: Gauge}, "seconds"},
		{Def{Name: "leeway_x_wait_seconds", Help: "wait", Kind: Histogram}, "buckets"},
		{Def{Name: "leeway_x_wait", Help: "wait", Kind: Histogram, Buckets: []float64{1}}, "base unit"},
		{Def{Name: "leeway_x_open", Help: "open", Kind: Gauge, Labels: []Label{{"peer", []string{"a"}}}}, "forbidden"},
		{Def{Name: "leeway_x_open", Help: "open", Kind: Gauge, Labels: []Label{{"role", nil}}}, "closed set"},
		{Def{Name: "leeway_x_open", Help: "open", Kind: Gauge, Labels: []Label{{"site", []string{"a"}}}}, "closed set"},
		{Def{Name: "leeway_x_open", Help: "open", Kind: Gauge, Labels: []Label{{"role", []string{"A b"}}}}, "lower case"},
		{Def{Name: "leeway_x_open", Kind: Gauge}, "help"},
	} {
		err := c.def.Lint()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s (%s): %v, want %q", c.def.Name, c.def.Kind, err, c.want)
		}
	}
}

func TestRecorderDropsWhatDoesNotFit(t *testing.T) {
	count := &Def{Name: "leeway_x_things_total", Kind: Counter, Labels: []Label{{"source", Sources}}}
	wait := &Def{Name: "leeway_x_wait_seconds", Kind: Histogram, Buckets: []float64{1}}
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
	Discard.Add(count, 1, "seed")
}
