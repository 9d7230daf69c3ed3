package ledbat_test

import (
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
)

func sortedMiddle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// together starts flows of n hosts at the moments given and measures each one's share between from and to.
func together(r road, seed uint64, from, to int64, starts ...int64) []float64 {
	s, l := r.open(seed)
	var shares []*float64
	for i, at := range starts {
		s.at(at, func() { s.sender(ledbat.Config{}).link(i, l, r.rtt/2) })
		shares = append(shares, share(l, from, to, i))
	}
	s.run(to)
	var out []float64
	for _, v := range shares {
		out = append(out, *v)
	}
	return out
}

// TestFairness is case 5: hosts that know nothing of each other share alike.
func TestFairness(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		road
		starts   []int64
		from, to int64
		least    float64
	}{
		{slow, []int64{0, 0}, 30 * second, 150 * second, 0.98},
		{slow, []int64{0, 0, second, second}, 30 * second, 150 * second, 0.98},
		{fast, []int64{0, 0}, 30 * second, 150 * second, 0.98},
		{fast, []int64{0, 0, second, second, second}, 60 * second, 180 * second, 0.95},
		{fat, []int64{0, 0}, 60 * second, 180 * second, 0.85}, // no goal: a packet a round trip makes even slowly there
	} {
		if testkit.RaceDetector && c.road == fat {
			continue
		}
		fair := median(3, func(seed uint64) float64 { return jain(together(c.road, seed, c.from, c.to, c.starts...)...) })
		t.Logf("%s: Jain's index of %d: %.3f", c.name, len(c.starts), fair)
		if fair < c.least {
			t.Errorf("%s: Jain's index of %d: %.3f, want ≥ %.2f", c.name, len(c.starts), fair, c.least)
		}
	}
}

// TestLatecomer is case 6: a flow that comes later neither takes the link over nor starves.
func TestLatecomer(t *testing.T) {
	t.Parallel()
	for _, r := range []road{slow, fast} {
		for _, late := range []int64{1_500_000, 60 * second} {
			part := median(3, func(seed uint64) float64 {
				x := together(r, seed, late+20*second, late+80*second, 0, late)
				return x[1] / (x[0] + x[1])
			})
			t.Logf("%s: latecomer of %.1f s has %.3f", r.name, float64(late)/1e6, part)
			if part < 0.4 || part > 0.6 {
				t.Errorf("%s: latecomer of %.1f s has %.3f, want 0.4 to 0.6", r.name, float64(late)/1e6, part)
			}
		}
	}
}

// TestPeers is case 12: a host that serves many on one uplink is one background flow, not many.
func TestPeers(t *testing.T) {
	testkit.InOneGoroutine(t)
	t.Parallel()
	for _, r := range []road{slow, fast} {
		alone := once(func(seed uint64) float64 { return besideHost(r, 0, false, seed) })
		for _, n := range []int{1, 5, 20} {
			kept := median(3, func(seed uint64) float64 { return besideHost(r, n, false, seed) / alone(seed) })
			apart := besideHost(r, n, true, 1) / alone(1)
			t.Logf("%s: TCP keeps %.3f beside a host with %d peers; with controllers of their own %.3f", r.name, kept, n, apart)
			if kept < 0.9 {
				t.Errorf("%s: TCP keeps %.3f beside a host with %d peers, want ≥ 0.9", r.name, kept, n)
			}
		}
	}
}

func besideHost(r road, n int, apart bool, seed uint64) float64 {
	s, l := r.open(seed)
	h := s.sender(ledbat.Config{})
	for i := range n {
		if apart {
			h = s.sender(ledbat.Config{})
		}
		h.link(1+i, l, r.rtt/2+int64(i)*1000).extra = int64(i) * 1000
	}
	tcp := s.rival(0, l, r.rtt/2)
	s.at(30*second, tcp.pump)
	u := share(l, 30*second, 90*second, 0)
	s.run(90 * second)
	return *u
}

// TestEvenSoon: a flow that was pushed back by a newcomer of our own kind does not stay pushed back, whenever between two slowdowns
// the newcomer came.
func TestEvenSoon(t *testing.T) {
	t.Parallel()
	for _, r := range []road{slow, fast} {
		for _, late := range []int64{15 * second, 20 * second, 20_130_000, 27 * second} {
			x := together(r, 1, late+6*second, late+14*second, 0, late)
			part := x[1] / (x[0] + x[1])
			t.Logf("%s: 6 to 14 s after it came at %.2f s the second has %.2f", r.name, float64(late)/1e6, part)
			if part < 0.25 || part > 0.75 {
				t.Errorf("%s: 6 to 14 s after it came at %.2f s the second has %.2f, want 0.25 to 0.75", r.name, float64(late)/1e6, part)
			}
		}
	}
}
