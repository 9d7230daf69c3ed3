package ledbat_test

import (
	"math/rand/v2"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
)

// history plays the same random signals to a controller each time it is called with the same seed, and gives the next signal.
func history(l ledbat.Controller, seed uint64, n int) ledbat.Signal {
	r := rand.New(rand.NewPCG(seed, 1))
	base := 5_000 + r.Int64N(200_000)
	target := min(max(base/2, ledbat.MinTarget), ledbat.MaxTarget)
	s := ledbat.Signal{Now: 1_000_000, Base: base, Target: target, Parts: 1 + r.Int64N(3)}
	var queue int64
	for range n {
		queue = max(0, queue+r.Int64N(target/2+1)-target/4)
		if r.IntN(50) == 0 {
			queue = r.Int64N(4 * target)
		}
		s.Now += 1 + r.Int64N(base)
		s.Queuing, s.RTT, s.Acked, s.Limited = queue, base+queue, 1+r.Int64N(40_000), r.IntN(4) > 0
		switch r.IntN(60) {
		case 0:
			l.OnLoss(s)
		case 1:
			if r.IntN(8) == 0 {
				l.OnTimeout(s)
			}
		case 2:
			l.OnIdle(s)
		default:
			l.OnAck(s)
		}
	}
	s.Now += 1 + r.Int64N(base)
	return s
}

// TestWindowStaysWithinBounds: whatever a controller hears.
func TestWindowStaysWithinBounds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		for _, host := range []bool{true, false} {
			for n := 10; n <= 640; n *= 4 {
				l := ledbat.NewController(host)
				history(l, seed, n)
				if w := l.Window(); w < ledbat.MinWindow || w > ledbat.MaxWindow {
					t.Fatalf("seed %d, %d signals: window %d", seed, n, w)
				}
			}
		}
	}
}

// TestMoreDelayNeverGivesMore: after equal histories, the longer queue never leaves the larger window, with an ack or a loss.
func TestMoreDelayNeverGivesMore(t *testing.T) {
	t.Parallel()
	differ := 0
	for seed := range uint64(3000) {
		var windows []int64
		for _, permille := range []int64{0, 300, 600, 900, 1100, 1600, 3000, 9000} {
			l := ledbat.NewController(seed%2 == 0)
			s := history(l, seed, int(seed%200))
			s.Queuing = s.Target * permille / 1000
			if seed%3 == 0 {
				l.OnLoss(s)
			} else {
				l.OnAck(s)
			}
			windows = append(windows, l.Window())
		}
		for i := 1; i < len(windows); i++ {
			if windows[i] > windows[i-1] {
				t.Fatalf("seed %d: windows %v rise with the delay", seed, windows)
			}
		}
		if windows[0] > windows[len(windows)-1] {
			differ++
		}
	}
	if differ < 1000 {
		t.Errorf("only %d of 3000 histories tell delays apart: this shows nothing", differ)
	}
}

// TestLossCutsOnceInARoundTrip: ten losses in one round trip are one.
func TestLossCutsOnceInARoundTrip(t *testing.T) {
	t.Parallel()
	l := ledbat.NewController(true)
	s := history(l, 4, 100)
	s.Queuing = 0
	before := l.Window()
	for range 10 {
		s.Now += s.RTT / 20
		l.OnLoss(s)
	}
	if after := l.Window(); after >= before || after < before*94/100 {
		t.Errorf("ten losses without a queue in a round trip: window from %d to %d, want 95 %%", before, after)
	}
}

// TestTheSignalMoves: what the controller takes for queuing delay follows a queue on the way, up and down, within 10 ms or
// 10 %, on one-way delays as well as with a queue on the way back, and although the receiver's clock is another.
func TestTheSignalMoves(t *testing.T) {
	t.Parallel()
	for _, back := range []int64{0, 150_000} {
		s := newSim(1)
		l := s.line(1000, 1<<20, 30_000)
		var queue int64
		l.jitter = func(int64) int64 { return queue + s.rng.Int64N(1000) }
		h := s.sender(ledbat.Config{})
		h.on = false
		b := h.link(0, l, 30_000)
		s.every(10_000, func() { b.send(payload) })
		s.run(2 * second)
		b.back += back
		for _, q := range []int64{5_000, 20_000, 60_000, 300_000, 100_000, 30_000, 0} {
			queue = q
			s.run(s.now + 2*second)
			got := h.c.Stats().Queuing
			if slack := max(10_000, q/10); got < q-slack || got > q+slack {
				t.Errorf("queue of %d µs on the way, %d on the way back: the signal says %d", q, back, got)
			}
		}
	}
}

// TestProbesASecond: beside a queue that stays, the host sends about a message a second.
func TestProbesASecond(t *testing.T) {
	t.Parallel()
	s, l := slow.open(1)
	h := s.sender(ledbat.Config{})
	h.link(1, l, slow.rtt/2)
	s.rival(0, l, slow.rtt/2).pump()
	s.run(20 * second)
	before := l.sent[1]
	s.run(60 * second)
	if packets := (l.sent[1] - before) / (payload + overhead); packets < 20 || packets > 80 {
		t.Errorf("%d packets in 40 s, want 20 to 80", packets)
	}
}

// TestAnotherPath: after a handover the base delay of the old path says nothing; with a reset the new one is used in
// full, without it the host gives way to a queue that is not there.
func TestAnotherPath(t *testing.T) {
	t.Parallel()
	for _, reset := range []bool{true, false} {
		s, l := fast.open(1)
		h := s.sender(ledbat.Config{})
		b := h.link(0, l, fast.rtt/2)
		s.run(20 * second)
		l.delay += 100_000
		if reset {
			b.p.Reset(s.now)
		}
		u := share(l, 25*second, 45*second, 0)
		s.run(45 * second)
		if reset && *u < 0.9 || !reset && *u > 0.2 {
			t.Errorf("reset %v: %.2f of the link after the change", reset, *u)
		}
	}
}

// TestAnotherPathBeginsAnew: the first queue on the path after a handover is that of a host that starts there, whatever the path before
// carried.
func TestAnotherPathBeginsAnew(t *testing.T) {
	t.Parallel()
	first := func(moved bool) (most int64) {
		s := newSim(1)
		thin := s.line(5, 1_000_000, 20_000)
		h := s.sender(ledbat.Config{})
		if moved {
			wide := s.line(50, 500_000, 20_000)
			b := h.link(0, wide, 20_000)
			s.run(10 * second)
			b.line = thin
			b.p.Reset(s.now)
			h.pump()
		} else {
			h.link(0, thin, 20_000)
		}
		s.every(1000, func() { most = max(most, thin.standing()) })
		s.run(s.now + 2*second)
		return most
	}
	if started, moved := first(false), first(true); 4*moved > 5*started {
		t.Errorf("a queue of %d µs after the handover, of %d µs for a host that starts there", moved, started)
	}
}
