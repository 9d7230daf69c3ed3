package transportbench

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/lab/baseline/rfc6817"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// backgroundLane is one end of background links: a sender sends without end, or what it is asked for; a receiver
// acknowledges, and may ask.
type backgroundLane struct {
	stack  *linkStack
	sender *background.Sender // nil at receivers

	requester *background.Requester // of receivers that ask, nil otherwise
	wake      chan struct{}         // data came
	urgent    atomic.Int64          // foreground bursts that have not gone out; a sender sends nothing beside them

	mu    sync.Mutex                    // never held while the sender is called, which asks sources
	ends  []*linkEnd                    // guarded by mu
	lanes map[*linkEnd]*background.Lane // guarded by mu: of senders
	owed  map[*linkEnd]*source          // guarded by mu: of senders
	heard map[*linkEnd]*hearing         // guarded by mu: of receivers
}

// hearing is the receiving end of one link.
type hearing struct {
	receiver *background.Receiver
	demand   *background.Demand // nil where nothing is asked for
}

func newBackgroundLane(s *linkStack) *backgroundLane {
	l := &backgroundLane{
		stack: s, wake: make(chan struct{}, 1), lanes: map[*linkEnd]*background.Lane{}, owed: map[*linkEnd]*source{},
		heard: map[*linkEnd]*hearing{},
	}
	var cfg ledbat.Config
	if s.setup.Kind == rfcLane {
		cfg.Controller = rfc6817.NewController
	}
	switch {
	case s.setup.Send:
		l.sender = background.NewSender(cfg, time.Now)
		s.wg.Go(func() { l.sender.Run(s.ctx) })
	case s.setup.Kind == asked:
		l.requester = background.NewRequester(cfg, time.Now)
	}
	return l
}

func (l *backgroundLane) add(e *linkEnd) {
	if l.sender != nil {
		s := &source{urgent: &l.urgent}
		lane := l.sender.Add(e.Link, s, 0)
		l.mu.Lock()
		l.lanes[e], l.owed[e] = lane, s
		l.mu.Unlock()
		return
	}
	h := &hearing{}
	if l.requester != nil {
		h.demand = l.requester.Add()
	}
	h.receiver = background.NewReceiver(e.Link, h.demand, time.Now)
	l.mu.Lock()
	l.heard[e] = h
	l.ends = append(l.ends, e)
	l.mu.Unlock()
}

// source is what one link owes the other end.
type source struct {
	left    atomic.Int64
	urgent  *atomic.Int64 // the lane's
	payload [peer.PieceSize]byte
}

// foregroundRequest is what the parts of a foreground segment answer to, where it comes under the controller; others answer to 0.
const foregroundRequest = 1

// endless is more than any run sends.
const endless = 1 << 50

// Waiting implements background.Source.
func (s *source) Waiting() bool { return s.left.Load() > 0 && s.urgent.Load() == 0 }

// Next implements background.Source.
func (s *source) Next(n int) (peer.Data, bool) {
	n = min(n, len(s.payload), int(s.left.Load()))
	s.left.Add(-int64(n)) // the sender's goroutine alone takes
	return peer.Data{Payload: s.payload[:n]}, n > 0
}

func (l *backgroundLane) start() {
	if l.sender == nil {
		l.stack.wg.Go(l.request)
		l.stack.wg.Go(func() { l.tell(l.requester.Stats, time.Now()) })
		return
	}
	l.mu.Lock()
	ends := slices.Collect(maps.Keys(l.lanes))
	l.mu.Unlock()
	for _, e := range ends {
		l.asked(e, endless)
	}
	l.stack.wg.Go(func() { l.tell(l.sender.Stats, time.Now()) })
}

func (l *backgroundLane) asked(e *linkEnd, n int) {
	l.mu.Lock()
	s, lane := l.owed[e], l.lanes[e]
	l.mu.Unlock()
	if s != nil {
		s.left.Add(int64(n))
		lane.Wake()
	}
}

// request asks for pieces over all links in turn, as the window has room for them.
func (l *backgroundLane) request() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for next := 0; ; {
		ok, again := l.requester.May(peer.PieceSize)
		if ok {
			l.mu.Lock()
			e := l.ends[next%len(l.ends)]
			h := l.heard[e]
			l.mu.Unlock()
			next++
			h.demand.Requested(peer.PieceSize)
			e.ask(askBackground, peer.PieceSize)
			continue
		}
		timer.Reset(again)
		select {
		case <-l.stack.ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
	}
}

// tell says every step how the host stands.
func (l *backgroundLane) tell(stats func() ledbat.Stats, begun time.Time) {
	for n := time.Duration(1); sleep.For(l.stack.ctx, n*step-time.Since(begun)); n++ {
		st := stats()
		var sent, acked int64
		if l.sender != nil {
			sent, acked = l.sender.Totals()
		}
		l.stack.say(message{Type: sayState, State: &state{
			AtMS: time.Since(begun).Milliseconds(), Window: st.Window, Flight: st.Flight, Sent: sent, Acked: acked,
			Base: ms(st.Base), Queuing: ms(st.Queuing), Target: ms(st.Target), RTT: ms(st.RTT), Law: string(st.State),
			Slowdowns: st.Slowdowns, Losses: st.Losses, Timeouts: st.Timeouts,
		}})
	}
}

func ms(micros int64) float64 { return float64(micros) / 1000 }

func (l *backgroundLane) data(e *linkEnd, b []byte) {
	l.mu.Lock()
	h := l.heard[e]
	l.mu.Unlock()
	if h == nil {
		return
	}
	// A message that does not parse, or that came before, carries nothing.
	if part, fresh, err := h.receiver.Data(b); err == nil && fresh && part.Request == foregroundRequest {
		e.arrived(len(part.Payload))
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *backgroundLane) ack(e *linkEnd, b []byte) {
	l.mu.Lock()
	lane := l.lanes[e]
	l.mu.Unlock()
	if lane != nil {
		lane.Ack(b)
	}
}

func (l *backgroundLane) foreground(on bool) {
	if on {
		l.urgent.Add(1)
		return
	}
	if l.urgent.Add(-1) > 0 {
		return
	}
	l.mu.Lock()
	lanes := slices.Collect(maps.Values(l.lanes))
	l.mu.Unlock()
	for _, lane := range lanes {
		lane.Wake()
	}
}

func (l *backgroundLane) close() {
	l.mu.Lock()
	lanes, heard := slices.Collect(maps.Values(l.lanes)), slices.Collect(maps.Values(l.heard))
	l.mu.Unlock()
	for _, h := range heard {
		h.receiver.Close()
		if h.demand != nil {
			h.demand.Close()
		}
	}
	for _, lane := range lanes {
		lane.Close()
	}
}
