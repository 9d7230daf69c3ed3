// Package background sends over links what no player waits for, so that no other traffic of the line feels it: it drives the
// controller of package ledbat with the acks, clocks and buffers of real links (spec/background-transport.md).
//
//   - A Sender is a host: one budget, shared by all its links in turn. What waits while foreground does is the business of its sources.
//   - A Lane is the sending side of one link; its Source is asked for bytes only when they can go out, so what waits can
//     still be promoted, canceled or reordered where it waits.
//   - A Receiver is the other end of a Lane: it takes the messages' headers off and acknowledges them.
//   - A Requester bounds what a host has asked for over all its links, so that many senders to one line yield together.
//
// Lock order: Receiver before Requester; a Sender's lock before those of its sources.
//
// It has its room between transfer and the wire: transfer decides what is sent and asks this package when; neither knows what
// carries it. It is no part of ledbat because that is pure, and none of rtclink because the controller must not depend on pion.
package background

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Link is what is needed of an open link.
type Link interface {
	// Room says whether SCTP takes n more bytes of background now, and how many bytes wait in its buffer.
	Room(n int) (behind int, ok bool)
	// SendBackground hands over a data message, whatever the room. The message is copied.
	SendBackground(message []byte) bool
	// SendAck hands over a message of the ack channel. The message is copied.
	SendAck(message []byte)
	// Payload is what one packet carries of a message, in bytes.
	Payload() int
	// MaxMessage is the largest data message of the agreed plan, in bytes.
	MaxMessage() int
}

// Source is what one link has to send in the background. Its methods are called with the Sender's lock held and must not
// call the Sender.
type Source interface {
	// Waiting says whether there is anything.
	Waiting() bool
	// Next takes the next part of a piece, of at most n bytes of payload; ok is false when nothing waits after all. The
	// payload stays unchanged until it is sent.
	Next(n int) (part peer.Data, ok bool)
}

// Whole is a Source that knows whether a piece of the foreground is half sent.
type Whole interface {
	Source
	Midway() bool
}

// clock counts microseconds from its making, and never goes back.
type clock struct {
	now  func() time.Time
	zero time.Time
}

func newClock(now func() time.Time) clock { return clock{now, now()} }

// µs are never 0, which the controller takes for "never".
func (c clock) micros() int64 { return c.now().Sub(c.zero).Microseconds() + 1 }

// until is how far off a moment of the clock is.
func (c clock) until(at int64) time.Duration { return time.Duration(at-c.micros()) * time.Microsecond }
