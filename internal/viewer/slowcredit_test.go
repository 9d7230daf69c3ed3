package viewer

import (
	"testing"
	"time"
)

// TestSlowCreditComesBackWhileThePlayerAsksForNothing: and what waits uses it up.
func TestSlowCreditComesBackWhileThePlayerAsksForNothing(t *testing.T) {
	now := worldBegin
	r := newSlowCredit(&credit{proven: true}, now)
	step := func(d time.Duration, left int64, waiting, idle bool) {
		t.Helper()
		now = now.Add(d)
		if got := r.leftUs(now); got != left {
			t.Errorf("%d µs are left, want %d", got, left)
		}
		r.settle(now, waiting, idle)
	}
	step(0, 1_000_000, true, false)
	step(700*time.Millisecond, 300_000, false, false) // the origin sends
	step(time.Second, 300_000, false, true)
	step(200*time.Millisecond, 500_000, true, false)
	step(time.Minute, 0, false, true)
	step(time.Minute, 1_000_000, false, false)
}

// TestSlowCreditBeginsWithWhatIsLeftOfTheCredit: the two times are not added, unless a piece has been verified already.
func TestSlowCreditBeginsWithWhatIsLeftOfTheCredit(t *testing.T) {
	c, now := credit{}, worldBegin
	c.settle(now, true)
	now = now.Add(400 * time.Millisecond)
	r := newSlowCredit(&c, now)
	if got := r.leftUs(now); got != (creditTime - 400*time.Millisecond).Microseconds() {
		t.Errorf("%d µs are left", got)
	}
	c.proven = true
	r = newSlowCredit(&c, now)
	if got := r.leftUs(now); got != 1_000_000 {
		t.Errorf("%d µs are left once a piece has been verified", got)
	}
}
