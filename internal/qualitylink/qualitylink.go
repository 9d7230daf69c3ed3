// Package qualitylink carries the messages of the network check's quality test over WebRTC data channels (spec/probe.md, Quality by
// data channel): a Host answers, Dial asks.
//
// It stands on pion's ICE, DTLS and SCTP and not on its peer connection, since what SCTP says has to be held back on its way to DTLS
// (patience.go).
package qualitylink

import (
	"errors"
	"io"
	"time"

	"github.com/pion/logging"
)

// Labels of the channels.
const (
	labelQuality = "quality"
	labelControl = "control"
	labelLane    = "lane"
)

const (
	// receiveBuffer and largest bound what SCTP keeps of a client, bytes, and mostFragments how many fragments of a channel, of which some may
	// have no byte.
	receiveBuffer = 1 << 20
	largest       = 64 << 10
	mostFragments = 16_384
	// minCwnd keeps a loss from stopping a stream whose rate is far below the line's, bytes.
	minCwnd  = 64 << 10
	lostTime = 10 * time.Second
)

// Errors of a line.
var (
	ErrClosed   = errors.New("quality link: closed")
	ErrOpen     = errors.New("quality link: not open in time")
	ErrChannels = errors.New("quality link: the other side opens other channels")
)

// DescriptionError says that an offer or answer cannot be read.
type DescriptionError struct{ Err error }

// Error implements error.
func (e *DescriptionError) Error() string { return "quality link: " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *DescriptionError) Unwrap() error { return e.Err }

// Events of a line. Message, Control and Lane are called by one goroutine each, at most.
type Events interface {
	// Open is called once, before any other.
	Open()
	// Message is of the quality channel and Control of the other one, text if the message was text. b is theirs until they return.
	Message(b []byte, text bool, at time.Time)
	Control(b []byte, text bool)
	// Lane is of channel lane, by one goroutine.
	Lane(b []byte, text bool)
	// Closed is called last, once, with the reason unless this side has closed.
	Closed(err error)
}

// silent is for pion, whose lines say nothing that the errors do not.
var silent = &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}
