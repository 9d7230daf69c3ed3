package wsconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/gorilla/websocket"
)

// DialConfig says how a client connects.
type DialConfig struct {
	// NetDial opens the TCP connection, for clients that live in a network namespace of their own; nil is the process's.
	NetDial func(ctx context.Context, network, address string) (net.Conn, error)
	Header  http.Header
	TLS     *tls.Config // of wss addresses; nil: the system's roots
}

// ErrSubprotocol is of a server that opened a WebSocket and does not speak the subprotocol.
var ErrSubprotocol = errors.New("the server does not speak")

// StatusError is of a server that answered with an HTTP status instead of a WebSocket.
type StatusError struct {
	Code   int
	Status string
}

func (e *StatusError) Error() string {
	return "the server answered " + e.Status + " instead of a WebSocket"
}

// Dial opens a connection to a server that speaks cfg.Subprotocol. CheckOrigin and Refused of cfg are not used. Close, and
// then Wait, when it is no longer needed.
func Dial(ctx context.Context, url string, cfg Config, dial DialConfig) (*Conn, error) {
	e := newEndpoint(cfg)
	cfg = e.cfg
	d := websocket.Dialer{
		NetDialContext: dial.NetDial, HandshakeTimeout: cfg.WriteTimeout, ReadBufferSize: 4096, WriteBufferPool: &sync.Pool{},
		Subprotocols: []string{cfg.Subprotocol}, TLSClientConfig: dial.TLS,
	}
	ws, response, err := d.DialContext(ctx, url, dial.Header)
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		if response != nil && errors.Is(err, websocket.ErrBadHandshake) {
			return nil, fmt.Errorf("wsconn: dial %s: %w", url, &StatusError{response.StatusCode, response.Status})
		}
		return nil, fmt.Errorf("wsconn: dial %s: %w", url, err)
	}
	if ws.Subprotocol() != cfg.Subprotocol {
		_ = ws.Close()
		return nil, fmt.Errorf("wsconn: dial %s: %w %s", url, ErrSubprotocol, cfg.Subprotocol)
	}
	c := &Conn{e: e}
	c.begin(ws)
	return c, nil
}

// Wait returns when nothing of a client's connection runs any more. The end comes by Close.
func (c *Conn) Wait() { c.e.Wait() }
