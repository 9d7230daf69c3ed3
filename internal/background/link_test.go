package background_test

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

var _ background.Link = (*rtclink.Link)(nil)

const patience = 20 * time.Second

// side is one end of a real link.
type side struct {
	link   *rtclink.Link
	other  *side
	made   chan struct{}
	opened chan struct{}
	data   func([]byte)
	ack    func([]byte)
}

func newSide() *side {
	return &side{made: make(chan struct{}), opened: make(chan struct{}), data: func([]byte) {}, ack: func([]byte) {}}
}

func (s *side) Candidate(c transfer.Candidate) {
	go func() {
		<-s.other.made
		_ = s.other.link.AddCandidate(c)
	}()
}
func (s *side) Open()                   { <-s.made; close(s.opened) }
func (s *side) Control([]byte)          {}
func (s *side) Data(b []byte)           { s.data(b) }
func (s *side) Ack(b []byte)            { s.ack(b) }
func (s *side) Drain()                  {}
func (s *side) Closed(peer.CloseReason) {}

// connect links two hosts on loopback; both ends' functions are set before.
func connect(t *testing.T, offering, answering *side) {
	t.Helper()
	offering.other, answering.other = answering, offering
	var hosts [2]*rtclink.Host
	for i := range hosts {
		h, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		hosts[i] = h
	}
	l, offer, err := hosts[0].Offer(offering)
	if err != nil {
		t.Fatal(err)
	}
	offering.link = l
	close(offering.made)
	a, answer, err := hosts[1].Answer(offer, answering)
	if err != nil {
		t.Fatal(err)
	}
	answering.link = a.(*rtclink.Link)
	close(answering.made)
	if err := l.Accept(answer); err != nil {
		t.Fatal(err)
	}
	arrive(t, offering.opened, "the offerer to open")
	arrive(t, answering.opened, "the answerer to open")
}

func arrive(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
}

// counting is a source of numbered parts, so that each can be seen to arrive once.
type counting struct {
	mu          sync.Mutex
	next, count uint32
	short       int // payload bytes at most
}

func (s *counting) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next < s.count
}

func (s *counting) Next(n int) (peer.Data, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= s.count {
		return peer.Data{}, false
	}
	s.next++
	p := make([]byte, min(n, s.short))
	binary.BigEndian.PutUint32(p, s.next)
	return peer.Data{Request: s.next, Payload: p}, true
}

// TestEverythingArrivesOnceOverRealLinks sends both ways at once over one link.
func TestEverythingArrivesOnceOverRealLinks(t *testing.T) {
	const count = 600
	sides := [2]*side{newSide(), newSide()}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var senders [2]*background.Sender
	var done [2]chan struct{}
	lanes, receivers := [2]*background.Lane{}, [2]*background.Receiver{}
	ready := make(chan struct{})
	for i, s := range sides {
		done[i] = make(chan struct{})
		seen := map[uint32]bool{}
		s.ack = func(b []byte) {
			<-ready
			if !lanes[i].Ack(b) {
				t.Errorf("side %d heard an impossible ack: %x", i, b)
			}
		}
		s.data = func(b []byte) {
			<-ready
			d, fresh, err := receivers[i].Data(b)
			if err != nil || !fresh || seen[d.Request] || binary.BigEndian.Uint32(d.Payload) != d.Request {
				t.Errorf("message %d: fresh %v, seen %v, %v", d.Request, fresh, seen[d.Request], err)
			}
			if seen[d.Request] = true; len(seen) == count {
				close(done[i])
			}
		}
	}
	connect(t, sides[0], sides[1])
	for i, s := range sides {
		senders[i] = background.NewSender(ledbat.Config{}, time.Now)
		running.Go(func() { senders[i].Run(ctx) })
		receivers[i] = background.NewReceiver(s.link, nil, time.Now)
		defer receivers[i].Close()
		lanes[i] = senders[i].Add(s.link, &counting{count: count, short: 3000}, 0)
	}
	close(ready)
	for i := range sides {
		arrive(t, done[i], "every message")
	}
	for i, s := range senders {
		sent, acked := s.Totals()
		if sent == 0 || acked > sent {
			t.Errorf("side %d sent %d bytes, %d are acknowledged", i, sent, acked)
		}
		if st := s.Stats(); st.RTT <= 0 || st.Base <= 0 {
			t.Errorf("side %d measured nothing: %+v", i, st)
		}
	}
}
