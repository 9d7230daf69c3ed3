package quality

import (
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
)

// MaxWaiting is how many bytes of a line may be unacknowledged for messages of a stream to go out.
const MaxWaiting = 64 << 10

// spare is how many arrivals beyond its messages a record has: further duplicates are left out.
const spare = 64

// Length is the time of a stream's messages, those at its end included.
func (r Run) Length() time.Duration {
	return time.Duration((r.Messages+Tail)*r.Interval) * time.Microsecond
}

// Wait is how long a sender waits, so long after the beginning, for message n to be due. Half a millisecond at least: what is due then
// goes out together.
func (r Run) Wait(n int64, elapsed time.Duration) time.Duration {
	return max(time.Millisecond/2, time.Duration(n*r.Interval)*time.Microsecond-elapsed)
}

// Tally is what has come of the messages of a stream (spec/probe.md, Streams). It is not safe for concurrent use.
type Tally struct {
	Arrivals []netstat.Arrival // of the messages that figures count, in order, duplicates among them
	Closed   bool              // what comes from now on is lost

	messages int64
	seen     []bool // numbers that have come, those at the end included
	missing  int
}

// NewTally expects the messages of a stream.
func NewTally(r Run) Tally {
	n := int(r.Messages) + Tail
	return Tally{messages: r.Messages, seen: make([]bool, n), missing: n}
}

// Arrived notes a message. It says whether that was the last number that had not come.
func (t *Tally) Arrived(p Probe, at int64) (whole bool) {
	if t.Closed || int(p.Sequence) >= len(t.seen) {
		return false
	}
	if n := int64(p.Sequence); n < t.messages && int64(len(t.Arrivals)) < t.messages+spare {
		t.Arrivals = append(t.Arrivals, netstat.Arrival{Sequence: n, Sent: p.Sent, Received: at})
	}
	if t.seen[p.Sequence] {
		return false
	}
	t.seen[p.Sequence] = true
	t.missing--
	return t.missing == 0
}
