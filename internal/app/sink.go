package app

import (
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/metric"
)

// laterSink is a metric.Sink for parts that are made before the registry, whose sites are not known yet. Nothing is
// counted until it is set.
type laterSink struct{ sink atomic.Pointer[metric.Sink] }

func (l *laterSink) set(s metric.Sink) { l.sink.Store(&s) }

func (l *laterSink) get() metric.Sink {
	if s := l.sink.Load(); s != nil {
		return *s
	}
	return metric.Discard
}

// Add implements metric.Sink.
func (l *laterSink) Add(d *metric.Def, v float64, labels ...string) { l.get().Add(d, v, labels...) }

// Set implements metric.Sink.
func (l *laterSink) Set(d *metric.Def, v float64, labels ...string) { l.get().Set(d, v, labels...) }

// Observe implements metric.Sink.
func (l *laterSink) Observe(d *metric.Def, v float64, labels ...string) {
	l.get().Observe(d, v, labels...)
}
