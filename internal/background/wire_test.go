package background

import (
	"context"
	"sync"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	payload    = 1156
	maxMessage = 16384
)

// wire is a link on a simulated path: messages pass a bottleneck with a queue, acks come back after half the base delay.
// It runs in a synctest bubble, on its clock.
type wire struct {
	rate  int // bytes/s
	delay time.Duration
	line  *line // shared by links of one host

	mu       sync.Mutex
	deliver  func([]byte)
	ack      func([]byte)
	sizes    []int
	at       []time.Time
	acks     int
	cramped  bool
	drop     func(n int) bool // of the n-th message, from 1; it comes a round trip later, as SCTP sends it again
	inFlight int              // bytes, for the most that was
	most     int
}

// line is a bottleneck.
type line struct {
	mu   sync.Mutex
	free time.Time
}

// pass returns when size bytes have passed.
func (l *line) pass(size, rate int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(size) * time.Second / time.Duration(rate))
	return l.free
}

func (w *wire) Room(int) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return 0, !w.cramped
}

func (w *wire) SendBackground(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sizes, w.at = append(w.sizes, len(b)), append(w.at, time.Now())
	w.inFlight += len(b)
	w.most = max(w.most, w.inFlight)
	message, wait := append([]byte(nil), b...), w.delay/2
	if w.drop != nil && w.drop(len(w.sizes)) {
		wait += w.delay
	}
	arrives := w.line.pass(len(b), w.rate).Add(wait)
	time.AfterFunc(time.Until(arrives), func() {
		w.mu.Lock()
		w.inFlight -= len(message)
		w.mu.Unlock()
		w.deliver(message)
	})
	return true
}

func (w *wire) SendAck(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acks++
	a := append([]byte(nil), b...)
	time.AfterFunc(w.delay/2, func() {
		w.mu.Lock()
		ack := w.ack
		w.mu.Unlock()
		ack(a)
	})
}

func (w *wire) Payload() int    { return payload }
func (w *wire) MaxMessage() int { return maxMessage }

func (w *wire) sent() (n, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sizes {
		bytes += s
	}
	return len(w.sizes), bytes
}

// store is a source of so many bytes.
type store struct {
	mu   sync.Mutex
	left int
}

func (s *store) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left > 0
}

func (s *store) Next(n int) (peer.Data, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.left)
	s.left -= n
	return peer.Data{Request: 7, Payload: make([]byte, n)}, n > 0
}

// host is a sender with links over one line.
type host struct {
	sender    *Sender
	wires     []*wire
	lanes     []*Lane
	receivers []*Receiver
	stores    []*store
	stop      func()
}

func newHost(links, rate int, delay time.Duration) *host {
	h := &host{sender: NewSender(ledbat.Config{}, time.Now)}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		h.sender.Run(ctx)
	}()
	shared := &line{}
	for range links {
		w, s := &wire{rate: rate, delay: delay, line: shared}, &store{left: 1 << 40}
		r := NewReceiver(w, nil, time.Now)
		w.deliver = func(b []byte) { _, _, _ = r.Data(b) }
		var lane *Lane
		ready := make(chan struct{})
		w.ack = func(b []byte) { <-ready; lane.Ack(b) }
		lane = h.sender.Add(w, s, 0)
		close(ready)
		h.wires, h.lanes, h.receivers, h.stores = append(h.wires, w), append(h.lanes, lane), append(h.receivers, r), append(h.stores, s)
	}
	h.stop = func() {
		cancel()
		<-ran
		for i, r := range h.receivers {
			r.Close()
			h.lanes[i].Close()
		}
	}
	return h
}

// wait lets the bubble's time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
