package viewer

import "time"

// slowCreditTime is how long requests of the player wait at most for holders that are not known to send enough, once a piece has matched its
// certificate; what waited before counts (spec/schedule.md, Waiting).
const slowCreditTime = time.Second

// slowCredit counts that time, for a title: what waits uses it up, and it comes back while the player asks for nothing.
type slowCredit struct {
	left          time.Duration
	since         time.Time
	waiting, idle bool
}

// newSlowCredit begins with what is left of the credit: what waited for the engine, or for a first piece, has been waited already.
func newSlowCredit(c *credit, now time.Time) slowCredit {
	left, bounded := c.left(now)
	if !bounded {
		left = slowCreditTime
	}
	return slowCredit{left: left, since: now}
}

// settle counts up to now; from now on a request waits, or the player asks for nothing, or neither.
func (t *slowCredit) settle(now time.Time, waiting, idle bool) {
	switch took := now.Sub(t.since); {
	case t.waiting:
		t.left = max(0, t.left-took)
	case t.idle:
		t.left = min(slowCreditTime, t.left+took)
	}
	t.since, t.waiting, t.idle = now, waiting, idle
}

// leftUs is what is left as the schedule has it.
func (t *slowCredit) leftUs(now time.Time) int64 {
	t.settle(now, t.waiting, t.idle)
	return t.left.Microseconds()
}
