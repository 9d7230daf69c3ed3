package transportbench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/ledbat/rfc6817"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// lane is what drives the links of one end, besides foreground bursts.
type lane interface {
	add(e *linkEnd)            // a link is open
	start()                    // the sender's
	data(e *linkEnd, b []byte) // the receiver's
	ack(e *linkEnd, b []byte)  // the sender's
	urgent(on bool)            // foreground begins, or has gone out
	close()
}

func newLane(s *linkStack) (lane, error) {
	switch s.setup.Kind {
	case foreground:
		return &foregroundLane{stack: s}, nil
	case idle:
		return noLane{}, nil
	case ledbatLane, rfcLane:
		return newBackgroundLane(s), nil
	}
	return nil, fmt.Errorf("no lane is called %q", s.setup.Kind)
}

// noLane carries nothing but foreground bursts.
type noLane struct{}

func (noLane) add(*linkEnd)          {}
func (noLane) start()                {}
func (noLane) data(*linkEnd, []byte) {}
func (noLane) ack(*linkEnd, []byte)  {}
func (noLane) urgent(bool)           {}
func (noLane) close()                {}

// foregroundLane sends without end on every link, as fast as the foreground may.
type foregroundLane struct {
	noLane
	stack *linkStack

	mu   sync.Mutex
	ends []*linkEnd // guarded by mu
}

func (l *foregroundLane) add(e *linkEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, e)
}

func (l *foregroundLane) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.ends {
		l.stack.wg.Go(func() { e.send(math.MaxInt) })
	}
}

// backgroundLane sends without end in the background, over all links of the host together.
type backgroundLane struct {
	stack  *linkStack
	sender *background.Sender // nil at receivers
	begun  atomic.Bool

	mu        sync.Mutex                        // never held while the sender is called, which asks sources
	lanes     map[*linkEnd]*background.Lane     // guarded by mu
	receivers map[*linkEnd]*background.Receiver // guarded by mu
}

func newBackgroundLane(s *linkStack) *backgroundLane {
	l := &backgroundLane{stack: s, lanes: map[*linkEnd]*background.Lane{}, receivers: map[*linkEnd]*background.Receiver{}}
	if !s.setup.Send {
		return l
	}
	var cfg ledbat.Config
	if s.setup.Kind == rfcLane {
		cfg.Law = rfc6817.Law
	}
	l.sender = background.NewSender(cfg, time.Now)
	s.wg.Go(func() { l.sender.Run(s.ctx) })
	return l
}

func (l *backgroundLane) add(e *linkEnd) {
	if l.sender == nil {
		l.mu.Lock()
		l.receivers[e] = background.NewReceiver(e.transport, time.Now)
		l.mu.Unlock()
		return
	}
	lane := l.sender.Add(e.transport, &endless{lane: l}, 0)
	l.mu.Lock()
	l.lanes[e] = lane
	l.mu.Unlock()
}

// endless is a source that always has more, once the lane was started.
type endless struct {
	lane    *backgroundLane
	payload [peer.PieceSize]byte
}

// Waiting implements background.Source.
func (s *endless) Waiting() bool { return s.lane.begun.Load() }

// Next implements background.Source.
func (s *endless) Next(n int) (peer.Data, bool) {
	return peer.Data{Payload: s.payload[:min(n, len(s.payload))]}, s.Waiting()
}

func (l *backgroundLane) start() {
	l.begun.Store(true)
	l.mu.Lock()
	for _, lane := range l.lanes {
		lane.Wake()
	}
	l.mu.Unlock()
	l.stack.wg.Go(func() { l.tell(l.stack.ctx, time.Now()) })
}

// tell says every step how the sender stands.
func (l *backgroundLane) tell(ctx context.Context, begun time.Time) {
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			st := l.sender.Stats()
			sent, acked := l.sender.Totals()
			l.stack.say(message{Type: sayState, State: &state{
				AtMS: time.Since(begun).Milliseconds(), Window: st.Window, Flight: st.Flight, Sent: sent, Acked: acked,
				Base: ms(st.Base), Queuing: ms(st.Queuing), Target: ms(st.Target), RTT: ms(st.RTT), Law: string(st.State),
				Slowdowns: st.Slowdowns, Losses: st.Losses, Timeouts: st.Timeouts,
			}})
		}
	}
}

func ms(micros int64) float64 { return float64(micros) / 1000 }

func (l *backgroundLane) data(e *linkEnd, b []byte) {
	l.mu.Lock()
	r := l.receivers[e]
	l.mu.Unlock()
	if r != nil {
		_, _, _ = r.Data(b) // what it carries is nothing
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

func (l *backgroundLane) urgent(on bool) {
	if l.sender != nil {
		l.sender.Urgent(on)
	}
}

func (l *backgroundLane) close() {
	l.mu.Lock()
	lanes, receivers := slices.Collect(maps.Values(l.lanes)), slices.Collect(maps.Values(l.receivers))
	l.mu.Unlock()
	for _, r := range receivers {
		r.Close()
	}
	for _, lane := range lanes {
		lane.Close()
	}
}
