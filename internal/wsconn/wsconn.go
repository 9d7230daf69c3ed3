// Package wsconn is a WebSocket, at the server and at a client: subprotocol, origin check, size limit, keep-alive, and a bounded write
// queue whose slow reader is dropped.
package wsconn

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Close codes of spec/tracker-protocol.md.
const (
	CloseDone       = websocket.CloseNormalClosure
	CloseDraining   = websocket.CloseGoingAway
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

// Oversized says that the other side sent a message above the limit.
func (e Error) Oversized() bool { return e == ErrTooBig }

// Config of the sockets of one endpoint.
type Config struct {
	Subprotocol  string
	MaxMessage   int64                      // bytes
	WriteQueue   int                        // messages; 256
	WriteBytes   int                        // in the queue, one message apart; 512 KiB
	WriteTimeout time.Duration              // of one message; 10 s
	Farewell     time.Duration              // in which what is queued goes out once the connection is closed; 5 s
	PingEvery    time.Duration              // 10 s
	PongTimeout  time.Duration              // silence that ends a connection, without even a pong; 30 s
	CheckOrigin  func(r *http.Request) bool // false refuses the handshake with 403
	Refused      func(reason string)        // counts: origin, version
	Log          *slog.Logger
}

var writeBuffers sync.Pool

// Handler upgrades requests and gives each connection to serve, which returns when the session is over.
func Handler(cfg Config, serve func(c *Conn, r *http.Request)) http.Handler {
	cfg.complete()
	up := websocket.Upgrader{
		HandshakeTimeout: cfg.WriteTimeout, ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &writeBuffers,
		Subprotocols: []string{cfg.Subprotocol},
		CheckOrigin: func(r *http.Request) bool {
			ok := cfg.CheckOrigin(r)
			if !ok {
				cfg.Refused("origin")
			}
			return ok
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !websocket.IsWebSocketUpgrade(r) {
			http.Error(w, "this address speaks WebSocket", http.StatusUpgradeRequired)
			return
		}
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return // Upgrade has answered
		}
		c := newConn(ws, cfg, true)
		if ws.Subprotocol() != cfg.Subprotocol {
			cfg.Refused("version")
			c.Close(ClosePolicy, "subprotocol "+cfg.Subprotocol+" is spoken here")
			c.wait()
			return
		}
		serve(c, r)
		c.Close(CloseDone, "")
		c.wait()
	})
}
