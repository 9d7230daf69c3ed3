package transportbench

import (
	"math"
	"slices"
	"sync"
	"time"
)

// echo is one round trip of the witness.
type echo struct {
	at  time.Duration // when it was sent
	rtt time.Duration
}

// echoes are the round trips of the witness.
type echoes struct {
	mu  sync.Mutex
	all []echo // guarded by mu
}

func (s *echoes) echo(e echo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
}

// base is the witness's shortest round trip.
func (s *echoes) base() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := time.Duration(math.MaxInt64)
	for _, e := range s.all {
		base = min(base, e.rtt)
	}
	return base
}

// added are the witness's round trips of a time, less the shortest of the whole scene, in order of size.
func (s *echoes) added(from, to time.Duration) []time.Duration {
	base := s.base()
	s.mu.Lock()
	defer s.mu.Unlock()
	var in []time.Duration
	for _, e := range s.all {
		if e.at >= from && e.at < to {
			in = append(in, e.rtt)
		}
	}
	for i := range in {
		in[i] -= base
	}
	slices.Sort(in)
	return in
}

// addedP is a quantile of added, in milliseconds.
func (s *echoes) addedP(p float64, from, to time.Duration) float64 {
	in := s.added(from, to)
	if len(in) == 0 {
		return 0
	}
	return in[min(int(p*float64(len(in))), len(in)-1)].Seconds() * 1000
}
