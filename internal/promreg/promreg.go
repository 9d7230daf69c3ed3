// Package promreg turns metric definitions into Prometheus time series: a registry of its own, every series present at 0
// from the start, labels outside their closed sets counted and dropped.
package promreg

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leeway-video/leeway/internal/metric"
)

var defDropped = &metric.Def{
	Name: "leeway_metrics_dropped_total", Help: "Observations whose labels are outside their set", Kind: metric.Counter,
}

// Metrics lists what this package counts itself.
func Metrics() []*metric.Def { return []*metric.Def{defDropped} }

// Registry is a metric.Sink that Prometheus can scrape.
type Registry struct {
	prom     *prometheus.Registry
	families map[*metric.Def]map[string]any // label values joined by 0xff → Counter, Gauge or Histogram
	dropped  prometheus.Counter
}

var _ metric.Sink = (*Registry)(nil)

// New registers definitions; sites are the values of the label "site". Those that are open are for Watch.
func New(sites []string, defs ...*metric.Def) (*Registry, error) {
	r := &Registry{prom: prometheus.NewRegistry(), families: map[*metric.Def]map[string]any{}}
	if err := r.Register(sites, append([]*metric.Def{defDropped}, defs...)...); err != nil {
		return nil, err
	}
	r.dropped = r.families[defDropped][""].(prometheus.Counter)
	return r, nil
}

// Register adds definitions that are for some sites alone, before anything is counted by them.
func (r *Registry) Register(sites []string, defs ...*metric.Def) error {
	for _, d := range defs {
		if _, twice := r.families[d]; twice || d.Open() {
			continue
		}
		if err := r.add(d, sites); err != nil {
			return fmt.Errorf("promreg: %s: %w", d.Name, err)
		}
	}
	return nil
}

// Watch has a collector tell the open ones of the definitions whenever Prometheus asks. What it tells of others is dropped and counted.
func (r *Registry) Watch(c metric.Collector, defs ...*metric.Def) error {
	w := &watched{of: c, dropped: r.dropped, descriptions: map[*metric.Def]*prometheus.Desc{}}
	for _, d := range defs {
		if !d.Open() {
			continue
		}
		names := make([]string, len(d.Labels))
		for i, l := range d.Labels {
			names[i] = l.Name
		}
		w.descriptions[d] = prometheus.NewDesc(d.Name, d.Help, names, nil)
	}
	if err := r.prom.Register(w); err != nil {
		return fmt.Errorf("promreg: %w", err)
	}
	return nil
}

// watched is a metric.Collector as Prometheus' library knows it.
type watched struct {
	of           metric.Collector
	descriptions map[*metric.Def]*prometheus.Desc
	dropped      prometheus.Counter
}

// Describe implements prometheus.Collector.
func (w *watched) Describe(to chan<- *prometheus.Desc) {
	for _, d := range w.descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (w *watched) Collect(to chan<- prometheus.Metric) {
	w.of.Collect(func(d *metric.Def, v float64, labels ...string) {
		kind := prometheus.CounterValue
		if d.Kind == metric.Gauge {
			kind = prometheus.GaugeValue
		}
		if described := w.descriptions[d]; described != nil {
			if m, err := prometheus.NewConstMetric(described, kind, v, labels...); err == nil {
				to <- m
				return
			}
		}
		w.dropped.Inc()
	})
}

// Process adds what an operator asks of any process: the Go runtime's figures (go_*) and, where the system tells them, those
// of the process (process_*: CPU time, memory, open files). Call it once.
func (r *Registry) Process() error {
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := r.prom.Register(c); err != nil {
			return fmt.Errorf("promreg: figures of the process: %w (are they there already?)", err)
		}
	}
	return nil
}

func (r *Registry) add(d *metric.Def, sites []string) error {
	names := make([]string, len(d.Labels))
	combinations := [][]string{nil}
	for i, l := range d.Labels {
		names[i] = l.Name
		values := l.Values
		if l.Name == "site" {
			values = sites
		}
		var next [][]string
		for _, c := range combinations {
			for _, v := range values {
				next = append(next, append(append([]string(nil), c...), v))
			}
		}
		combinations = next
	}
	with, err := r.vector(d, names)
	if err != nil {
		return err
	}
	series := make(map[string]any, len(combinations))
	for _, c := range combinations {
		series[string(appendKey(nil, c))] = with(c)
	}
	r.families[d] = series
	return nil
}

// vector registers a family and returns how to make its series.
func (r *Registry) vector(d *metric.Def, names []string) (func([]string) any, error) {
	switch d.Kind {
	case metric.Counter:
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, names)
		return func(l []string) any { return v.WithLabelValues(l...) }, r.prom.Register(v)
	case metric.Gauge:
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, names)
		return func(l []string) any { return v.WithLabelValues(l...) }, r.prom.Register(v)
	case metric.Histogram:
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, names)
		return func(l []string) any { return v.WithLabelValues(l...) }, r.prom.Register(v)
	}
	return nil, errors.New("kind is unknown")
}

// appendKey appends the key of the series with these values of labels.
func appendKey(to []byte, labels []string) []byte {
	for i, l := range labels {
		if i > 0 {
			to = append(to, 0xff)
		}
		to = append(to, l...)
	}
	return to
}

// series is what a family has for these values of its labels; nil: nothing. Nothing is allocated for a key of usual length.
func (r *Registry) series(d *metric.Def, labels []string) any {
	var room [128]byte
	return r.families[d][string(appendKey(room[:0], labels))]
}

// Add implements metric.Sink.
func (r *Registry) Add(d *metric.Def, v float64, labels ...string) {
	switch s := r.series(d, labels).(type) {
	case prometheus.Gauge: // a gauge also has Add, and is to be asked first
		s.Add(v)
	case prometheus.Counter:
		if v < 0 {
			r.dropped.Inc()
			return
		}
		s.Add(v)
	default:
		r.dropped.Inc()
	}
}

// Set implements metric.Sink.
func (r *Registry) Set(d *metric.Def, v float64, labels ...string) {
	if s, ok := r.series(d, labels).(prometheus.Gauge); ok {
		s.Set(v)
		return
	}
	r.dropped.Inc()
}

// Observe implements metric.Sink.
func (r *Registry) Observe(d *metric.Def, v float64, labels ...string) {
	if s, ok := r.series(d, labels).(prometheus.Histogram); ok {
		s.Observe(v)
		return
	}
	r.dropped.Inc()
}

// Handler serves the text format.
func (r *Registry) Handler() http.Handler { return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{}) }
