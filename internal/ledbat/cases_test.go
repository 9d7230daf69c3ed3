package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/lab/baseline/rfc6817"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
)

// The cases of the background transport, in the shape that a simulation can give them: what the bench measures with
// real TCP and real links is measured here in virtual time, in every run of the tests.

const second = 1_000_000

// road is a path of the cases: rate, round trip, queue.
type road struct {
	name  string
	mbit  float64
	rtt   int64
	queue int64
}

var (
	slow    = road{"1 Mbit/s, 100 ms, 60 KB", 1, 100_000, 60_000}
	fast    = road{"10 Mbit/s, 40 ms, 256 KB", 10, 40_000, 256_000}
	fat     = road{"100 Mbit/s, 40 ms, 1 MB", 100, 40_000, 1_000_000}
	shallow = road{"10 Mbit/s, 40 ms, 16 KB", 10, 40_000, 16_000}
)

func (r road) open(seed uint64) (*sim, *line) {
	s := newSim(seed)
	l := s.line(r.mbit, r.queue, r.rtt/2)
	l.jitter = func(int64) int64 { return s.rng.Int64N(500) } // so that seeds differ
	return s, l
}

// target is T of the road; a round trip has a packet's time on the wire in it besides the delay.
func (r road) target() int64 {
	return min(max((r.rtt+int64(1253*8/r.mbit))/2, ledbat.MinTarget), ledbat.MaxTarget)
}

// share measures what part of the line flows had between two moments.
func share(l *line, from, to int64, flows ...int) *float64 {
	out := new(float64)
	sum := func() (n int64) {
		for _, f := range flows {
			n += l.sent[f]
		}
		return n
	}
	var before int64
	l.s.at(from, func() { before = sum() })
	l.s.at(to, func() { *out = float64(sum()-before) * 1e6 / float64(to-from) / float64(l.rate) })
	return out
}

func jain(x ...float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / squares / float64(len(x))
}

// median runs a case with several seeds and gives the median of its figure.
func median(seeds int, figure func(seed uint64) float64) float64 {
	if testkit.RaceDetector {
		seeds = 1 // nothing runs beside anything here; the long way is for runs without it
	}
	return medianOf(seeds, figure)
}

// medianOf is median where one seed says too little for the bound.
func medianOf(seeds int, figure func(seed uint64) float64) float64 {
	var list []float64
	for i := range seeds {
		list = append(list, figure(uint64(i+1)))
	}
	return sortedMiddle(list)
}

// once plays a case once, and gives what came of it each time.
func once[K comparable, V any](play func(K) V) func(K) V {
	known := map[K]V{}
	return func(k K) V {
		v, played := known[k]
		if !played {
			v = play(k)
			known[k] = v
		}
		return v
	}
}

// TestAlone is cases 1, 4 and 7 of a lone flow: the link is used, and the queue stays about the target.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		road
		least float64
	}{{slow, 0.95}, {fast, 0.95}, {fat, 0.90}} {
		if testkit.RaceDetector && c.road == fat {
			continue
		}
		s, l := c.open(1)
		h := s.sender(ledbat.Config{})
		h.link(0, l, c.rtt/2)
		u := share(l, 10*second, 130*second, 0)
		p := l.probe(10 * second)
		s.run(130 * second)
		p95 := float64(p.percentile(95)) / float64(c.target())
		t.Logf("%s: utilization %.3f, queue p50 %d p95 %d µs = %.2f T", c.name, *u, p.percentile(50), p.percentile(95), p95)
		if *u < c.least || p95 > 1.5 {
			t.Errorf("%s: utilization %.3f, want ≥ %.2f; p95 of the queue %.2f T, want ≤ 1.5", c.name, *u, c.least, p95)
		}
	}
}

// TestLongRun is case 7: half an hour alone, and the base has not moved.
func TestLongRun(t *testing.T) {
	t.Parallel()
	for _, skew := range []int64{-100, 0, 100} {
		if testkit.RaceDetector && skew >= 0 {
			break
		}
		s, l := slow.open(1)
		h := s.sender(ledbat.Config{})
		b := h.link(0, l, slow.rtt/2)
		b.skew = skew
		s.run(60 * second)
		first := h.c.Stats().Base
		u := share(l, 60*second, 1800*second, 0)
		p := l.probe(60 * second)
		s.run(1800 * second)
		drift := h.c.Stats().Base - first
		t.Logf("skew %d ppm: base %d µs drifted by %d, utilization %.3f, p95 %d µs", skew, first, drift, *u, p.percentile(95))
		if drift < -5_000 || drift > 5_000 || *u < 0.95 || p.percentile(95) > slow.target()*3/2 {
			t.Errorf("skew %d ppm: base moved by %d µs, utilization %.3f, p95 %d µs", skew, drift, *u, p.percentile(95))
		}
	}
}

// minute is TCP for a minute on a road.
type minute struct {
	road
	reno bool
	seed uint64
}

// beside runs it into n running background flows and gives what part of the line it has.
func (m minute) beside(n int, controller func(bool) ledbat.Controller) float64 {
	s, l := m.open(m.seed)
	for i := range n {
		s.sender(ledbat.Config{Controller: controller}).link(1+i, l, m.rtt/2)
	}
	tcp := s.rival(0, l, m.rtt/2)
	tcp.reno = m.reno
	s.at(30*second, tcp.pump)
	u := share(l, 30*second, 90*second, 0)
	s.run(90 * second)
	return *u
}

func (m minute) alone() float64 { return m.beside(0, nil) }

// TestBesideTCP is cases 1 and 2: what TCP keeps of its rate.
func TestBesideTCP(t *testing.T) {
	testkit.InOneGoroutine(t)
	t.Parallel()
	alone := once(minute.alone)
	for _, c := range []struct {
		road
		flows int
		reno  bool
		least float64
	}{{slow, 1, false, 0.95}, {slow, 2, false, 0.93}, {slow, 1, true, 0.95}, {fast, 1, false, 0.95}, {fast, 1, true, 0.95}, {fast, 2, false, 0.93}} {
		kept := median(3, func(seed uint64) float64 {
			m := minute{c.road, c.reno, seed}
			return m.beside(c.flows, nil) / alone(m)
		})
		m := minute{c.road, c.reno, 1}
		yard := m.beside(c.flows, rfc6817.NewController) / alone(m)
		t.Logf("%s: TCP (Reno %v) keeps %.3f beside %d; RFC 6817's controller %.3f", c.name, c.reno, kept, c.flows, yard)
		if kept < c.least || kept < yard {
			t.Errorf("%s: TCP (Reno %v) keeps %.3f beside %d, want ≥ %.2f, and ≥ %.3f as beside RFC 6817's controller", c.name, c.reno, kept, c.flows, c.least, yard)
		}
	}
}

// TestBesideTCPOnShortQueues: where the queue is no longer than the path, TCP's window makes hardly a queue above the target
// after a loss, and background has more of the line. This holds where that stands, well above RFC 6817's controller.
func TestBesideTCPOnShortQueues(t *testing.T) {
	testkit.InOneGoroutine(t)
	t.Parallel()
	alone := once(minute.alone)
	for _, r := range []road{{"10 Mbit/s, 40 ms, 50 KB", 10, 40_000, 50_000}, {"20 Mbit/s, 20 ms, 50 KB", 20, 20_000, 50_000}} {
		for _, reno := range []bool{false, true} {
			kept := median(3, func(seed uint64) float64 {
				m := minute{r, reno, seed}
				return m.beside(1, nil) / alone(m)
			})
			m := minute{r, reno, 1}
			yard := m.beside(1, rfc6817.NewController) / alone(m)
			t.Logf("%s: TCP (Reno %v) keeps %.3f; RFC 6817's controller %.3f", r.name, reno, kept, yard)
			if kept < 0.9 || kept < yard+0.2 {
				t.Errorf("%s: TCP (Reno %v) keeps %.3f, want ≥ 0.9; RFC 6817's controller %.3f", r.name, reno, kept, yard)
			}
		}
	}
}

// TestYieldsAndRecovers is case 4, from the moment at which TCP keeps the queue above the target.
func TestYieldsAndRecovers(t *testing.T) {
	t.Parallel()
	for _, r := range []road{slow, fast, fat} {
		if testkit.RaceDetector && r == fat {
			continue
		}
		play := once(func(seed uint64) [2]float64 { y, b := yieldAndRecover(r, seed); return [2]float64{y, b} })
		yielded := median(3, func(seed uint64) float64 { return play(seed)[0] })
		back := median(3, func(seed uint64) float64 { return play(seed)[1] })
		t.Logf("%s: below 10 %% after %.2f s, back at 80 %% after %.2f s", r.name, yielded, back)
		if most := max(1, 10*float64(r.rtt+r.queue*8/int64(r.mbit))/1e6); yielded > most || back >= 5 {
			t.Errorf("%s: below 10 %% after %.2f s (want ≤ %.2f), back at 80 %% after %.2f s (want < 5)", r.name, yielded, most, back)
		}
	}
}

func yieldAndRecover(r road, seed uint64) (yielded, back float64) {
	s, l := r.open(seed)
	s.sender(ledbat.Config{}).link(1, l, r.rtt/2)
	tcp := s.rival(0, l, r.rtt/2)
	tcp.reno = true // CUBIC's slow start stops at the first sign of a queue; then the link is ours for as long as it takes
	s.at(30*second, tcp.pump)
	var start, last, window int64
	stop := int64(90 * second)
	s.every(100_000, func() {
		part := float64(l.sent[1]-last) / 0.1 / float64(l.rate)
		last = l.sent[1]
		switch {
		case s.now < 30*second:
		case window == 0 && l.standing() < r.target():
			start = 0 // TCP does not fill the link yet
		case start == 0:
			start = s.now
		case start > 0 && window == 0 && part < 0.1:
			window = s.now
			yielded = float64(window-start) / 1e6
		case s.now > stop && back == 0 && part > 0.8:
			back = float64(s.now-stop) / 1e6
		}
	})
	s.at(stop, func() { tcp.on = false })
	s.run(stop + 20*second)
	if yielded == 0 {
		yielded = 1e9
	}
	if back == 0 {
		back = 1e9
	}
	return yielded, back
}
