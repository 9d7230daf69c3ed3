package loadgen

import "time"

// When the library comes back (spec/tracker-protocol.md, "Coming back").
const (
	backoffBase  = 500 * time.Millisecond
	backoffCap   = 30 * time.Second
	lostSpread   = 6 * time.Second // of sessions that are lost without a word
	settledAfter = time.Minute
)

// returning is how often a session has come back.
type returning struct {
	attempt int
	rash    bool // it does not wait for its turn
}

// wait is how long it stays away now: draw is from [0, 1), session how long it was in its swarm, told whether it was sent away.
func (r *returning) wait(draw float64, session time.Duration, told bool) time.Duration {
	if session >= settledAfter {
		r.attempt = 0
	}
	spread := min(backoffCap, backoffBase<<r.attempt)
	if session > 0 && !told && !r.rash {
		spread = max(spread, lostSpread)
	}
	r.attempt = min(r.attempt+1, 16)
	return time.Duration(draw * float64(spread))
}
