package testkit

import (
	"sync"
	"testing"
	"time"
)

// Patience of a test for what takes milliseconds.
const Patience = 10 * time.Second

// Clock is real time, moved ahead by the test, until it is stopped.
type Clock struct {
	mu      sync.Mutex
	ahead   time.Duration
	stopped time.Time // zero while it goes
}

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped.Add(c.ahead)
	}
	return time.Now().Add(c.ahead)
}

// Stop has time pass by Move alone, from now on.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = time.Now()
}

// Move moves the clock ahead.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// Eventually waits for a condition that another goroutine brings about.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(Patience); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("never: " + what)
		}
	}
}
