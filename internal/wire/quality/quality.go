// Package quality reads and writes the messages of the network check's data channels (spec/probe.md, Quality by data channel).
//
// The TypeScript twin is web/packages/netcheck/src/wire; both read spec/vectors/quality.json.
package quality

import "fmt"

// Limits of messages and streams.
const (
	ProbeSize   = 16   // bytes of a probe's header
	EchoSize    = 32   // bytes of an echo's header
	MaxSize     = 1152 // bytes of a message: one packet in every stack
	MaxMessages = 16384
	Tail        = 3 // messages at the end of a stream that no figure counts
	MinInterval = 1000
	MaxTime     = 60_000_000 // µs, messages × interval of a stream
	MinLoad     = 1_000_000  // µs, of a load that gives way
	MaxLoad     = 30_000_000 // µs
	// Bounds (µs) of the queue that the host of a load bears.
	LeastTarget = 7_000
	MostTarget  = 10_000
	MaxArrivals = 512 // of one record message
	MaxMarks    = 64
	MaxDSCP     = 63
	MaxControl  = 32768 // bytes of a control message
	MaxClock    = 1<<53 - 1
)

const maxSequence = MaxMessages + Tail - 1

// Reason says in which way a message is malformed: a closed set, the same in both languages.
type Reason string

// The reasons.
const (
	ReasonLong     Reason = "long"
	ReasonShort    Reason = "short"
	ReasonType     Reason = "type"
	ReasonReserved Reason = "reserved"
	ReasonRange    Reason = "range"
	ReasonJSON     Reason = "json"
	ReasonField    Reason = "field"
)

// MalformedError says that a message ends its connection. It quotes nothing of the message.
type MalformedError struct {
	Reason Reason
	Field  string // with ReasonField
}

// Error implements error.
func (e *MalformedError) Error() string {
	if e.Field != "" {
		return "quality message is malformed: " + e.Field + " is missing, of another kind or out of its range"
	}
	return fmt.Sprintf("quality message is malformed: %s", e.Reason)
}

func malformed(r Reason) error { return &MalformedError{Reason: r} }

func badField(name string) error { return &MalformedError{Reason: ReasonField, Field: name} }
