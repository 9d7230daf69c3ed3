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
