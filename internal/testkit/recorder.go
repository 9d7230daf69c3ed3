package testkit

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leeway-video/leeway/internal/metric"
)

// Recorder is a metric.Sink that keeps its figures in memory. The zero value is
// ready to use. It checks label values only against a Def's closed sets; a label without Values takes anything.
type Recorder struct {
	mu      sync.Mutex
	values  map[string]float64 // guarded by mu; sum of observations for histograms
	counts  map[string]int     // guarded by mu; observations of histograms
	dropped int                // guarded by mu
}

// Add implements Sink.
func (r *Recorder) Add(d *metric.Def, v float64, labels ...string) {
	r.record(d, labels, d.Kind != metric.Histogram && (d.Kind != metric.Counter || v >= 0), func(k string) { r.values[k] += v })
}

// Set implements Sink.
func (r *Recorder) Set(d *metric.Def, v float64, labels ...string) {
	r.record(d, labels, d.Kind == metric.Gauge, func(k string) { r.values[k] = v })
}

// Observe implements Sink.
func (r *Recorder) Observe(d *metric.Def, v float64, labels ...string) {
	r.record(d, labels, d.Kind == metric.Histogram, func(k string) { r.values[k] += v; r.counts[k]++ })
}

// Value returns the figure of one series: the sum of the observations for a histogram, 0 for a series never touched. It panics where the
// definition has no such series: that would be 0 whatever happens.
func (r *Recorder) Value(d *metric.Def, labels ...string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[seriesOf(d, labels)]
}

// Count returns the number of observations of one series of a histogram. It panics as Value does.
func (r *Recorder) Count(d *metric.Def, labels ...string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[seriesOf(d, labels)]
}

// Check fails the test where observations did not fit their definitions.
func (r *Recorder) Check(tb testing.TB) {
	tb.Helper()
	if n := r.Dropped(); n > 0 {
		tb.Errorf("%d observations did not fit their definitions", n)
	}
}

// Dropped returns how many observations did not fit their definition.
func (r *Recorder) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

func (r *Recorder) record(d *metric.Def, labels []string, fits bool, f func(key string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !fits || !accepts(d, labels) {
		r.dropped++
		return
	}
	if r.values == nil {
		r.values, r.counts = map[string]float64{}, map[string]int{}
	}
	f(seriesKey(d, labels))
}

func seriesOf(d *metric.Def, labels []string) string {
	if !accepts(d, labels) {
		panic(fmt.Sprintf("metric %s has no series %q", d.Name, labels))
	}
	return seriesKey(d, labels)
}

func seriesKey(d *metric.Def, labels []string) string {
	return d.Name + "\x00" + strings.Join(labels, "\x00")
}
