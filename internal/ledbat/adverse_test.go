package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
)

// goodput runs one flow for a minute and a half and gives its Mbit/s of payload in the last minute.
func goodput(r road, seed uint64, shape func(*sim, *line, *bglink)) (mbit float64, l *line, h *sender) {
	s, l := r.open(seed)
	h = s.sender(ledbat.Config{})
	b := h.link(0, l, r.rtt/2)
	shape(s, l, b)
	s.run(30 * second)
	before := b.got
	l.offered, l.drops = 0, 0
	s.run(90 * second)
	return float64(b.got-before) * 8 / 60e6, l, h
}

// TestShallowQueue is case 8: the queue overflows before the delay reaches the target.
func TestShallowQueue(t *testing.T) {
	t.Parallel()
	var drops []float64
	mbit := median(3, func(seed uint64) float64 {
		m, l, _ := goodput(shallow, seed, func(*sim, *line, *bglink) {})
		drops = append(drops, float64(l.drops)/float64(l.offered))
		return m
	})
	dropped := sortedMiddle(drops)
	t.Logf("%s: %.2f Mbit/s, %.2f %% dropped", shallow.name, mbit, 100*dropped)
	if mbit < 7 || dropped >= 0.0025 { // the bars are 5 and 0.5; real lines lose twice as much
		t.Errorf("%s: %.2f Mbit/s (want ≥ 7), %.2f %% dropped (want < 0.25)", shallow.name, mbit, 100*dropped)
	}
}

// TestRandomLoss is case 9, without SCTP's own bound.
func TestRandomLoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ loss, least float64 }{{0.01, 5}, {0.05, 3}} {
		mbit := median(3, func(seed uint64) float64 {
			m, _, _ := goodput(fast, seed, func(_ *sim, l *line, _ *bglink) { l.loss = c.loss })
			return m
		})
		t.Logf("%.0f %% loss: %.2f Mbit/s", 100*c.loss, mbit)
		if mbit < c.least {
			t.Errorf("%.0f %% loss: %.2f Mbit/s, want ≥ %.0f", 100*c.loss, mbit, c.least)
		}
	}
}

// TestJitter is the first part of case 11: spikes as Wi-Fi has them, 20 to 80 ms for up to a round trip, twice a second.
func TestJitter(t *testing.T) {
	t.Parallel()
	for _, r := range []road{slow, fast} {
		mbit := median(3, func(seed uint64) float64 {
			m, _, _ := goodput(r, seed, func(s *sim, l *line, _ *bglink) {
				var until, added int64
				l.jitter = func(now int64) int64 {
					if now > until+500_000 {
						until, added = now+s.rng.Int64N(40_000), 20_000+s.rng.Int64N(60_000)
					}
					if now < until {
						return added
					}
					return s.rng.Int64N(3_000)
				}
			})
			return m
		})
		t.Logf("%s: %.2f Mbit/s with spikes", r.name, mbit)
		if part := mbit / r.mbit / 0.923; part < 0.7 {
			t.Errorf("%s: %.2f of the link with spikes, want ≥ 0.7", r.name, part)
		}
	}
}

// TestReverseLoad is another part of case 11: TCP fills the way that the acks take. Round trips are up to five times as long
// then, and so is the time until a change of the window shows; the controller must not swing.
func TestReverseLoad(t *testing.T) {
	t.Parallel()
	for _, r := range []road{slow, fast} {
		part := median(3, func(seed uint64) float64 {
			s, l := r.open(seed)
			b := s.sender(ledbat.Config{}).link(0, l, r.rtt/2)
			b.reverse = s.line(r.mbit, r.queue, r.rtt/2)
			s.rival(1, b.reverse, r.rtt/2).pump()
			u := share(l, 5*second, 30*second, 0)
			s.run(30 * second)
			return *u
		})
		t.Logf("%s: %.3f of the link against a full reverse path", r.name, part)
		if part < 0.85 {
			t.Errorf("%s: %.3f of the link against a full reverse path, want ≥ 0.85", r.name, part)
		}
	}
}

// TestSlowPeer is the last part of case 11: one peer of many is behind a slow line of its own.
func TestSlowPeer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 5, 20} {
		if testkit.RaceDetector && n == 20 {
			continue
		}
		s, l := fast.open(1)
		far := s.line(0.5, 64_000, 30_000)
		h := s.sender(ledbat.Config{})
		for i := range n {
			h.link(i, l, fast.rtt/2)
		}
		b := h.links[0]
		b.line = far // its packets skip the uplink, which they would load by a twentieth
		flows := make([]int, n)
		for i := range n {
			flows[i] = i
		}
		u := share(l, 30*second, 90*second, flows...)
		p, q := far.probe(30*second), l.probe(30*second)
		s.run(90 * second)
		t.Logf("%d peers, one slow: %.3f of the uplink, queue p95 %d, there %d", n, *u, q.percentile(95), p.percentile(95))
		if *u < 0.9 {
			t.Errorf("%d peers, one slow: %.3f of the uplink, want ≥ 0.9", n, *u)
		}
		if p.percentile(95) > 150_000 {
			t.Errorf("%d peers: the slow one's queue holds %d µs at p95", n, p.percentile(95))
		}
	}
}

// TestLongDownload: half an hour of another host's TCP does not become the base delay; background keeps out of its way.
func TestLongDownload(t *testing.T) {
	t.Parallel()
	s, l := slow.open(1)
	h := s.sender(ledbat.Config{})
	h.link(1, l, slow.rtt/2)
	s.run(30 * second)
	s.rival(0, l, slow.rtt/2).pump()
	first := h.c.Stats().Base
	late := share(l, 1500*second, 1830*second, 1)
	s.run(1830 * second)
	if base := h.c.Stats().Base; *late > 0.03 || base > first+5_000 {
		t.Errorf("half an hour into a download: %.3f of the link, base %d µs, before it %d", *late, base, first)
	}
}

// TestFairQueue is case 10: with a queue of its own a flow sees no delay of others, and all links of a host together must
// not have more than one flow's share for that. Links of a host are one flow to a queue that goes by hosts only; where it
// goes by links, what the host has in flight is what bounds it.
func TestFairQueue(t *testing.T) {
	t.Parallel()
	s, l := fast.open(1)
	l.fair = true
	l.queue = 64_000
	s.sender(ledbat.Config{}).link(1, l, fast.rtt/2)
	tcp := s.rival(0, l, fast.rtt/2)
	s.at(second, tcp.pump)
	u := share(l, 30*second, 90*second, 1)
	s.run(90 * second)
	t.Logf("fair queue: background has %.3f", *u)
	if *u > 0.5 {
		t.Errorf("fair queue: background has %.3f, want ≤ 0.5", *u)
	}
}

// TestLinksFallSilent: a queue that all links saw goes while one of them sends alone, for a turn or for good. What the
// others saw last does not hold it down.
func TestLinksFallSilent(t *testing.T) {
	t.Parallel()
	part := median(3, func(seed uint64) float64 {
		s, l := fast.open(seed)
		h := s.sender(ledbat.Config{})
		for i := range 5 {
			h.link(i, l, fast.rtt/2)
		}
		s.run(10 * second)
		for i := range int64(20) { // 24 ms of queue in 80 ms
			s.at(s.now+4_000*i, func() { l.send(packet{wire: segment, flow: 5, arrived: func() {}, dropped: func() {}}) })
		}
		s.run(10_150_000)
		h.links = h.links[:1]
		u := share(l, 10_300_000, 12*second, 0)
		s.run(12 * second)
		return *u
	})
	t.Logf("one of five links alone after a queue: %.3f of the link in the next two seconds", part)
	if part < 0.4 {
		t.Errorf("one of five links alone after a queue: %.3f of the link in the next two seconds, want ≥ 0.4", part)
	}
}
