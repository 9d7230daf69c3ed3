package cluster

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// channel loses, repeats and reorders what goes through it.
type channel struct {
	r               *rand.Rand
	lose, twice     float64
	on              []passing
	from, to        time.Duration // that something is on its way
	downFrom, downs time.Time     // of an outage
}

type passing struct {
	at time.Time
	f  func()
}

func (c *channel) send(now time.Time, f func()) {
	if now.After(c.downFrom) && now.Before(c.downs) {
		return
	}
	for n := 0; n < 2; n++ {
		if c.r.Float64() >= c.lose {
			c.on = append(c.on, passing{now.Add(c.from + time.Duration(c.r.Int64N(int64(c.to-c.from+1)))), f})
		}
		if c.r.Float64() >= c.twice {
			return
		}
	}
}

func (c *channel) deliver(now time.Time) {
	slices.SortStableFunc(c.on, func(a, b passing) int { return a.at.Compare(b.at) })
	for len(c.on) > 0 && !c.on[0].at.After(now) {
		f := c.on[0].f
		c.on = c.on[1:]
		f()
	}
}

// TestStreams lets messages through channels of every kind: each arrives once and in order, or is given up by its sender.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name        string
		lose, twice float64
		from, to    time.Duration
		outage      time.Duration
		allArrive   bool
	}{
		{"quick", 0, 0, 0, 0, 0, true},
		{"slow and reordering", 0, 0.2, 0, 200 * time.Millisecond, 0, true},
		{"losing a third", 0.33, 0.2, 0, 50 * time.Millisecond, 0, false},
		{"gone for a second", 0, 0, 0, 20 * time.Millisecond, time.Second, true},
		{"gone for a minute", 0.05, 0, 0, 20 * time.Millisecond, time.Minute, false},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			line := &channel{r: r, lose: c.lose, twice: c.twice, from: c.from, to: c.to, downFrom: start.Add(time.Second), downs: start.Add(time.Second + c.outage)}
			var out Outbox[int]
			var in Inbox[int]
			var got, lost []int
			said := 0
			say := func(now time.Time, n, base uint64, m int) {
				said++
				line.send(now, func() { got = append(got, in.Take(n, base, m)...) })
			}
			const all = 500
			now, next := start, 0
			for ; next < all || out.Waiting() > 0; now = now.Add(10 * time.Millisecond) {
				if now.Sub(start) > 5*time.Minute {
					t.Fatalf("%s: %d messages wait for ever", c.name, out.Waiting())
				}
				for n := r.IntN(4); n > 0 && next < all; n-- {
					if n, ok := out.Add(next, now); ok {
						say(now, n, out.Base(), next)
					} else {
						lost = append(lost, next)
					}
					next++
				}
				line.deliver(now)
				if in.Next() > 0 {
					acked, at := in.Next(), now
					line.send(now, func() { out.Acked(acked, at) })
				}
				again, gone := out.Due(now, true)
				for _, m := range again {
					say(now, m.N, out.Base(), m.M)
				}
				lost = append(lost, gone...)
			}
			line.deliver(now.Add(time.Hour))
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Fatalf("%s, seed %d: out of order or twice: %v", c.name, seed, got)
			}
			seen := map[int]bool{}
			for _, m := range append(slices.Clone(got), lost...) {
				seen[m] = true
			}
			if len(seen) != all {
				t.Fatalf("%s, seed %d: %d of %d neither arrived nor were given up", c.name, seed, all-len(seen), all)
			}
			if c.allArrive && (len(lost) > 0 || len(got) != all) {
				t.Errorf("%s, seed %d: %d arrived, %d given up", c.name, seed, len(got), len(lost))
			}
			if c.name == "quick" && said != all {
				t.Errorf("nothing was lost, and %d messages were said for %d", said, all)
			}
		}
	}
}

func TestOutboxIsBounded(t *testing.T) {
	var o Outbox[int]
	for i := range maxKept {
		if n, ok := o.Add(i, start); !ok || n != uint64(i+1) || o.Base() != 1 {
			t.Fatalf("message %d: number %d, %v", i, n, ok)
		}
	}
	if _, ok := o.Add(0, start); ok {
		t.Error("a message too many was kept")
	}
	o.Acked(11, start)
	o.Acked(5, start) // an old one
	o.Acked(1<<60, start.Add(-1))
	if o.Waiting() != 0 || o.Base() != maxKept+1 {
		t.Errorf("%d wait, base %d", o.Waiting(), o.Base())
	}
	o.Add(1, start)
	for at := start; at.Before(start.Add(GiveUp)); at = at.Add(100 * time.Millisecond) {
		if again, lost := o.Due(at, false); len(again)+len(lost) > 0 {
			t.Fatal("said while nothing can be said")
		}
	}
	if _, lost := o.Due(start.Add(GiveUp), false); len(lost) != 1 || o.Waiting() != 0 {
		t.Error("kept for ever while nothing can be said")
	}
}

func TestInboxIsBounded(t *testing.T) {
	var i Inbox[int]
	if got := i.Take(3, 3, 0); len(got) != 1 || i.Next() != 4 {
		t.Fatalf("a stream whose beginning was not heard begins at its base: %v, next %d", got, i.Next())
	}
	for n := range uint64(3 * maxAhead) {
		if got := i.Take(5+n, 4, 0); got != nil {
			t.Fatalf("number %d did not wait", 5+n)
		}
	}
	if len(i.ahead) != maxAhead-1 {
		t.Errorf("%d messages are held", len(i.ahead))
	}
	if got := i.Take(4, 4, 0); len(got) != maxAhead {
		t.Errorf("%d messages in one go", len(got))
	}
	if got := i.Take(1<<62, 1<<62, 0); len(got) != 1 || i.Next() != 1<<62+1 || len(i.ahead) != 0 {
		t.Errorf("what is below the base is waited for: %v, next %d", got, i.Next())
	}
}
