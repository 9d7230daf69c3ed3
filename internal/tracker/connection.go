package tracker

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	maxBad      = 8   // malformed messages that end a session
	maxRateOver = 100 // refused messages that end a session
)

// connection is a viewer's socket with the limits of what comes on it. Its messages are decoded one after the other; any goroutine may
// send.
type connection struct {
	*Socket
	cfg     *Config
	limiter *rate.Limiter
	bad     int // malformed so far; only Receive
	over    int // refused for a rate so far; only Receive
	size    int // bytes of the message at hand; only Receive
}

func newConnection(socket *Socket, cfg *Config) connection {
	return connection{Socket: socket, cfg: cfg, limiter: rate.NewLimiter(rate.Limit(cfg.MessagesPerSecond), 2*cfg.MessagesPerSecond)}
}

// decode reads a message; nil stands for one that was refused. ok is false when the session is over.
func (c *connection) decode(raw []byte) (m signal.Message, ok bool) {
	c.cfg.Metrics.Add(defSignaling, float64(len(raw)), "in")
	c.size = len(raw)
	if !c.limiter.AllowN(c.cfg.Now(), 1) {
		c.cfg.Metrics.Add(defMessages, 1, "unknown", "in")
		return nil, c.exceeds(0, "Too many messages.", "Send at most the number of messages a second that welcome names.")
	}
	m, err := signal.Decode(raw)
	var malformed *signal.MalformedError
	switch {
	case errors.As(err, &malformed):
		c.cfg.Metrics.Add(defMessages, 1, "unknown", "in")
		return nil, c.misuses(malformed.Request, "The "+malformed.Error()+".")
	case err != nil:
		return nil, false
	}
	if _, unknown := m.(*signal.Unknown); unknown {
		c.cfg.Metrics.Add(defMessages, 1, "unknown", "in")
		return nil, true
	}
	c.cfg.Metrics.Add(defMessages, 1, m.Type(), "in")
	return m, true
}

// misuses refuses a message that no client sends that keeps to the protocol, and says whether the session goes on.
func (c *connection) misuses(request int, problem string) bool {
	c.bad++
	c.fail(request, "bad-message", problem, "See spec/tracker-protocol.md.", 0)
	if c.bad >= maxBad {
		c.Violates("bad-message")
		return false
	}
	return true
}

// exceeds refuses a message that is beyond a rate, and says whether the session goes on.
func (c *connection) exceeds(request int, problem, hint string) bool {
	c.over++
	c.fail(request, "rate-limited", problem, hint, 1000)
	if c.over > maxRateOver {
		c.Violates("rate-limited")
		return false
	}
	return true
}

var replyPool = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// send queues a message. A reader that is too slow loses its socket; what was not said it learns when it is back.
func (c *connection) send(m signal.Message) {
	p := replyPool.Get().(*[]byte)
	defer replyPool.Put(p)
	if b := c.encode((*p)[:0], m); b != nil {
		*p = b
		c.write(m, b)
	}
}

// encode appends a message to a buffer; nil stands for one that cannot be said.
func (c *connection) encode(to []byte, m signal.Message) []byte {
	b, err := signal.Append(to, m)
	if err != nil {
		c.cfg.Log.Error("message not sent", "type", m.Type(), "error", err)
		return nil
	}
	return b
}

// write queues an encoded message.
func (c *connection) write(m signal.Message, b []byte) {
	c.cfg.Metrics.Add(defMessages, 1, m.Type(), "out")
	c.cfg.Metrics.Add(defSignaling, float64(len(b)), "out")
	c.Send(b)
}

func (c *connection) fail(request int, code, message, hint string, retryMs int64) {
	c.cfg.Metrics.Add(defErrors, 1, code)
	c.send(&signal.Error{Request: request, Code: code, Message: message, Hint: hint, RetryAfterMs: retryMs})
}

// opens sends the welcome, and behind it the revocations that it has no room for; false: it is too large without any.
func (c *connection) opens(w *signal.Welcome, revoked [][]signal.Revocation) bool {
	w.Revocations = revoked[0]
	b, err := signal.Encode(w)
	if errors.Is(err, signal.ErrTooLarge) { // the rules of the site are long
		w.Revocations = nil
		b = c.encode(nil, w)
	} else {
		revoked = revoked[1:]
	}
	if b == nil {
		return false
	}
	c.write(w, b)
	c.revoke(revoked)
	return true
}

// revoke tells the viewer what is revoked.
func (c *connection) revoke(parts [][]signal.Revocation) {
	for _, part := range parts {
		c.send(&signal.Revoke{Revocations: part})
	}
}

// rttMs is the round trip of the socket, 0 while it is unknown.
func (c *connection) rttMs() int {
	if of, ok := c.Conn.(interface{ RTT() time.Duration }); ok {
		return int(of.RTT().Milliseconds())
	}
	return 0
}
