package background

import (
	"context"
	"sync"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	payload    = testkit.Payload
	maxMessage = testkit.MaxMessage
)

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
	wires     []*testkit.Link
	lanes     []*Lane
	receivers []*Receiver
	stores    []*store
	stop      func()
}

// silence loses the acks that come by a link, until they are to be heard again.
func silence(l *testkit.Link) (heard func()) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	acked := l.Acked
	l.Acked = func([]byte) {}
	return func() {
		l.Mu.Lock()
		defer l.Mu.Unlock()
		l.Acked = acked
	}
}

func newHost(links, rate int, delay time.Duration) *host {
	h := &host{sender: NewSender(ledbat.Config{}, time.Now)}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		h.sender.Run(ctx)
	}()
	shared := &testkit.Line{Rate: float64(rate)}
	for range links {
		w, s := &testkit.Link{Delay: delay, Line: shared}, &store{left: 1 << 40}
		r := NewReceiver(w, nil, time.Now)
		w.Deliver = func(b []byte) { _, _, _ = r.Data(b) }
		var lane *Lane
		ready := make(chan struct{})
		w.Acked = func(b []byte) { <-ready; lane.Ack(b) }
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
