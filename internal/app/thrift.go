package app

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/self"
)

// thrift is how many processors the runtime uses: as many as the load wants. Every packet that finds all goroutines waiting
// wakes a thread of the runtime, and that, while processors are idle, others that look for work and find none. A relay is made
// of such packets: 200 Mbit/s on four processors cost half as much again as on two (docs/decisions/0028).
type thrift struct {
	procs, most int
	calm        int // looks in a row at which fewer would have done
}

const (
	thriftEvery = 100 * time.Millisecond
	thriftLeast = 2
	thriftCalm  = 50 // looks
)

// look takes how many processors were busy since the last one, and returns how many to use from now on: twice as many at once
// where three quarters are busy, one less where two fifths of the rest would have been enough for five seconds.
func (t *thrift) look(busy float64) int {
	switch {
	case busy > 0.75*float64(t.procs):
		t.procs, t.calm = min(2*t.procs, t.most), 0
	case t.procs > thriftLeast && busy < 0.4*float64(t.procs-1):
		if t.calm++; t.calm == thriftCalm {
			t.procs, t.calm = t.procs-1, 0
		}
	default:
		t.calm = 0
	}
	return t.procs
}

// run looks at every tick until ctx ends. used is the processor time of the process.
func (t *thrift) run(ctx context.Context, ticks <-chan time.Time, used func() time.Duration, use func(int)) {
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

// beThrifty begins with few processors, until stop. An operator who has set GOMAXPROCS has decided; nothing happens either where
// the system does not say what the process has used.
func beThrifty(env Env) (stop func()) {
	t := &thrift{procs: thriftLeast, most: runtime.GOMAXPROCS(0)}
	if self.Processors() == 0 || t.most <= t.procs || env.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	use := func(n int) { runtime.GOMAXPROCS(n) }
	use(t.procs)
	ctx, end := context.WithCancel(context.Background())
	ticker := time.NewTicker(thriftEvery)
	var over sync.WaitGroup
	over.Go(func() { t.run(ctx, ticker.C, self.Processors, use) })
	return func() {
		end()
		over.Wait()
		ticker.Stop()
		use(t.most)
	}
}
