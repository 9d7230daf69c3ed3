package transportbench

import (
	"testing"
	"time"
)

// heard is a record of a queue that grows by 100 ms in a second and is gone in the next, and of what a sender says of it
// whose round trip is 50 ms.
func heard(says func(at, queue time.Duration) float64) *record {
	const length = 8 * time.Second
	r := newRecord(scene{length: length, flows: []flow{{}}})
	queue := func(at time.Duration) time.Duration {
		if at < 0 || at/time.Second%2 == 1 {
			return 0
		}
		return at % time.Second / 10
	}
	for at := time.Duration(0); at < length; at += queueEvery {
		r.stands(standing{at, queue(at)})
	}
	const trip = 50 * time.Millisecond
	for at := step; at < length; at += step {
		known := queue(at - trip)
		for ago := trip; ago <= 2*trip; ago += queueEvery {
			known = min(known, queue(at-ago))
		}
		r.flow(0).state(state{AtMS: at.Milliseconds(), Window: 60_000, RTT: ms(trip.Microseconds()), Queuing: says(at, known)})
	}
	return r
}

// TestTheSignalHasToMove: a signal that says what the queue is follows it; one that says always the same, or what it was long ago, does not.
func TestTheSignalHasToMove(t *testing.T) {
	for name, c := range map[string]struct {
		says  func(at, queue time.Duration) float64
		least float64
		most  float64
	}{
		"true":       {func(_, q time.Duration) float64 { return ms(q.Microseconds()) }, 1, 1},
		"a bit off":  {func(_, q time.Duration) float64 { return ms(q.Microseconds()) + 8 }, 1, 1},
		"constant":   {func(time.Duration, time.Duration) float64 { return 30 }, 0, 0.3},
		"nothing":    {func(time.Duration, time.Duration) float64 { return 0 }, 0, 0.75},
		"half of it": {func(_, q time.Duration) float64 { return ms(q.Microseconds()) / 2 }, 0, 0.85},
		"late":       {func(at, _ time.Duration) float64 { return ms((at - time.Second/2).Microseconds() / 10 % 100_000) }, 0, 0.6},
	} {
		if got := heard(c.says).follows(0, 0, 8*time.Second); got < c.least || got > c.most {
			t.Errorf("%s: %.2f of what it says is so, want %.2f to %.2f", name, got, c.least, c.most)
		}
	}
}
