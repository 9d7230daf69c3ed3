package wsconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// maxControls is how many pings and pongs a bulk socket takes.
const maxControls = 1000

// bulkBuffer is what is read from a bulk socket, or copied to it, at a time.
const bulkBuffer = 64 << 10

// BulkConfig is of sockets that carry as much as the line does.
type BulkConfig struct {
	Subprotocol string
	MaxMessage  int64         // bytes
	Handshake   time.Duration // in which the answer has to be written
}

// Bulk is a WebSocket for measuring a line. Unlike Conn it has no queue, no pings and no goroutine: one goroutine of its owner writes
// and another one reads, each as fast as the line does, until the owner's deadline.
type Bulk struct {
	ws   *websocket.Conn
	body io.Reader // of the message that is read
	code int       // of the other side's close; 0: none

	// Of the goroutine that reads: pings and pongs, and when a ping was answered.
	controls int
	answered time.Time
}

// Bulk answers a request with a bulk socket. If it cannot, it has answered with an error, and returns one.
func (c BulkConfig) Bulk(w http.ResponseWriter, r *http.Request) (*Bulk, error) {
	up := websocket.Upgrader{
		HandshakeTimeout: c.Handshake, ReadBufferSize: bulkBuffer, WriteBufferSize: bulkBuffer, Subprotocols: []string{c.Subprotocol},
		CheckOrigin: func(*http.Request) bool { return true }, // a measurement reads nothing of a user's
	}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
	}
	return c.bulk(ws), nil
}

func (c BulkConfig) bulk(ws *websocket.Conn) *Bulk {
	b := &Bulk{ws: ws}
	ws.SetReadLimit(c.MaxMessage)
	ws.SetCloseHandler(func(int, string) error { return nil }) // the owner answers
	ws.SetPongHandler(func(string) error { return b.control() })
	ws.SetPingHandler(func(data string) error {
		now := time.Now()
		if now.Sub(b.answered) >= pongEvery {
			b.answered = now
			_ = ws.WriteControl(websocket.PongMessage, []byte(data), now.Add(time.Second))
		}
		return b.control()
	})
	return b
}

// control counts a ping or pong, which pass by every limit of messages.
func (b *Bulk) control() error {
	if b.controls++; b.controls > maxControls {
		return ErrTooBig
	}
	return nil
}

// OffersBulk says whether a request asks for a WebSocket of a subprotocol.
func OffersBulk(r *http.Request, subprotocol string) bool {
	return websocket.IsWebSocketUpgrade(r) && slices.Contains(websocket.Subprotocols(r), subprotocol)
}

// Conn is the connection below, TLS and all.
func (b *Bulk) Conn() net.Conn { return b.ws.NetConn() }

// SetDeadline ends reading and writing at a time. It is for before either begins.
func (b *Bulk) SetDeadline(t time.Time) error {
	return errors.Join(b.ws.SetWriteDeadline(t), b.ws.SetReadDeadline(t))
}

// Send writes a message. Only one goroutine may.
func (b *Bulk) Send(binary bool, message []byte) error {
	kind := websocket.TextMessage
	if binary {
		kind = websocket.BinaryMessage
	}
	return b.ws.WriteMessage(kind, message)
}

// Next waits for a message and returns its kind; Read reads it. Only one goroutine may call the two. What is left of the message
// before is skipped. io.EOF says that the other side has closed as it should; ErrTooBig that a message is too large.
func (b *Bulk) Next() (binary bool, err error) {
	kind, body, err := b.ws.NextReader()
	if err != nil {
		if closed := (*websocket.CloseError)(nil); errors.As(err, &closed) {
			b.code = closed.Code
		}
		return false, bulkError(err)
	}
	b.body = body
	return kind == websocket.BinaryMessage, nil
}

// Code is the code of the other side's close, once Next has returned an error; 0: there was none.
func (b *Bulk) Code() int { return b.code }

// Read reads the message that Next returned; io.EOF is its end.
func (b *Bulk) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil && err != io.EOF {
		err = bulkError(err)
	}
	return n, err
}

// bulkError tells a close and a message that is too large from other errors.
func bulkError(err error) error {
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return io.EOF
	case errors.Is(err, websocket.ErrReadLimit):
		return ErrTooBig
	}
	return err
}

// Farewell writes a close frame with a code and reason, until a time. The goroutine that writes may call it, or any when that has ended.
func (b *Bulk) Farewell(code int, reason string, until time.Time) error {
	return b.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), until)
}

// Linger reads on for a moment and throws away what comes, so that a sender whose messages are not wanted hears the farewell before
// its connection breaks. The goroutine that reads may call it, or any when that has ended.
func (b *Bulk) Linger() {
	c := b.ws.NetConn()
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
}

// Close ends the connection, from any goroutine. If it is cut, what the kernel still holds of it is thrown away.
func (b *Bulk) Close(cut bool) {
	if tcp, ok := lowest(b.ws.NetConn()).(interface{ SetLinger(int) error }); ok && cut {
		_ = tcp.SetLinger(0)
	}
	_ = b.ws.NetConn().Close()
}

// lowest is the connection below TLS.
func lowest(c net.Conn) net.Conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c
}

// RefusedError is a server's answer instead of a WebSocket.
type RefusedError struct {
	Status     int
	RetryAfter string // as the server wrote it
	Text       string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("wsconn: dial: the server answered %d %s: %s", e.Status, http.StatusText(e.Status), e.Text)
}

// DialBulk opens a bulk socket to a server, for a client. The error of a server that refuses is a *RefusedError.
func (c BulkConfig) DialBulk(ctx context.Context, url string, dial DialConfig) (*Bulk, error) {
	d := websocket.Dialer{
		NetDialContext: dial.NetDial, HandshakeTimeout: c.Handshake, ReadBufferSize: bulkBuffer, WriteBufferSize: bulkBuffer, Subprotocols: []string{c.Subprotocol}, TLSClientConfig: dial.TLS,
	}
	ws, response, err := d.DialContext(ctx, url, dial.Header)
	if err != nil {
		if response == nil {
			return nil, fmt.Errorf("wsconn: dial: %w", err)
		}
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		return nil, &RefusedError{response.StatusCode, response.Header.Get("Retry-After"), strings.TrimSpace(string(text))}
	}
	if ws.Subprotocol() != c.Subprotocol {
		_ = ws.Close()
		return nil, fmt.Errorf("wsconn: dial: the server does not speak %s", c.Subprotocol)
	}
	return c.bulk(ws), nil
}
