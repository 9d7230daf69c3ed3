package app

import (
	"context"
	"runtime"
	"time"

	"github.com/leeway-video/leeway/internal/procstat"
)

// processorScaler sets GOMAXPROCS by the load. A packet that arrives while all goroutines wait wakes a thread of the runtime, which
// wakes further threads that find no work while processors are idle. Most packets of a relay do so (docs/decisions/0028).
type processorScaler struct {
	procs, most int
	calm        int // looks in a row at which fewer would have done
}

const (
	scaleEvery = 100 * time.Millisecond
	leastProcs = 2
	calmLooks  = 50 // looks
)

// look takes the number of processors that were busy since the last call, and returns how many to use from now on: twice as many
// if three quarters are busy, and one less if for five seconds two fifths of the rest would have been enough.
func (t *processorScaler) look(busy float64) int {
	switch {
	case busy > 0.75*float64(t.procs):
		t.procs, t.calm = min(2*t.procs, t.most), 0
	case t.procs > leastProcs && busy < 0.4*float64(t.procs-1):
		if t.calm++; t.calm == calmLooks {
			t.procs, t.calm = t.procs-1, 0
		}
	default:
		t.calm = 0
	}
	return t.procs
}

// run looks at every tick until ctx ends. used is the processor time of the process.
func (t *processorScaler) run(ctx context.Context, ticks <-chan time.Time, used func() time.Duration, use func(int)) {
	var at time.Time
	var before time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks:
			spent, was := used(), t.procs
			if long := now.Sub(at); !at.IsZero() && long > 0 && t.look(float64(spent-before)/float64(long)) != was {
				use(t.procs)
			}
			at, before = now, spent
		}
	}
}

// scaleProcessors begins with few processors and follows the load until stop. It does nothing if the operator has set GOMAXPROCS,
// or if the system does not report the processor time.
func scaleProcessors(env Env) (stop func()) {
	t := &processorScaler{procs: leastProcs, most: runtime.GOMAXPROCS(0)}
	if procstat.CPU() == 0 || t.most <= t.procs || env.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	use := func(n int) { runtime.GOMAXPROCS(n) }
	use(t.procs)
	ticker := time.NewTicker(scaleEvery)
	end := runUntilStopped(func(ctx context.Context) { t.run(ctx, ticker.C, procstat.CPU, use) })
	return func() {
		end()
		ticker.Stop()
		use(t.most)
	}
}
