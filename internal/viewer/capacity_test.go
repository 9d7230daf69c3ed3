package viewer

import (
	"math"
	"testing"
	"time"
)

// at is a moment so many seconds after a beginning.
func at(seconds float64) time.Time {
	return worldBegin.Add(time.Duration(seconds * float64(time.Second)))
}

// steady has measured a line of 4 Mbit/s ten times.
func steady() *capacity {
	c := &capacity{}
	for n := range 10 {
		c.sample(1_000_000, 2*time.Second, 0, at(float64(2*n)))
	}
	return c
}

func TestCapacityOfASteadyLine(t *testing.T) {
	c := &capacity{}
	if c.sample(65_535, time.Second, 0, at(1)); c.estimate() != 0 || c.told() != 0 {
		t.Error("too little to say something")
	}
	for n := 1; n <= 10; n++ {
		c.sample(500_000, time.Second, 0, at(float64(n)))
		if want := 4e6 * (1 + 0.0625*math.Pow(0.5, float64(n)/3)); math.Abs(c.told()-want) > 1 || math.Abs(c.estimate()-4e6) > 1 {
			t.Errorf("after %d s: told %.0f, want %.0f; estimate %.0f", n, c.told(), want, c.estimate())
		}
	}
}

func TestCapacityFallsFasterThanItRises(t *testing.T) {
	c := steady()
	if c.sample(1_000_000, 8*time.Second, 0, at(28)); c.told() > 1.7e6 {
		t.Errorf("told %.0f of a line that fell to 1 Mbit/s", c.told())
	}
	for range 2 {
		c.sample(1_000_000, time.Second, 0, at(29))
	}
	if c.told() > 4.5e6 {
		t.Errorf("told %.0f after two quick ones", c.told())
	}
	long, short := steady(), steady()
	long.sample(1_000_000, 200*time.Millisecond, 0, at(18+600))
	short.sample(1_000_000, 200*time.Millisecond, 0, at(18.2))
	if long.told() < 10e6 || short.told() > 5e6 {
		t.Errorf("told %.0f and %.0f: a sample after a long time counts for more", long.told(), short.told())
	}
}

func TestTransfersBesidePeersOnlyBoundTheCapacity(t *testing.T) {
	c := &capacity{}
	if c.sample(500_000, 2*time.Second, 500_000, at(1)); c.estimate() != 0 {
		t.Error("there is nothing to hold it against")
	}
	c = steady()
	before, seen := c.told(), c.at
	c.sample(500_000, 2*time.Second, 500_000, at(30)) // half of the line
	c.sample(500_000, time.Second, 5_000_000, at(31)) // all of it, beside a wider one
	if c.told() != before || c.at != seen {
		t.Errorf("told %.0f, before %.0f", c.told(), before)
	}
	if c.sample(2_000_000, 2*time.Second, 200_000, at(32)); c.told() < before+0.3e6 {
		t.Errorf("told %.0f though the origin alone sent 8 Mbit/s", c.told())
	}
	for range 5 {
		c.sample(200_000, 4*time.Second, 200_000, at(33))
	}
	if c.told() > 1.3e6 {
		t.Errorf("told %.0f though no more came in all", c.told())
	}
}
