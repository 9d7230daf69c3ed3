package background

import (
	"context"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
)

const (
	// roomRetry is when a lane is tried again that SCTP had no room for: SCTP does not say when it has.
	roomRetry = 5 * time.Millisecond
	// idleWait is how long the loop sleeps when nothing is to be done; everything that gives it work wakes it.
	idleWait = time.Hour
)

// Sender is the background lane of a host, over all its links.
type Sender struct {
	clock clock
	wake  chan struct{}

	mu     sync.Mutex
	law    *ledbat.Controller // guarded by mu
	lanes  []*Lane            // guarded by mu
	turn   int                // guarded by mu: lane that is next
	urgent int                // guarded by mu: reasons for which foreground has the line
	buf    []byte             // guarded by mu
	sent   int64              // guarded by mu: bytes of messages, headers included
}

// NewSender makes the background lane of a host; Run works it.
func NewSender(cfg ledbat.Config, now func() time.Time) *Sender {
	return &Sender{clock: newClock(now), law: ledbat.New(cfg), wake: make(chan struct{}, 1)}
}

// Lane is the background of one link.
type Lane struct {
	sender *Sender
	link   Link
	source Source
	path   *ledbat.Path // guarded by Sender.mu
	closed bool         // guarded by Sender.mu
	acked  int64        // guarded by Sender.mu: bytes
}

// Add begins to serve an open link. base is the base delay of the route from an earlier link, 0 unknown.
func (s *Sender) Add(link Link, source Source, base time.Duration) *Lane {
	s.mu.Lock()
	l := &Lane{sender: s, link: link, source: source}
	l.path = s.law.Open(s.clock.micros(), ledbat.PathConfig{
		Payload: int64(link.Payload()), MaxMessage: int64(link.MaxMessage()), Base: base.Microseconds(),
	})
	s.lanes = append(s.lanes, l)
	s.mu.Unlock()
	s.nudge()
	return l
}

// Close ends the service of a link.
func (l *Lane) Close() {
	s := l.sender
	s.mu.Lock()
	if !l.closed {
		l.closed = true
		l.path.Close()
		for i, o := range s.lanes {
			if o == l {
				s.lanes = append(s.lanes[:i], s.lanes[i+1:]...)
				break
			}
		}
	}
	s.mu.Unlock()
	s.nudge() // what it had in flight is room for others
}

// Wake says that the source has something again.
func (l *Lane) Wake() { l.sender.nudge() }

// Reset forgets what was measured of the link: its packets take another way now.
func (l *Lane) Reset() {
	s := l.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.closed {
		l.path.Reset(s.clock.micros())
	}
}

// Ack takes a message of the ack channel; false says that it is none, or says what cannot be.
func (l *Lane) Ack(b []byte) bool {
	a, ok := ledbat.ParseAck(b)
	if !ok {
		return false
	}
	s := l.sender
	s.mu.Lock()
	if l.closed {
		s.mu.Unlock()
		return true
	}
	out := l.path.OnAck(s.clock.micros(), a)
	l.acked += out.Acked
	s.mu.Unlock()
	s.nudge()
	return out.Problem == ""
}

// Urgent says that foreground has something to send on any link of the host (true), or that it has all gone out. Calls
// come in pairs. Nothing of the background follows a true before its false.
func (s *Sender) Urgent(on bool) {
	s.mu.Lock()
	if on {
		s.urgent++
	} else {
		s.urgent--
	}
	free := s.urgent == 0
	s.mu.Unlock()
	if free {
		s.nudge()
	}
}

// Stats tells how the host stands.
func (s *Sender) Stats() ledbat.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.law.Stats()
}

// Totals are the bytes of messages that were sent, and those that links acknowledged and still exist.
func (s *Sender) Totals() (sent, acked int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		acked += l.acked
	}
	return s.sent, acked
}

func (s *Sender) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx is done.
func (s *Sender) Run(ctx context.Context) {
	timer := time.NewTimer(idleWait)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(s.work())
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// work sends what may go out now, and says after how long there may be more.
func (s *Sender) work() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, wait := s.clock.micros(), idleWait
	for _, l := range s.lanes {
		if at := l.path.Deadline(); at != 0 && at <= now {
			l.path.OnTimeout(now)
		}
	}
	for blocked := 0; s.urgent == 0 && blocked < len(s.lanes); {
		s.turn = (s.turn + 1) % len(s.lanes)
		sent, again := s.lanes[s.turn].send()
		wait = min(wait, again)
		blocked++
		if sent {
			blocked = 0
		}
	}
	for _, l := range s.lanes { // what was just sent has one, too
		if at := l.path.Deadline(); at != 0 {
			wait = min(wait, max(s.clock.until(at), 0))
		}
	}
	return wait
}

// send sends a message of the lane if it may, and says after how long to try again if not. Under mu.
func (l *Lane) send() (sent bool, again time.Duration) {
	s := l.sender
	if !l.source.Waiting() {
		return false, idleWait
	}
	now, size := s.clock.micros(), l.path.MessageSize()
	if ok, at := l.path.MaySend(now, size); !ok {
		if at == 0 {
			return false, idleWait // an ack or a deadline comes first
		}
		return false, max(s.clock.until(at), 0)
	}
	behind, ok := l.link.Room(int(size))
	if !ok {
		return false, roomRetry
	}
	part, ok := l.source.Next(int(size) - Header)
	if !ok {
		return false, idleWait
	}
	stamp := l.path.OnSent(now, int64(Header+len(part.Payload)), int64(behind))
	s.buf = appendData(s.buf[:0], part, stamp)
	s.sent += int64(len(s.buf))
	return l.link.SendBackground(s.buf), idleWait // a link that takes nothing is closing
}
