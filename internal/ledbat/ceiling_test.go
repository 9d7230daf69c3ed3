package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
)

// TestARateIsTheLines has a host with foreground whose acks wait in another host's uplink for half of the time: the window that
// fills the line then is twice what fills it otherwise, and is not to be used for that.
func TestARateIsTheLines(t *testing.T) {
	t.Parallel()
	play := func(foreground bool) (p95 int64, used float64) {
		s, l := slow.open(1)
		h := s.sender(ledbat.Config{})
		h.c.Eager(foreground)
		b := h.link(0, l, slow.rtt/2)
		late := false
		s.every(2*second, func() {
			if late = !late; late {
				b.back = slow.rtt/2 + 100_000
			} else {
				b.back = slow.rtt / 2
			}
		})
		u, p := share(l, 20*second, 120*second, 0), l.probe(20*second)
		s.run(120 * second)
		return p.percentile(95), *u
	}
	without, _ := play(false)
	p95, used := play(true)
	t.Logf("p95 of the queue %d µs, and %d where the window alone holds; %.3f of the line used", p95, without, used)
	if p95 > 50_000 || without < 3*p95/2 || used < 0.85 {
		t.Errorf("p95 of the queue %d µs, want ≤ 50000 and two thirds of %d at most; %.3f of the line used, want ≥ 0.85", p95, without, used)
	}
}

// TestWhatGoesOutBesideHasItsPartOfTheLine has a host with foreground download something for a second of every four: what
// acknowledges it has two fifths of the line then.
func TestWhatGoesOutBesideHasItsPartOfTheLine(t *testing.T) {
	t.Parallel()
	const every, size = 9_000, 450
	play := func(told bool) (p95 int64, used float64) {
		s, l := slow.open(1)
		h := s.sender(ledbat.Config{})
		h.c.Eager(true)
		h.link(0, l, slow.rtt/2)
		s.every(every, func() {
			if s.now%(4*second) > second {
				return
			}
			l.send(packet{wire: size, flow: 1, arrived: func() {}, dropped: func() {}})
			if told {
				h.c.Beside(s.now, size)
			}
		})
		u, p := share(l, 20*second, 120*second, 0, 1), l.probe(20*second)
		s.run(120 * second)
		return p.percentile(95), *u
	}
	untold, before := play(false)
	p95, used := play(true)
	t.Logf("p95 of the queue %d µs, %d untold; %.3f and %.3f of the line used", p95, untold, used, before)
	if p95 > 2*untold/3 || used < 0.95*before {
		t.Errorf("p95 of the queue %d µs, want two thirds of %d at most; %.3f of the line used, want 0.95 of %.3f", p95, untold, used, before)
	}
}

// TestWhatGoesOutBesideEndsNoUpload: a download costs more than the ceiling, which was found where less fitted.
func TestWhatGoesOutBesideEndsNoUpload(t *testing.T) {
	t.Parallel()
	s, l := slow.open(1)
	h := s.sender(ledbat.Config{})
	h.c.Eager(true)
	b := h.link(0, l, slow.rtt/2)
	s.run(20 * second)
	if rate := h.c.PacingRate(); rate > 150_000 {
		t.Fatalf("%d bytes/s, and no ceiling", rate)
	}
	l.rate *= 10
	s.every(1_000, func() { h.c.Beside(s.now, 300) })
	before := b.got
	s.run(25 * second)
	if got := b.got - before; got < 5*9*payload {
		t.Errorf("%d bytes in five seconds, want nine packets a second at least", got)
	}
}
