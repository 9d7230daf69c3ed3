package qualitylink

import (
	"net"
	"sync"
	"time"
)

// Chunks of SCTP that tell a receiver to skip messages (RFC 3758, RFC 8260), and where the type of a packet's first chunk is.
const (
	forwardTSN  = 0xc0
	iForwardTSN = 0xc2
	firstChunk  = 12
)

// How long a skip is held back, beside two round trips.
const (
	leastPatience = 50 * time.Millisecond
	mostPatience  = time.Second
)

// patience is the connection below SCTP. It holds back what tells the other side to skip messages: pion gives a message without
// retransmissions up as it sends it, so that the next acknowledgment, of whatever message, would have the receiver drop one that is
// only late. Spec/probe.md wants it skipped no sooner than a round trip after the third message behind it.
//
// One skip waits at a time. Those that pion makes meanwhile are dropped: the acknowledgment of the one that waits makes the next.
type patience struct {
	net.Conn
	rtt func() time.Duration

	mu     sync.Mutex
	timer  *time.Timer // guarded by mu: nil: none waits
	closed bool        // guarded by mu
}

// Write implements net.Conn.
func (p *patience) Write(b []byte) (int, error) {
	if len(b) <= firstChunk || b[firstChunk] != forwardTSN && b[firstChunk] != iForwardTSN {
		return p.Conn.Write(b)
	}
	wait := min(mostPatience, max(leastPatience, 2*p.rtt()))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil || p.closed {
		return len(b), nil
	}
	late := append([]byte(nil), b...)
	p.timer = time.AfterFunc(wait, func() {
		p.mu.Lock()
		closed := p.closed
		p.timer = nil
		p.mu.Unlock()
		if !closed {
			_, _ = p.Conn.Write(late)
		}
	})
	return len(b), nil
}

// Close implements net.Conn.
func (p *patience) Close() error {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	return p.Conn.Close()
}
