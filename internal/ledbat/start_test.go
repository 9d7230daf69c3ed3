package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
)

// hundred has one bandwidth-delay product of queue, as the bench's line of that rate.
var hundred = road{"100 Mbit/s, 40 ms, 500 KB", 100, 40_000, 500_000}

// come lets TCP come to a line that background has (or no flow), for 20 s: when background was first below a tenth of the
// line over 0.3 s, and what part of the line TCP had in all.
func come(r road, background, reno bool, seed uint64) (yielded, had float64) {
	s, l := r.open(seed)
	if background {
		s.sender(ledbat.Config{}).link(1, l, r.rtt/2)
	}
	tcp := s.rival(0, l, r.rtt/2)
	tcp.reno = reno
	start := int64(15*second) + int64(seed)*37_000 // somewhere else between two slowdowns for each seed
	s.at(start, tcp.pump)
	u := share(l, start, start+20*second, 0)
	yielded = 20
	var before []int64
	s.every(50_000, func() {
		before = append(before, l.sent[1])
		n := len(before)
		if at := float64(s.now-start) / 1e6; at >= 0.3 && at < yielded && float64(before[n-1]-before[n-7])/0.3 < 0.1*float64(l.rate) {
			yielded = at
		}
	})
	s.run(start + 20*second)
	return yielded, *u
}

// TestTCPsStart is case 4 as the bench measures it, TCP's first seconds included. HyStart takes a queue that wavers by a few
// ms for the end of the line, ours too; how TCP starts decides what it has for the next ten seconds.
func TestTCPsStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		road
		reno        bool
		most, least float64
	}{{slow, false, 3, 0.95}, {fast, false, 2, 0.97}, {fast, true, 1, 0.98}, {hundred, false, 1, 0.97}, {hundred, true, 1, 0.96}} {
		if testkit.RaceDetector && c.road == hundred {
			continue
		}
		var kept []float64
		yielded := median(5, func(seed uint64) float64 {
			y, had := come(c.road, true, c.reno, seed)
			_, lone := come(c.road, false, c.reno, seed)
			kept = append(kept, had/lone)
			return y
		})
		k := sortedMiddle(kept)
		t.Logf("%s: below 10 %% %.2f s after TCP (Reno %v) came, which keeps %.3f of its first 20 s", c.name, yielded, c.reno, k)
		if yielded > c.most || k < c.least {
			t.Errorf("%s: below 10 %% %.2f s after TCP (Reno %v) came, want ≤ %.1f; it keeps %.3f, want ≥ %.2f", c.name, yielded, c.reno, c.most, k, c.least)
		}
	}
}
