package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
)

// lie is what a hostile peer makes of its acks.
type lie struct {
	name  string
	late  func(now int64, link int) int64 // µs that an ack is held back, with a receive time to suit
	mute  bool                            // acks are never sent
	holes bool                            // four messages of five are said to be missing
	hides bool                            // what came late is said to have come at once
}

// lies begin after 2 s, when the host knows its line, or with the first acks.
var lies = []lie{
	{name: "acks 0.3 s late", late: since(2*second, 300_000)},
	{name: "acks 5 s late", late: since(2*second, 5*second)},
	{name: "acks 0.3 s late from the second", late: since(60_000, 300_000)},
	{name: "acks 0.1 s late from the first", late: since(0, 100_000)},
	{name: "acks 1 s late from the first", late: since(0, second)},
	{name: "ever later", late: func(now int64, _ int) int64 { return now / 100 }},
	{name: "no acks", mute: true},
	{name: "a queue of the target", late: since(2*second, 21_000)},
	{name: "a queue of nine tenths of the target", late: since(2*second, 18_000)},
	{name: "by turns", late: func(now int64, link int) int64 {
		if now/second%3 == int64(link)%3 {
			return 300_000
		}
		return 0
	}},
	{name: "losses", holes: true},
}

func since(start, wait int64) func(int64, int) int64 {
	return func(now int64, _ int) int64 {
		if now < start {
			return 0
		}
		return wait
	}
}

// tell sends an ack as the lie has it.
func (l *lie) tell(b *bglink, a ledbat.Ack) {
	s := b.host.s
	var wait int64
	if l.late != nil {
		wait = l.late(s.now, b.flow)
	}
	a.ReceivedAt += uint32(wait)
	switch {
	case l.mute, l.holes && a.Highest%5 != 0:
		return
	case l.holes:
		a.Cumulative, a.Bitmap = 0, 0
	case l.hides:
		owd := uint32(b.clock()-s.now) + 21_500 // of fast, and a packet
		if came := b.newest.SentAt + owd; int32(a.ReceivedAt-came) > 0 {
			a.ReceivedAt = came
		}
	}
	s.at(s.now+wait+b.back, func() {
		b.hear(a)
		b.host.pump()
	})
}

// amongLiars gives the bytes that a path brings beside so many that lie on its host, and ask for as much.
func amongLiars(r road, n int, l *lie) float64 {
	s, line := r.open(1)
	h := s.sender(ledbat.Config{})
	b := h.link(0, line, r.rtt/2)
	for i := range n {
		h.link(1+i, line, r.rtt/2).lie = l
	}
	s.run(5 * second)
	before := b.got
	s.run(20 * second)
	return float64(b.got - before)
}

// TestLiesCostAnHonestPathLittle: whatever all other paths of a host say of themselves, one that is honest keeps a sixth of
// what it would have if they were honest too, and mostly nearly all of the line.
func TestLiesCostAnHonestPathLittle(t *testing.T) {
	testkit.InOneGoroutine(t)
	t.Parallel()
	for _, r := range []road{fast, fat, {"100 Mbit/s, 5 ms, 500 KB", 100, 5_000, 500_000}} {
		alone := amongLiars(r, 0, nil)
		for i := range lies {
			for _, n := range []int{2, 4, 9} {
				kept := amongLiars(r, n, &lies[i]) / alone
				t.Logf("%s, %s: beside %d the honest path keeps %.3f", r.name, lies[i].name, n, kept)
				if least := 1.0 / 6 / float64(n+1); kept < least {
					t.Errorf("%s, %s: beside %d the honest path keeps %.3f, want ≥ %.3f", r.name, lies[i].name, n, kept, least)
				}
			}
		}
	}
}

// TestAHiddenQueueIsNoFlood: one path of three and more that says that there is no queue makes the host no larger than it was
// when the others saw none either.
func TestAHiddenQueueIsNoFlood(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5, 10} {
		s, l := fast.open(1)
		h := s.sender(ledbat.Config{})
		for i := range n {
			h.link(1+i, l, fast.rtt/2)
		}
		h.links[0].lie = &lie{hides: true}
		s.run(3 * second) // slow start overshoots
		p := l.probe(s.now)
		s.run(10 * second)
		queue, window := p.percentile(95), h.c.Window()
		tcp := s.rival(0, l, fast.rtt/2)
		tcp.pump()
		u := share(l, 10*second, 40*second, 0)
		s.run(40 * second)
		t.Logf("one of %d hides the queue: p95 %d µs, TCP has %.3f, window %d and then %d", n, queue, *u, window, h.c.Window())
		if queue > 3*fast.target()/2 || *u < 0.5 {
			t.Errorf("one of %d hides the queue: p95 %d µs (want ≤ %d), TCP has %.3f (want ≥ 0.5)", n, queue, 3*fast.target()/2, *u)
		}
	}
}

// TestNewcomersMoveLittle: a link that comes while a queue stands takes it for its base, and refutes those that know better. As
// others' queues come and go, it soon knows better too.
func TestNewcomersMoveLittle(t *testing.T) {
	testkit.InOneGoroutine(t)
	t.Parallel()
	for _, r := range []road{slow, fast} {
		for _, n := range []int{3, 6} {
			kept := medianOf(9, func(seed uint64) float64 {
				s, l := r.open(seed)
				h := s.sender(ledbat.Config{})
				for i := range n {
					h.link(1+i, l, r.rtt/2)
				}
				flow := n
				s.every(5*second, func() {
					h.links[0].p.Close()
					h.links = h.links[1:]
					flow++
					h.link(flow, l, r.rtt/2)
				})
				s.at(20*second, s.rival(0, l, r.rtt/2).pump)
				u := share(l, 20*second, 80*second, 0)
				s.run(80 * second)
				return *u
			})
			t.Logf("%s: beside a host with %d links, a new one every 5 s, TCP has %.3f", r.name, n, kept)
			if kept < 0.9 {
				t.Errorf("%s: beside a host with %d links, a new one every 5 s, TCP has %.3f, want ≥ 0.9", r.name, n, kept)
			}
		}
	}
}
