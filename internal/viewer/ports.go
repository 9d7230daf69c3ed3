package viewer

import (
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/transfer"
)

// Loop runs everything of one viewer, one thing after the other, and is its clock. Nothing in a viewer is locked: what
// happens elsewhere (a socket, a link, a fetch) is posted.
type Loop interface {
	Now() time.Time
	// Post has f run on the loop. It may be called from any goroutine and does not wait.
	Post(f func())
	// After posts f once d has passed, unless stop comes first.
	After(d time.Duration, f func()) (stop func())
	// Go runs work beside the loop, and then posts done.
	Go(work, done func())
}

// Dialer opens the socket to a tracker. What happens on it is told to events, from any goroutine.
type Dialer interface {
	Dial(url, origin string, events SocketEvents) Socket
}

// SocketEvents hears of a socket: Opened at most once, then messages, Lost once.
type SocketEvents interface {
	Opened()
	Message(text []byte)
	Lost()
}

// Socket is a WebSocket that is open or opening. Nothing waits.
type Socket interface {
	Send(text []byte)
	// Close ends it; Lost may still come.
	Close()
}

// ICEServer is a STUN or TURN server.
type ICEServer struct {
	URLs                 []string
	Username, Credential string
}

// LinkSettings is what the tracker says about links.
type LinkSettings struct {
	Servers   []ICEServer
	RelayOnly bool
}

// Links makes links to peers. Offer and Answer may take a moment, and are called beside the loop.
type Links interface {
	Offer(settings LinkSettings, events transfer.LinkEvents) (OfferedLink, transfer.Description, error)
	Answer(settings LinkSettings, offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error)
}

// OfferedLink is a link of this side's making.
type OfferedLink interface {
	transfer.Link
	// Accept goes on with the other side's answer.
	Accept(answer transfer.Description) error
}

// Fetch is one request to the origin.
type Fetch struct {
	URL         string
	Ranged      bool // only bytes First to Last, inclusive
	First, Last int64
	MaxBytes    int64    // more is ErrTooLarge; 0: it may have any length that Origin takes
	Growing     *Growing // of a segment that may still be made; nil: it is none
}

// Growing is what there is to a request for a segment that may still be made.
type Growing struct {
	Plays time.Duration // how long it plays
	// Heard hears all of the answer as it comes, from any goroutine, and of the first byte already whether it is unshared (Fetched). b stays
	// unchanged.
	Heard func(b []byte, unshared bool)
}

// ErrTooLarge is an answer of an origin with more bytes than it may have.
var ErrTooLarge = errors.New("the answer is too large")

// Fetched is the origin's answer.
type Fetched struct {
	Data     []byte
	URL      string        // after redirects
	Transfer time.Duration // from the first byte to the last
	Unshared bool          // the response says that it is not to be stored: it is played, and neither kept nor passed on
}

// Origin fetches over HTTP as a player does. done comes once, from any goroutine, also after a cancel; so does
// progress, with the bytes that are in.
type Origin interface {
	Get(f Fetch, progress func(loaded int64), done func(Fetched, error)) (cancel func())
}

// Ports is what a viewer is joined to.
type Ports struct {
	Loop   Loop
	Dialer Dialer // nil: no tracker, the origin alone
	Links  Links
	Origin Origin
}
