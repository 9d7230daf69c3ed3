// Package wsconn is a WebSocket, at the server and at a client: admission, subprotocol, origin check, size limit, keep-alive,
// and a bounded write queue whose slow reader is dropped.
//
// A server's socket that says nothing holds one small goroutine, parked below TLS and WebSocket, and no buffer. When
// something comes, a worker with a warm stack and a buffer takes over, hands the messages to the socket's Receiver one after
// the other, and leaves again. What is to be written is taken to the socket by a worker too, as much as there is at a time.
package wsconn

import (
	"bufio"
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Close codes of spec/tracker-protocol.md.
const (
	CloseDone       = websocket.CloseNormalClosure
	CloseDraining   = websocket.CloseGoingAway
	CloseText       = websocket.CloseUnsupportedData
	ClosePolicy     = websocket.ClosePolicyViolation
	CloseTooBig     = websocket.CloseMessageTooBig
	CloseOverloaded = websocket.CloseTryAgainLater
)

// Error says why a connection ended before its time. Services tell the kinds apart by its methods.
type Error string

// The errors.
const (
	ErrSlow   Error = "wsconn: the reader is too slow"
	ErrTooBig Error = "wsconn: message is too big"
	ErrText   Error = "wsconn: message is not text"
	ErrClosed Error = "wsconn: closed"
)

// Error implements error.
func (e Error) Error() string { return string(e) }

// Slow says that the other side did not read what was sent to it.
func (e Error) Slow() bool { return e == ErrSlow }

// Oversized says that the other side sent a message above the limit, or a flood of pings.
func (e Error) Oversized() bool { return e == ErrTooBig }

// Config of the sockets of one endpoint.
type Config struct {
	Subprotocol  string
	MaxMessage   int64                      // bytes
	WriteQueue   int                        // messages; 256
	WriteBytes   int                        // in the queue, one message apart; 512 KiB
	WriteTimeout time.Duration              // of what is written at a time, at most 64 KiB; 10 s
	Farewell     time.Duration              // in which what is queued goes out once the connection is closed; 5 s
	PingEvery    time.Duration              // 10 s
	PongTimeout  time.Duration              // silence that ends a connection, without even a pong; 30 s
	CheckOrigin  func(r *http.Request) bool // false refuses the handshake with 403
	Crowded      func() bool                // true refuses the handshake with 503, before anything is spent on it
	Refused      func(reason string)        // counts: origin, version, total
	Log          *slog.Logger
}

func (c *Config) complete() {
	c.WriteQueue = cmp.Or(c.WriteQueue, 256)
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 10 * time.Second
	}
	if c.WriteBytes == 0 {
		c.WriteBytes = 512 << 10
	}
	if c.Farewell == 0 {
		c.Farewell = 5 * time.Second
	}
	if c.PingEvery == 0 {
		c.PingEvery = 10 * time.Second
	}
	if c.PongTimeout == 0 {
		c.PongTimeout = 30 * time.Second
	}
	if c.CheckOrigin == nil {
		c.CheckOrigin = func(*http.Request) bool { return true }
	}
	if c.Crowded == nil {
		c.Crowded = func() bool { return false }
	}
	if c.Refused == nil {
		c.Refused = func(string) {}
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
}

// Receiver takes what a server's socket receives. Its methods are called one after the other.
type Receiver interface {
	// Receive acts on a message, whose bytes are good during the call only; false ends the connection.
	Receive(message []byte) bool
	// End is the last call. ErrTooBig (also of a flood of pings), ErrText and ErrSlow name what the other side did wrong, ErrClosed says that
	// Close was called; any other error says that the connection is gone.
	End(err error)
}

// Endpoint is a handler of WebSocket requests and all the connections that came of them.
type Endpoint struct {
	cfg     Config
	accept  func(c *Conn, r *http.Request) Receiver
	up      websocket.Upgrader
	workers workers
	pinger  pinger
}

// Handler upgrades requests. accept is told of each connection before anything is read from it, and returns the receiver of what
// comes; nil is for one that it has closed.
func Handler(cfg Config, accept func(c *Conn, r *http.Request) Receiver) *Endpoint {
	e := newEndpoint(cfg)
	e.accept = accept
	e.up = websocket.Upgrader{
		HandshakeTimeout: e.cfg.WriteTimeout, WriteBufferPool: &sync.Pool{}, Subprotocols: []string{e.cfg.Subprotocol},
		CheckOrigin: func(r *http.Request) bool {
			ok := e.cfg.CheckOrigin(r)
			if !ok {
				e.cfg.Refused("origin")
			}
			return ok
		},
	}
	return e
}

func newEndpoint(cfg Config) *Endpoint {
	cfg.complete()
	e := &Endpoint{cfg: cfg}
	e.pinger.e = e
	return e
}

// ServeHTTP implements http.Handler. It returns once hands are shaken: net/http keeps nothing of the connection.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		http.Error(w, "this address speaks WebSocket", http.StatusUpgradeRequired)
		return
	}
	if e.cfg.Crowded() {
		e.cfg.Refused("total")
		w.Header().Set("Retry-After", "5")
		http.Error(w, "There is no room now; come back in a moment.", http.StatusServiceUnavailable)
		return
	}
	c := &Conn{e: e, server: true}
	ws, err := e.up.Upgrade(&lender{w, c}, r, nil)
	c.br = bufio.Reader{} // nothing was read into it
	if err != nil {
		return // Upgrade has answered
	}
	c.begin(ws)
	if ws.Subprotocol() != e.cfg.Subprotocol {
		e.cfg.Refused("version")
		c.Close(ClosePolicy, "subprotocol "+e.cfg.Subprotocol+" is spoken here")
		c.listen(nil)
		return
	}
	c.listen(e.accept(c, r))
}

// Wait returns when no connection is left. Its caller sees to it that they end and that no new ones come.
func (e *Endpoint) Wait() { e.pinger.open.Wait() }

// Cut ends all connections at once and without a word, as a power cut would.
func (e *Endpoint) Cut() { e.pinger.cut() }

// lender has the library read through the connection's own reader, whose buffer is there only while there is something to
// read, instead of one that it would make for each.
type lender struct {
	http.ResponseWriter
	c *Conn
}

// Hijack implements http.Hijacker.
func (l *lender) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(l.ResponseWriter).Hijack()
	if err != nil || rw.Reader.Buffered() > 0 { // the library refuses a client that does not wait for the answer
		return conn, rw, err
	}
	l.c.br = *bufio.NewReaderSize(conn, leastReader)
	return conn, bufio.NewReadWriter(&l.c.br, rw.Writer), nil
}

// leastReader is what the library takes for a reader that it may keep.
const leastReader = 512
