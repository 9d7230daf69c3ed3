package testkit

import (
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/metric"
)

func TestLintNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		def  metric.Def
		want string // part of the error, "" for none
	}{
		{metric.Def{Name: "leeway_x_things_total", Help: "things", Kind: metric.Counter, Labels: []metric.Label{metric.Site(), {Name: "source", Values: metric.Sources}}}, ""},
		{metric.Def{Name: "leeway_x_open", Help: "open things", Kind: metric.Gauge}, ""},
		{metric.Def{Name: "leeway_x_wait_seconds", Help: "wait", Kind: metric.Histogram, Buckets: []float64{1, 2}}, ""},
		{metric.Def{Name: "x_things_total", Help: "things", Kind: metric.Counter}, "name is not"},
		{metric.Def{Name: "leeway_Things_total", Help: "things", Kind: metric.Counter}, "name is not"},
		{metric.Def{Name: "leeway_x_things_total", Help: "things", Kind: metric.Gauge}, "_total"},
		{metric.Def{Name: "leeway_x_things", Help: "things", Kind: metric.Counter}, "_total"},
		{metric.Def{Name: "leeway_x_wait_ms", Help: "wait", Kind: metric.Gauge}, "seconds"},
		{metric.Def{Name: "leeway_x_wait_seconds", Help: "wait", Kind: metric.Histogram}, "buckets"},
		{metric.Def{Name: "leeway_x_wait", Help: "wait", Kind: metric.Histogram, Buckets: []float64{1}}, "base unit"},
		{metric.Def{Name: "leeway_x_open", Help: "open", Kind: metric.Gauge, Labels: []metric.Label{{Name: "peer", Values: []string{"a"}}}}, "forbidden"},
		{metric.Def{Name: "leeway_x_open", Help: "open", Kind: metric.Gauge, Labels: []metric.Label{{Name: "role", Values: nil}}}, "closed set"},
		{metric.Def{Name: "leeway_x_open", Help: "open", Kind: metric.Gauge, Labels: []metric.Label{{Name: "site", Values: []string{"a"}}}}, "closed set"},
		{metric.Def{Name: "leeway_x_open", Help: "open", Kind: metric.Gauge, Labels: []metric.Label{{Name: "role", Values: []string{"A b"}}}}, "lower case"},
		{metric.Def{Name: "leeway_x_open", Kind: metric.Gauge}, "help"},
	} {
		err := LintMetric(&c.def)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s (%s): %v, want %q", c.def.Name, c.def.Kind, err, c.want)
		}
	}
}
