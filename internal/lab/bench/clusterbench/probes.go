package clusterbench

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/loadgen"
	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	probers = 8
	// mostMet is how many a newcomer asks to be introduced to.
	mostMet = 4
	// probePatience is how long introduced peers may take to answer.
	probePatience = 2 * time.Second
)

// sources are addresses of loopback, one for three sessions: the limits of one address are not what is measured.
func sources(sessions int) (all []netip.Addr) {
	for i := range (sessions + 2) / 3 {
		all = append(all, netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(1 + i&0x7f)}))
	}
	return all
}

// prober asks of every swarm whether a newcomer is introduced to those that are there.
type prober struct {
	audience *loadgen.Audience
	scale    scale
	trackers []int // that newcomers come to
	apart    bool  // each of them knows its own sessions alone
}

// found is what probes found.
type found struct {
	at      time.Time // when the last swarm was right
	wrong   int       // swarms that were not by the deadline
	example string    // of them
}

// until asks until all swarms are right, or the deadline. A swarm that was right once counts as right from then on.
func (p prober) until(ctx context.Context, deadline time.Time) (found, error) {
	left := make([]int, p.scale.swarms)
	for i := range left {
		left[i] = i
	}
	var f found
	for {
		wrong, example, err := p.round(ctx, left)
		if err != nil {
			return f, err
		}
		f.at = time.Now()
		if f.wrong, f.example = len(wrong), example; len(wrong) == 0 || f.at.After(deadline) {
			return f, nil
		}
		if left = wrong; !sleep.For(ctx, 100*time.Millisecond) {
			return f, ctx.Err()
		}
	}
}

// round asks each of the swarms once and returns those that are not right.
func (p prober) round(ctx context.Context, swarms []int) (wrong []int, example string, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	todo := make(chan int)
	for range probers {
		wg.Go(func() {
			for swarm := range todo {
				what := p.ask(ctx, swarm)
				if what == "" {
					continue
				}
				mu.Lock()
				wrong, example = append(wrong, swarm), what
				mu.Unlock()
			}
		})
	}
	for _, swarm := range swarms {
		select {
		case todo <- swarm:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	close(todo)
	wg.Wait()
	return wrong, example, err
}

// ask says what is wrong with a swarm, or nothing.
func (p prober) ask(ctx context.Context, swarm int) string {
	each, tracker := p.scale.sessions/p.scale.swarms, p.trackers[swarm%len(p.trackers)]
	there, counted := each, func(viewers int) bool { return viewers == each+1 }
	if p.apart {
		there = p.here(tracker, swarm)
		counted = func(viewers int) bool { return viewers > there } // a home forgets those elsewhere after a while
	}
	want := min(there, mostMet)
	switch got, err := p.audience.Probe(ctx, tracker, swarm*each, counted, want, probePatience); {
	case err != nil:
		return fmt.Sprintf("(swarm %d: %v)", swarm, err)
	case !counted(got.Viewers) || got.Introduced != want || got.Reached != want:
		return fmt.Sprintf("(swarm %d of %d: %d viewers, %d introduced, %d reached)", swarm, there, got.Viewers, got.Introduced, got.Reached)
	}
	return ""
}

// here counts the sessions of a swarm that are at a tracker.
func (p prober) here(tracker, swarm int) (n int) {
	each := p.scale.sessions / p.scale.swarms
	for _, number := range p.audience.On(tracker) {
		if number/each == swarm {
			n++
		}
	}
	return n
}
