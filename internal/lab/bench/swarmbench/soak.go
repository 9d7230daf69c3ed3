package swarmbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

// soakVariable says how long a soak takes, in minutes.
const soakVariable = "LEEWAY_SOAK_MINUTES"

const (
	defaultSoak  = 30 * time.Minute
	shortestSoak = 3 * time.Minute
	// soakSpeed shows the film faster, so that more of everything happens in a minute.
	soakSpeed = 3
	soakSlots = 6 // viewers at a time, beside the one that stays
	// A soak is a row of crowds with a rest after each. Only rests are compared: nothing goes on in them that could explain
	// a difference.
	crowdsAtMost, crowdAtLeast = 12, 25 * time.Second
	// missedAfter is what others need to miss a viewer that was killed: at the end of a crowd none is.
	missedAfter = 20 * time.Second
	// restWait bounds how long the last of a crowd may take to be forgotten: a viewer that was killed has to be missed first.
	restWait = 45 * time.Second
)

// soakSettings make what is kept small enough to be full after the first crowd.
var soakSettings = []string{
	fmt.Sprintf("LEEWAY_SEED_MEMORY_BYTES=%d", soakMemory), fmt.Sprintf("LEEWAY_SEED_DISK_BYTES=%d", soakDisk), "LEEWAY_TRACKER_TICKET_LIFE=2s",
}

const soakMemory, soakDisk = 16 << 20, 64 << 20

// soakCase is the case: what is left of viewers when they are gone.
func soakCase() bench.Case {
	return extra(bench.Case{
		Name: "soak",
		About: fmt.Sprintf("Viewers come, seek, leave and die for %v (or %s); what tracker, seed and a viewer that stays keep of them.",
			defaultSoak, soakVariable),
		Figures: soakFigures(), Run: soak,
	})
}

func soakLength(text string) (time.Duration, error) {
	if text == "" {
		return defaultSoak, nil
	}
	minutes, err := strconv.Atoi(text)
	if length := time.Duration(minutes) * time.Minute; err == nil && length >= shortestSoak {
		return length, nil
	}
	return 0, fmt.Errorf("%s=%q (give whole minutes, %.0f or more)", soakVariable, text, shortestSoak.Minutes())
}

// crowd is how long viewers come and go between two rests.
func crowd(length time.Duration) time.Duration { return max(crowdAtLeast, length/crowdsAtMost) }

func soak(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	length, err := soakLength(os.Getenv(soakVariable))
	if err != nil {
		return sample, err
	}
	plans := make([]Plan, soakSlots+1)
	for i := range plans {
		plans[i].Line = lines[i%len(lines)].Line
	}
	s, err := build(ctx, r, plans, demosite.Options{Log: r.Log, Settings: soakSettings})
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.speed = soakSpeed
	guest, err := s.invite(r, s.viewers[soakSlots], length+restWait)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, guest.Stop()) }()
	var servers, viewers []reading
	var visits atomic.Int64
	for began := time.Now(); ; {
		s.crowd(ctx, crowd(length), uint64(len(servers)), &visits)
		at, here, err := s.rest(ctx, guest)
		if err != nil {
			return sample, err
		}
		servers, viewers = append(servers, at), append(viewers, here)
		r.Logf("  %3.0f s, %d visits; servers: %v; a viewer: %v", time.Since(began).Seconds(), visits.Load(), at, here)
		if time.Since(began) >= length || ctx.Err() != nil {
			break
		}
	}
	values := judge(servers, viewers)
	values["visits"] = float64(visits.Load())
	return bench.Sample{Values: values}, ctx.Err()
}

// crowd has viewers come and go in all slots.
func (s *stage) crowd(ctx context.Context, length time.Duration, seed uint64, visits *atomic.Int64) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	for i, host := range s.viewers[:soakSlots] {
		wg.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			for time.Since(began) < length-time.Second {
				s.visit(ctx, host, dice, length-time.Since(began))
				visits.Add(1)
			}
		})
	}
	wg.Wait()
}

// visit is one viewer of a crowd: it may seek, and it leaves or is killed. What it tells does not matter here.
func (s *stage) visit(ctx context.Context, host *netlab.Host, dice *rand.Rand, left time.Duration) {
	stay := min(3*time.Second+time.Duration(dice.Int64N(int64(9*time.Second))), left)
	p := Plan{LeaveAfter: stay}
	if dice.IntN(2) == 0 {
		p.SeekAfter, p.SeekTo = stay/2, time.Duration(dice.Int64N(int64(filmLength)))
	}
	if dice.IntN(3) == 0 && left > missedAfter {
		killed, cancel := context.WithTimeout(ctx, stay/2)
		defer cancel()
		ctx = killed
	}
	_, _ = s.watch(ctx, host, p, withLeeway, nil)
}

// settled is how many seconds in a row have to look alike before a rest is one.
const settled = 4

// rest waits until only the guest is there and nothing changes any more, and reads what is left.
func (s *stage) rest(ctx context.Context, guest *bench.Process) (servers, here reading, err error) {
	patient, cancel := context.WithTimeout(ctx, restWait)
	defer cancel()
	for same := 0; same < settled; {
		before := servers.Goroutines
		if servers, err = s.servers.reading(); err != nil {
			return servers, here, err
		}
		// The guest has one session, and one link to the seed.
		if servers.Sessions <= 1 && servers.Links <= 1 && servers.Goroutines == before {
			same++
		} else {
			same = 0
		}
		if !sleep.For(patient, time.Second) {
			break
		}
	}
	if err = guest.Send(struct{}{}); err == nil {
		err = guest.Receive(&here)
	}
	return servers, here, err
}
