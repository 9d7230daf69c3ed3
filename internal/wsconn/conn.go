package wsconn

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

func (c *Config) complete() {
	if c.WriteQueue == 0 {
		c.WriteQueue = 256
	}
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
	if c.Refused == nil {
		c.Refused = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// How long and how much a closing connection still reads; a reader that is too slow has as long for the last words.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// pongEvery is how often the other side's pings are answered: control frames pass by every limit of messages.
const pongEvery = 100 * time.Millisecond

// Conn is one connection. Read belongs to one goroutine; the rest may be called from any.
type Conn struct {
	ws     *websocket.Conn
	cfg    Config
	server bool

	mu     sync.Mutex
	queue  [][]byte      // guarded by mu: to be written, from head on; nothing is held for a socket that is told nothing
	head   int           // guarded by mu
	queued int           // guarded by mu: bytes in the queue
	closed bool          // guarded by mu
	code   int           // guarded by mu until closed
	reason string        // guarded by mu until closed
	cut    *time.Timer   // guarded by mu: ends a farewell that takes too long
	wake   chan struct{} // there is something in the queue, or the end
	done   chan struct{}
	pings  chan string // of the other side, to be answered by the writer: nobody else writes

	pinged atomic.Int64 // when the last ping went out, ns since the Unix epoch
	rtt    atomic.Int64 // ns, smoothed; 0 until the first pong
}

func newConn(ws *websocket.Conn, cfg Config, server bool) *Conn {
	c := &Conn{
		ws: ws, cfg: cfg, server: server, wake: make(chan struct{}, 1), done: make(chan struct{}), pings: make(chan string, 1),
	}
	ws.SetReadLimit(cfg.MaxMessage)
	ws.SetPongHandler(func(string) error {
		c.pong()
		return c.alive()
	})
	ws.SetPingHandler(c.ping())
	_ = c.alive()
	go c.write()
	return c
}

// Read returns the next text message, whose bytes are the caller's. ErrTooBig and ErrText name what the other side did wrong;
// any other error says that the connection is gone, ErrClosed that Close was called.
func (c *Conn) Read() ([]byte, error) {
	kind, b, err := c.message()
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return nil, ErrTooBig
	case err != nil:
		return nil, err
	case kind != websocket.TextMessage:
		return nil, ErrText
	}
	if err := c.alive(); err != nil {
		return nil, err
	}
	return b, nil
}

// alive puts off the end that silence brings. A connection that was closed is not put off: whoever goes on sending would
// hold it open for as long as they like.
func (c *Conn) alive() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return c.ws.SetReadDeadline(time.Now().Add(c.cfg.PongTimeout))
}

// ping answers the other side's pings, not all of a flood.
func (c *Conn) ping() func(string) error {
	var answered time.Time
	return func(data string) error {
		if now := time.Now(); now.Sub(answered) >= pongEvery {
			answered = now
			select {
			case c.pings <- data:
			default: // the one before is not answered yet
			}
		}
		return nil
	}
}

// pong takes a sample of the round trip: one quarter of the new one, three of what was known.
func (c *Conn) pong() {
	sent := c.pinged.Swap(0)
	if sent == 0 {
		return // not asked for
	}
	sample := max(1, time.Now().UnixNano()-sent)
	if old := c.rtt.Load(); old != 0 {
		sample = (3*old + sample) / 4
	}
	c.rtt.Store(sample)
}

// RTT is the round trip of the connection, 0 while no ping has been answered.
func (c *Conn) RTT() time.Duration { return time.Duration(c.rtt.Load()) }

// Write queues a message. ErrSlow says that the queue was full: the connection is ended, for whoever cannot read as fast as
// the tracker speaks would make it hold messages without bound.
func (c *Conn) Write(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	waiting := len(c.queue) - c.head
	if waiting < c.cfg.WriteQueue && (c.queued == 0 || c.queued+len(message) <= c.cfg.WriteBytes) {
		c.queue = append(c.queue, message)
		c.queued += len(message)
		if waiting == 0 {
			c.rouse()
		}
		return nil
	}
	// A reader that is stuck would hold the writer for the timeout of a write.
	c.closeLocked(CloseOverloaded, "reader is too slow", lingerTime)
	return ErrSlow
}

// Close sends what is queued and a close message, and ends the connection. The first call counts.
func (c *Conn) Close(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(code, reason, c.cfg.Farewell)
}

// closeLocked cuts the connection when the farewell takes longer than within. A deadline in the past would not end a write
// for sure: the writer sets its own before each message.
func (c *Conn) closeLocked(code int, reason string, within time.Duration) {
	if c.closed {
		return
	}
	c.closed, c.code, c.reason = true, code, reason
	c.rouse()
	c.cut = time.AfterFunc(within, func() { _ = c.ws.NetConn().Close() })
}

// rouse has the writer look at the queue.
func (c *Conn) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // it will
	}
}

// wait returns when nothing of the connection runs any more.
func (c *Conn) wait() { <-c.done }

// linger ends the sending side and takes in what the other side still had on its way, for a bounded time. Closing a socket
// with unread data resets it, and the last words (an error, reconnect) would be lost with it.
func (c *Conn) linger() {
	conn := c.ws.NetConn()
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, lingerBytes))
}

// write sends what is queued, pings in between, and ends the connection.
func (c *Conn) write() {
	defer close(c.done)
	defer func() {
		_ = c.ws.Close()
		c.mu.Lock()
		c.cut.Stop() // every way out has closed the connection
		c.mu.Unlock()
	}()
	ping := time.NewTicker(c.cfg.PingEvery)
	defer ping.Stop()
	c.pinged.Store(time.Now().UnixNano())
	_ = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.cfg.WriteTimeout)) // the round trip ranks introductions
	for {
		select {
		case <-c.wake:
			over, err := c.send()
			if err != nil {
				c.Close(CloseDone, "")
				return
			}
			if over {
				_ = c.ws.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout))
				_ = c.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(c.code, c.reason))
				c.linger()
				return
			}
		case data := <-c.pings:
			if c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(c.cfg.WriteTimeout)) != nil {
				c.Close(CloseDone, "")
				return
			}
		case <-ping.C:
			c.pinged.Store(time.Now().UnixNano())
			if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.cfg.WriteTimeout)) != nil {
				c.Close(CloseDone, "")
				return
			}
		}
	}
}
