package wsconn

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
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

	raw      syscall.RawConn // to wait without reading; nil where that cannot be
	below    *Socket         // under TLS; nil without
	ready    func(uintptr) bool
	woken    bool  // only who waits
	answered int64 // only who reads: when a ping was answered last

	mu       sync.Mutex
	out      *[]byte     // guarded by mu: frames to be written; nil: none
	messages int         // guarded by mu: of them
	writing  bool        // guarded by mu: somebody writes, and looks at out once more
	closed   bool        // guarded by mu
	mute     bool        // guarded by mu: the library has said the last words
	unread   bool        // guarded by mu: nobody reads any more
	unsaid   bool        // guarded by mu: nobody writes any more
	pong     []byte      // guarded by mu: of a ping to be answered, if there is one
	code     int         // guarded by mu until closed
	reason   string      // guarded by mu until closed
	cut      *time.Timer // guarded by mu: ends a farewell that takes too long

	stuck   atomic.Bool  // a write took too long
	over    atomic.Bool  // closed, for those who need not be exact
	heard   atomic.Int64 // when something came last, ns since the Unix epoch
	since   atomic.Int64 // when the write under way began; 0: none is
	pinged  atomic.Int64 // when the last ping went out that was not answered; 0: none
	rtt     atomic.Int64 // ns, smoothed; 0 until the first pong
	pingDue int64        // only the keeper
	at      int          // guarded by the keeper's mu: in its list
}

// begin makes the connection work, but for reading.
func (c *Conn) begin(ws *websocket.Conn) {
	c.ws, c.net = ws, ws.NetConn()
	c.raw, c.below = waitable(c.net)
	c.ready = c.readable
	c.boundSystem()
	ws.SetReadLimit(c.e.cfg.MaxMessage)
	ws.SetPongHandler(func(string) error {
		c.ponged()
		return nil
	})
	ws.SetPingHandler(func(data string) error {
		c.pinging(append(make([]byte, 0, 1+len(data)), data...)) // not nil: a ping may be empty
		return nil
	})
	ws.SetCloseHandler(func(int, string) error { return nil }) // Close answers
	now := time.Now().UnixNano()
	c.heard.Store(now)
	c.e.keeper.add(c, now)
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
	now := time.Now().UnixNano()
	c.heard.Store(now)
	if now-c.answered >= int64(pongEvery) {
		c.answered = now
		c.mu.Lock()
		c.pong = data
		c.rouse()
		c.mu.Unlock()
	}
}

// ping asks whether the other side is there.
func (c *Conn) ping(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.pinged.Store(now)
		c.queue(websocket.PingMessage, nil)
		c.rouse()
	}
}

// ponged takes a sample of the round trip: one quarter of the new one, three of what was known.
func (c *Conn) ponged() {
	now := time.Now().UnixNano()
	c.heard.Store(now)
	sent := c.pinged.Swap(0)
	if sent == 0 {
		return // not asked for
	}
	sample := max(1, now-sent)
	if old := c.rtt.Load(); old != 0 {
		sample = (3*old + sample) / 4
	}
	c.rtt.Store(sample)
}

// RTT is the round trip of the connection, 0 while no ping has been answered.
func (c *Conn) RTT() time.Duration { return time.Duration(c.rtt.Load()) }

// Write queues a message, whose bytes stay the caller's. ErrSlow says that the queue was full: the connection is ended, for
// whoever cannot read as fast as the tracker speaks would make it hold messages without bound.
func (c *Conn) Write(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.messages < c.e.cfg.WriteQueue && (c.messages == 0 || len(*c.out)+len(message) <= c.e.cfg.WriteBytes) {
		c.messages++
		c.queue(websocket.TextMessage, message)
		c.rouse()
		return nil
	}
	// A reader that is stuck would hold the writer for the timeout of a write.
	c.closeLocked(CloseOverloaded, "reader is too slow", lingerTime)
	return ErrSlow
}

// queue adds a frame. Under mu.
func (c *Conn) queue(opcode byte, payload []byte) {
	if c.out == nil {
		c.out = buffers.Get().(*[]byte)
	}
	*c.out = appendFrame(*c.out, opcode, payload, !c.server)
}

// rouse has somebody write. Under mu.
func (c *Conn) rouse() {
	if !c.writing && !c.unsaid {
		c.writing = true
		c.e.crew.hand(job{c, true})
	}
}

// Close sends what is queued and a close message, and ends the connection. The first call counts.
func (c *Conn) Close(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(code, reason, c.e.cfg.Farewell)
}

// closeLocked cuts the connection when the farewell takes longer than within.
func (c *Conn) closeLocked(code int, reason string, within time.Duration) {
	if c.closed {
		return
	}
	c.closed, c.code, c.reason = true, code, reason
	c.over.Store(true)
	c.cut = time.AfterFunc(within, func() { _ = c.net.Close() })
	c.rouse()
}

// write takes to the socket what is queued, until nothing is. One goroutine at a time does, so that whole frames follow each
// other; what is queued meanwhile goes out in one piece, which is one record where there is TLS.
func (c *Conn) write() {
	for {
		c.mu.Lock()
		if c.pong != nil {
			c.queue(websocket.PongMessage, c.pong)
			c.pong = nil
		}
		b, last := c.out, c.closed
		c.out, c.messages = nil, 0
		if b == nil && !last {
			c.writing = false
			c.mu.Unlock()
			return
		}
		if last && !c.mute {
			if b == nil {
				b = buffers.Get().(*[]byte)
			}
			*b = appendClose(*b, c.code, c.reason, !c.server)
		}
		c.mu.Unlock()
		err := c.put(b)
		if err != nil && !last {
			c.Close(CloseDone, "")
			_ = c.net.Close()
		}
		if err != nil || last {
			c.said(err == nil)
			return
		}
	}
}

// put writes a buffer and gives it back.
func (c *Conn) put(b *[]byte) (err error) {
	if b == nil {
		return nil
	}
	for rest := *b; len(rest) > 0 && err == nil; {
		n := min(len(rest), writeBytes)
		c.since.Store(time.Now().UnixNano())
		_, err = c.net.Write(rest[:n])
		rest = rest[n:]
	}
	c.since.Store(0)
	release(b)
	return err
}

// said ends the sending side. What the other side still has on its way is taken in for a bounded time: closing a socket with
// unread data resets it, and the last words (an error, reconnect) would be lost with it.
func (c *Conn) said(whole bool) {
	half, ok := c.net.(interface{ CloseWrite() error })
	if whole && ok && half.CloseWrite() == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(lingerTime))
		if !c.server {
			c.drain()
		}
	} else {
		_ = c.net.Close()
	}
	c.mu.Lock()
	c.unsaid = true
	last := c.unread || !c.server // a client's reader is not waited for: it may not read at all
	c.mu.Unlock()
	if last {
		c.gone()
	}
}

// drain reads and forgets.
func (c *Conn) drain() { _, _ = io.Copy(io.Discard, io.LimitReader(c.net, lingerBytes)) }

// gone is the end of all.
func (c *Conn) gone() {
	_ = c.net.Close()
	c.mu.Lock()
	c.cut.Stop() // whoever came here has closed the connection
	if c.out != nil {
		release(c.out)
		c.out = nil
	}
	c.mu.Unlock()
	c.e.keeper.remove(c)
}
