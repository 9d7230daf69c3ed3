package arm

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// The phases of a session.
const (
	created    = "created"
	offering   = "offering"  // this side's offer is out
	answering  = "answering" // the peer's offer is in
	connecting = "connecting"
	up         = "up"
	down       = "down"
)

// connection is what a stack makes of a session. Its calls come one after the other, but send, figures and close.
type connection interface {
	offer(armwire.OfferBody) (string, *armwire.Error)
	takeOffer(sdp string) *armwire.Error
	answer(armwire.OfferBody) (string, *armwire.Error)
	takeAnswer(sdp string) *armwire.Error
	candidate(armwire.CandidateBody) *armwire.Error
	// send hands over a chunk; false says that the connection is full.
	send([]byte) bool
	keepAlive(now time.Time)
	figures() (nacks, lost int64)
	// close ends it, and returns when nothing of it runs any more.
	close()
}

// session is one session of the controller.
type session struct {
	arm  *Arm
	id   string
	body armwire.SessionBody

	sent, received, chunks atomic.Int64
	closing                sync.WaitGroup // connections; none is added once the session is destroyed

	mu     sync.Mutex
	phase  string      // guarded by mu
	conn   connection  // guarded by mu; nil: none
	source *source     // guarded by mu; nil: none
	flow   *flow       // guarded by mu; nil: none
	asked  time.Time   // guarded by mu: when the peer's description came
	viewer *watcher    // guarded by mu; nil: it is none
	copies []*forward  // guarded by mu: of what is received
	live   atomic.Bool // up
}

// event tells of the session.
func (s *session) event(kind armwire.Kind, body any) { s.arm.event(kind, s.id, body) }

// opened says that conn is up.
func (s *session) opened(conn connection) {
	now := time.Now()
	s.mu.Lock()
	if s.conn != conn || s.phase != connecting {
		s.mu.Unlock()
		return
	}
	s.phase = up
	took := now.Sub(s.asked)
	src := s.source
	if src != nil && src.sendsChunks() && !src.over() {
		s.flow = s.arm.pacer.add(s, src, now)
	}
	s.live.Store(true)
	s.mu.Unlock()
	s.arm.counts.opened(took)
	s.event(armwire.WebRTCUp, armwire.UpBody{Took: took.Microseconds()})
}

// closed says that conn has ended, or that it is to; reason is of the event hangup.
func (s *session) closed(conn connection, reason string) {
	s.mu.Lock()
	if s.conn != conn || conn == nil {
		s.mu.Unlock()
		return
	}
	was, f := s.phase, s.flow
	s.conn, s.flow, s.phase = nil, nil, down
	s.live.Store(false)
	a := s.arm
	s.closing.Add(1)
	a.busy.Add(1) // under mu: the end of the arm takes mu of every session before it waits
	s.mu.Unlock()
	a.pacer.remove(f)
	a.counts.closed(was == up, reason)
	go func() {
		defer a.busy.Done()
		a.closers <- struct{}{}
		conn.close()
		<-a.closers
		s.event(armwire.Hangup, armwire.HangupBody{Reason: reason})
		s.closing.Done()
	}()
}

// sendChunk sends a chunk on a session that is up.
func (s *session) sendChunk(b []byte) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn == nil || !s.live.Load() {
		return
	}
	if !conn.send(b) {
		s.arm.counts.held.Add(1)
		return
	}
	s.sent.Add(int64(len(b)))
	s.arm.counts.sentChunks.Add(1)
	s.arm.counts.sentBytes.Add(int64(len(b)))
}

// message takes what came on a data channel of conn. b is good during the call only.
func (s *session) message(conn connection, b []byte) {
	first := s.received.Add(int64(len(b))) == int64(len(b))
	c := &s.arm.counts
	c.receivedBytes.Add(int64(len(b)))
	if first {
		s.event(armwire.Media, armwire.MediaBody{Kind: "data", Receiving: true})
	}
	due, ok := chunkDue(b)
	if !ok {
		return
	}
	s.chunks.Add(1)
	c.receivedChunks.Add(1)
	if !s.body.Echo {
		c.chunk(time.Since(due))
		return
	}
	if conn.send(b) {
		s.sent.Add(int64(len(b)))
		c.sentBytes.Add(int64(len(b)))
		c.sentChunks.Add(1)
	} else {
		c.held.Add(1)
	}
}

// state is what get-state answers.
func (s *session) state() armwire.StateBody {
	s.mu.Lock()
	b := armwire.StateBody{Phase: s.phase, Stack: s.body.Stack, Sent: s.sent.Load(), Received: s.received.Load(), Chunks: s.chunks.Load()}
	if s.source != nil {
		b.Source = s.source.name
	}
	conn, v := s.conn, s.viewer
	s.mu.Unlock()
	if conn != nil {
		b.NACKs, b.Lost = conn.figures()
	}
	if v != nil {
		report := v.report()
		b.Viewer = &report
	}
	return b
}
