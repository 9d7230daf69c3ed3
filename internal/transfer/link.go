// Package transfer moves pieces between two peers over a link: hello and keepalive, the upload queues of the
// serving side with their lanes, and the requests of the fetching side with verification. It knows messages
// (package wire/peer) and pieces, and nothing of WebRTC: a link is the port below, which rtclink satisfies.
package transfer

import "github.com/leeway-video/leeway/internal/wire/peer"

// Candidate is one trickled ICE candidate; End says that there are no more.
type Candidate struct {
	Candidate string
	Mid       string
	Line      uint16
	End       bool
}

// Description is an offer or an answer: session description and channel plan.
type Description struct {
	SDP  string
	Plan peer.Plan
}

// Path says how a link's packets travel.
type Path string

// The paths.
const (
	Direct Path = "direct"
	Relay  Path = "relay"
)

// Link is an open or opening connection to one peer. All methods may be called from any goroutine, from the
// callbacks of LinkEvents too.
type Link interface {
	// SendControl queues a control message. After the close it does nothing; a peer that does not read its
	// control messages is closed (over-limit) instead of buffered for. The message is copied.
	SendControl(message []byte)
	// SendData hands a data message to the transport, or returns false when the link's bound of bytes in flight
	// is reached; LinkEvents.Drain says when to try again. The message is copied.
	SendData(message []byte) bool
	// MaxMessage is the largest data message of the agreed plan, in bytes.
	MaxMessage() int
	// Path is known once the link is open.
	Path() Path
	// AddCandidate hands in a candidate of the other side.
	AddCandidate(Candidate) error
	// Close begins the end of the link. farewell, if any, is a control message that still goes out. It does not
	// wait; Done does.
	Close(reason peer.CloseReason, farewell []byte)
	// Done is closed when nothing of the link runs any more.
	Done() <-chan struct{}
}

// Cutter is what a link is besides that knows how long messages are that suit its path now.
type Cutter interface {
	// Message is the length in bytes of a data message to cut pieces into, at most the link's MaxMessage.
	Message() int
}

// Holder is what a link is besides that says when long control messages are better held back.
type Holder interface {
	// ControlRoom says whether the other side has read nearly all that was said. Where it has not, LinkEvents.Drain says when to
	// try again.
	ControlRoom() bool
}

// HasControlRoom says whether a long control message may go out over a link now.
func HasControlRoom(l Link) bool {
	h, ok := l.(Holder)
	return !ok || h.ControlRoom()
}

// LinkEvents receives what happens on one link. Control calls come in order from one goroutine; Data calls may come
// from several. The slices are valid during the call only.
type LinkEvents interface {
	Candidate(Candidate)
	Open()
	Control(message []byte)
	Data(message []byte)
	// Drain says that there is room again, for data or for control messages; it may come while Open runs.
	Drain()
	// Closed comes exactly once, last.
	Closed(reason peer.CloseReason)
}

// PathEvents is what the receiver of a link's events has besides when what it measures of the path matters to it.
type PathEvents interface {
	// Moved says that packets take another way from now on: ICE has selected a pair of addresses, the first one too.
	Moved()
}

// AckEvents is what the receiver of a link's events has besides when it takes part in the background transport.
type AckEvents interface {
	// Ack is a message of the ack channel. Like Data's, the slice is valid during the call only.
	Ack(message []byte)
}
