package testkit

import (
	"sync"
	"time"
)

// Line is a simulated bottleneck: what is sent leaves it in order, at its rate. It has no clock of its own.
type Line struct {
	Rate float64 // bytes/s; 0: it delays nothing

	mu   sync.Mutex
	free time.Time // when all that was sent has left
}

// Pass sends size bytes at a moment and returns when the last of them leaves.
func (l *Line) Pass(now time.Time, size int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(now) {
		l.free = now
	}
	if l.Rate > 0 {
		l.free = l.free.Add(time.Duration(float64(size) / l.Rate * float64(time.Second)))
	}
	return l.free
}

// Wait is how long what is sent at a moment waits for what was sent before.
func (l *Line) Wait(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.free.Sub(now))
}

// Payload is what a packet of a simulated link carries, and MaxMessage the longest message, bytes.
const (
	Payload    = 1156
	MaxMessage = 16384
)

// Link is one direction of a link over a line, with its acks: a background.Link in a synctest bubble, on the bubble's clock. Mu guards
// what a test changes while the link is used.
type Link struct {
	Line  *Line
	Delay time.Duration    // round trip of an empty path
	Late  func(n int) bool // whether the n-th message, from 1, is lost: it comes later, as SCTP sends it again
	Again time.Duration    // how much later; 0: Delay

	Mu      sync.Mutex
	Deliver func([]byte)
	Acked   func([]byte)
	Sending func([]byte) // nil, or sees each message
	Cramped bool         // there is no room for the background
	Sizes   []int        // of the messages that were sent
	At      []time.Time  // when
	Acks    int
	Most    int // bytes that were in flight

	inFlight int
}

// Room implements background.Link.
func (l *Link) Room(int) (int, bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return 0, !l.Cramped
}

// SendBackground implements background.Link.
func (l *Link) SendBackground(b []byte) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Sending != nil {
		l.Sending(b)
	}
	l.Sizes, l.At = append(l.Sizes, len(b)), append(l.At, time.Now())
	l.inFlight += len(b)
	l.Most = max(l.Most, l.inFlight)
	message, wait := append([]byte(nil), b...), l.Delay/2
	if l.Late != nil && l.Late(len(l.Sizes)) {
		wait += max(l.Again, l.Delay)
	}
	time.AfterFunc(time.Until(l.Line.Pass(time.Now(), len(b)).Add(wait)), func() {
		l.Mu.Lock()
		l.inFlight -= len(message)
		l.Mu.Unlock()
		l.Deliver(message)
	})
	return true
}

// SendAck implements background.Link.
func (l *Link) SendAck(b []byte) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Acks++
	message := append([]byte(nil), b...)
	time.AfterFunc(l.Delay/2, func() {
		l.Mu.Lock()
		acked := l.Acked
		l.Mu.Unlock()
		acked(message)
	})
}

// Payload implements background.Link.
func (*Link) Payload() int { return Payload }

// MaxMessage implements background.Link.
func (*Link) MaxMessage() int { return MaxMessage }

// Sent is how many messages were sent, and their bytes.
func (l *Link) Sent() (n, bytes int) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, s := range l.Sizes {
		bytes += s
	}
	return len(l.Sizes), bytes
}
