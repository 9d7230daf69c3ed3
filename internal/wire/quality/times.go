package quality

import "time"

// Times of a stream and of its connection (spec/probe.md, Times of a stream).
const (
	LeastLate = 2 * time.Second  // a record stays open after sent for four round trips, at least this
	MostLate  = 10 * time.Second // and at most this
	SpareTime = 10 * time.Second // after its time, until the server closes a stream whose sent does not come
	ThinTime  = 5 * time.Second  // after its time, until a client sends no more of a stream
	Patience  = 25 * time.Second // after its time, until a client ends a connection whose stream has not ended
	OpenTime  = 20 * time.Second // until a connection is open
	IdleTime  = 10 * time.Second // of an open connection without a stream
	LateTime  = 20 * time.Second // of an open connection without a further stream
	LineTime  = 180 * time.Second
)

// Late is how long a record stays open after sent on a line with a round trip of so much.
func Late(rtt time.Duration) time.Duration { return min(MostLate, max(LeastLate, 4*rtt)) }
