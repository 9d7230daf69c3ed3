package wsconn

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// How long and how much a closing connection still reads; a reader that is too slow has as long for the last words.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// sendBytes is what the system holds for a reader that is slow, twice; it would else let that grow to megabytes.
const sendBytes = 128 << 10

// pongEvery is how often the other side's pings are answered: control frames pass by every limit of messages.
const pongEvery = 100 * time.Millisecond

// Conn is one connection. Its methods may be called from any goroutine; Read is for clients, and belongs to one.
type Conn struct {
	e        *Endpoint
	ws       *websocket.Conn
	net      net.Conn // TLS and all
	receiver Receiver // nil at a client
	server   bool
	br       bufio.Reader // lent to ws; without a buffer while nothing is read
	waiter   waiter
	answered int64        // only the goroutine that reads: when a ping was answered last
	second   int64        // likewise: when the one began
	bare     int          // likewise: in which so many bytes have come that are no message's
	halves   atomic.Int32 // reading and writing, that have not ended; a client's reader is not waited for: it may not read at all
	pulse
	writer
}

// begin makes the connection work, but for reading.
func (c *Conn) begin(ws *websocket.Conn) {
	c.ws, c.net = ws, ws.NetConn()
	c.writer = writer{cfg: &c.e.cfg, net: c.net, pulse: &c.pulse, masked: !c.server, owner: c}
	c.halves.Store(1)
	if c.server {
		c.halves.Store(2)
	}
	c.waiter.bind(c.net)
	c.boundSystem()
	ws.SetPongHandler(func(said string) error {
		c.ponged(steady(), []byte(said))
		return nil
	})
	ws.SetPingHandler(func(data string) error {
		c.pinging(append(make([]byte, 0, 1+len(data)), data...)) // not nil: a ping may be empty
		return nil
	})
	ws.SetCloseHandler(func(int, string) error { return nil }) // Close answers
	now := steady()
	c.heard.Store(now)
	c.e.pinger.add(c, now)
	c.ping(now) // the round trip ranks introductions
}

// boundSystem bounds what the system queues. What else the port serves, such as a demo's film, keeps what it needs.
func (c *Conn) boundSystem() {
	conn := c.net
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok && c.server {
		_ = tcp.SetWriteBuffer(sendBytes)
	}
}

// pinging answers the other side's pings, not all of a flood.
func (c *Conn) pinging(data []byte) {
	now := steady()
	c.lives(now)
	if now-c.answered >= int64(pongEvery) {
		c.answered = now
		c.answer(data)
	}
}

// wake has a worker write.
func (c *Conn) wake() { c.e.workers.hand(job{c, true}) }

// written ends the sending side. What the other side still has on its way is taken in for a bounded time: closing a socket with
// unread data resets it, and the last words (an error, reconnect) would be lost with it.
func (c *Conn) written(whole bool) {
	half, ok := c.net.(interface{ CloseWrite() error })
	if whole && ok && half.CloseWrite() == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(lingerTime))
		if !c.server {
			c.drain()
		}
	} else {
		_ = c.net.Close()
	}
	c.stop()
	c.halfEnded()
}

// drain reads and forgets.
func (c *Conn) drain() { _, _ = io.Copy(io.Discard, io.LimitReader(c.net, lingerBytes)) }

// halfEnded is the end of reading or of writing; with the second of them everything ends.
func (c *Conn) halfEnded() {
	if c.halves.Add(-1) == 0 {
		_ = c.net.Close()
		c.forget()
		c.e.pinger.remove(c)
	}
}
