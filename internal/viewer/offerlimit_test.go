package viewer

import (
	"testing"
	"time"
)

func TestOffersAreHeardAtOnceAndThenAtARate(t *testing.T) {
	w := newWorld()
	o := offerLimit{loop: w}
	heard := func(tries int) (n int) {
		for range tries {
			if o.hears() {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		after time.Duration
		heard int
	}{
		{0, offersAtOnce}, {0, 0}, {time.Second, offersPerSecond}, {time.Second / offersPerSecond, 1}, {time.Hour, offersAtOnce}, {2 * time.Second, 2 * offersPerSecond},
	} {
		w.run(c.after)
		if n := heard(2 * offersAtOnce); n != c.heard {
			t.Errorf("after %v: %d offers are heard, want %d", c.after, n, c.heard)
		}
	}
}
