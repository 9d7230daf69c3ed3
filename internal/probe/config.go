// Package probe is the service behind `leeway probe serve`: tests of a client's line by ndt7 and by HTTP (spec/probe.md), and what
// bounds them. WebSockets, TLS and TCP_INFO are ports of it.
//
// A test is a request. It holds a place among the tests of its address and of all, pays for its bytes before they are sent, and
// is over after 13 seconds whatever the client does.
package probe

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/netstat"
	signaling "github.com/leeway-video/leeway/internal/wire/signal"
)

// Subprotocol is ndt7's.
const Subprotocol = "net.measurementlab.ndt.v7"

// MaxMessage is the largest WebSocket message that is taken.
const MaxMessage = 16 << 20

// Close codes.
const (
	closeDone     = 1000
	closePolicy   = 1008
	closeTooBig   = 1009
	closeTryAgain = 1013
)

// Socket is a WebSocket. One goroutine sends, one other calls Next and Read.
type Socket interface {
	// Send writes a message, binary or text.
	Send(binary bool, message []byte) error
	// Next waits for a message; io.EOF says that the client has closed.
	Next() (binary bool, err error)
	// Read reads the message that Next announced; io.EOF is its end.
	io.Reader
	// SetDeadline ends reading and writing; before either begins.
	SetDeadline(t time.Time) error
	// Farewell writes a close frame, until a time.
	Farewell(code int, reason string, until time.Time) error
	// Linger reads on for a moment, where the client may still be sending; in the place of Next and Read.
	Linger()
	// Close ends the connection, from any goroutine; cut throws away what has not been sent.
	Close(cut bool)
	// Conn is the connection below.
	Conn() net.Conn
}

// Config of a server. Zero values take those of Defaults.
type Config struct {
	Upgrade func(w http.ResponseWriter, r *http.Request) (Socket, error) // answers with an error if it returns one
	Offers  func(r *http.Request) bool                                   // whether a request asks for a WebSocket of Subprotocol
	Look    func(c net.Conn) (netstat.TCPInfo, bool)                     // nil: TCP_INFO is not told
	Mark    func(c net.Conn, dscp int) error                             // marks what a connection sends; nil: it cannot
	// Answer makes a line of an offer, and its answer; an *OfferError blames the offer. nil: there are no data channels.
	Answer func(asked Asked, events LineEvents) (Line, string, error)
	// Authorize says whether a token is good for a test; nil: none is asked for.
	Authorize func(token string) error

	STUN []string // HOST:PORT of STUN servers that clients may ask; an empty host is this server's

	// Relays gives a client ICE servers with credentials, by its address; nil: it is told none.
	Relays func(client netip.Addr) []signaling.ICEServer

	MaxTests      int   // at a time
	MaxPerAddress int   // of those, of one address
	DailyBytes    int64 // of one address, both directions

	Version string
	Log     *slog.Logger
	Metrics metric.Sink
}

// Defaults is what zero values of a Config stand for.
func Defaults() Config { return Config{MaxTests: 64, MaxPerAddress: 16, DailyBytes: 50 << 30} }

func (c *Config) complete() error {
	if c.Upgrade == nil || c.Offers == nil {
		return errors.New("probe: no WebSocket")
	}
	if c.Look == nil {
		c.Look = func(net.Conn) (netstat.TCPInfo, bool) { return netstat.TCPInfo{}, false }
	}
	if c.Relays == nil {
		c.Relays = func(netip.Addr) []signaling.ICEServer { return nil }
	}
	d := Defaults()
	c.MaxTests = cmp.Or(c.MaxTests, d.MaxTests)
	c.MaxPerAddress = cmp.Or(c.MaxPerAddress, d.MaxPerAddress)
	c.DailyBytes = cmp.Or(c.DailyBytes, d.DailyBytes)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Metrics = cmp.Or(c.Metrics, metric.Discard)
	return nil
}
