package viewer

import "time"

// creditTime is how long requests of the player wait for peers of which nothing is known, in all, until a piece has matched its
// certificate (spec/schedule.md, Waiting).
const creditTime = 750 * time.Millisecond

// credit counts that time.
type credit struct {
	spent   time.Duration
	since   time.Time
	waiting bool
	proven  bool
}

// settle counts up to now; waiting is whether a request waits from now on.
func (c *credit) settle(now time.Time, waiting bool) {
	if c.waiting {
		c.spent += now.Sub(c.since)
	}
	c.since, c.waiting = now, waiting
}

// left is what is left; known is false once a piece has been verified.
func (c *credit) left(now time.Time) (left time.Duration, known bool) {
	c.settle(now, c.waiting)
	return max(0, creditTime-c.spent), !c.proven
}

// leftUs is what is left as the schedule has it.
func (c *credit) leftUs(now time.Time) int64 {
	left, known := c.left(now)
	if !known {
		return -1
	}
	return left.Microseconds()
}
