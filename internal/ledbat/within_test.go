package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// TestAHostWithinBoundsYieldsToShortQueues: it bears half of a queue that others overflowed below what it bears, for ten seconds.
func TestAHostWithinBoundsYieldsToShortQueues(t *testing.T) {
	signal := ledbat.Signal{Acked: 12_000, Base: 14_000, Target: 15_000, RTT: 20_000, Limited: true, Parts: 1}
	for _, c := range []struct {
		queue, since, later int64 // µs: of queue at the loss, after the end of slow start, and after the loss
		yields              bool
	}{
		{6_000, 200_000, 100_000, true},
		{6_000, 200_000, 9_900_000, true},
		{6_000, 200_000, 10_200_000, false},
		{8_000, 200_000, 100_000, false}, // its own queue, which it was turned back from
		{1_000, 200_000, 100_000, false}, // the path's nature
		{6_000, 40_000, 100_000, false},  // slow start's overflow
	} {
		host := ledbat.HostWithin(quality.LeastTarget, quality.MostTarget)(true)
		now := int64(1)
		hear := func(queue, length int64) {
			for until := now + length; now < until; now += 10_000 {
				s := signal
				s.Now, s.Queuing = now, queue
				host.OnAck(s)
			}
		}
		hear(6_000, 10_000) // the end of slow start
		hear(2_000, c.since)
		lost := signal
		lost.Now, lost.Queuing = now, c.queue
		host.OnLoss(lost)
		if c.yields && host.Window() > 2*ledbat.Packet {
			t.Errorf("%+v: the window falls to %d", c, host.Window())
		}
		hear(2_000, c.later)
		for host.State() != ledbat.Avoidance {
			hear(2_000, 10_000)
		}
		before := host.Window()
		hear(4_000, 20_000)
		if got := host.Window() < before; got != c.yields {
			t.Errorf("%+v: it yields to 4 ms: %v", c, got)
		}
	}
}
