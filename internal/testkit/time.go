package testkit

import (
	"sync"
	"testing"
	"time"
)

// Patience of a test for what takes milliseconds.
const Patience = 10 * time.Second

// Clock is real time, moved ahead by the test.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
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
