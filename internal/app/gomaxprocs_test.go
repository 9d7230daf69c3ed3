package app

import (
	"context"
	"slices"
	"testing"
	"time"
)

// settle looks for a minute at a load, of which no more than what is used is done, and returns how many processors were used
// from look to look.
func (t *processorScaler) settle(load float64) (seen []int) {
	for range time.Minute / scaleEvery {
		seen = append(seen, t.look(min(load, float64(t.procs))))
	}
	return seen
}

// TestProcessorsFollowTheLoad: up within five looks, down a step in five seconds, and still where the load is.
func TestProcessorsFollowTheLoad(t *testing.T) {
	for _, most := range []int{3, 4, 16, 64} {
		u := &processorScaler{procs: leastProcs, most: most}
		if got := u.settle(0.2); slices.Max(got) != leastProcs {
			t.Errorf("of %d: %d for a load of 0.2", most, slices.Max(got))
		}
		full := u.settle(float64(most))
		if at := slices.Index(full, most); at < 0 || at > 5 || full[len(full)-1] != most {
			t.Errorf("of %d: all are used after %d looks, %d in the end", most, at, full[len(full)-1])
		}
		for range most {
			u.settle(0.2)
		}
		if u.procs != leastProcs {
			t.Errorf("of %d: %d are left when the load is gone", most, u.procs)
		}
	}
}

// TestProcessorsDoNotSway: with any load that does not change, the number of processors is the same after a while.
func TestProcessorsDoNotSway(t *testing.T) {
	const most = 24
	for load := 0.1; load < most; load += 0.1 {
		u := &processorScaler{procs: leastProcs, most: most}
		for range most {
			u.settle(load)
		}
		if last := u.settle(load); slices.Min(last) != slices.Max(last) {
			t.Errorf("a load of %.1f has %d to %d", load, slices.Min(last), slices.Max(last))
		} else if u.procs < most && load > 0.75*float64(u.procs) {
			t.Errorf("a load of %.1f has %d", load, u.procs)
		}
	}
}

// TestProcessorScalerRun: what is busy is what was used between two ticks, and only a change is told.
func TestProcessorScalerRun(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	ticks, used := make(chan time.Time), time.Duration(0)
	busy := []float64{0, 0.5, 2, 2, 0.5, 4, 8, 8} // the first is before the first tick
	looks := len(busy)
	var told []int
	u := &processorScaler{procs: 2, most: 8}
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.run(ctx, ticks, func() time.Duration {
			used += time.Duration(busy[0] * float64(scaleEvery))
			busy = busy[1:]
			return used
		}, func(n int) { told = append(told, n) })
	}()
	for i := range looks {
		ticks <- time.Unix(1, 0).Add(time.Duration(i) * scaleEvery)
	}
	end()
	<-done
	if want := []int{4, 8}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
