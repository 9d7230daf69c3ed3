package background

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
)

const (
	// roomRetry is when a lane is tried again that SCTP had no room for: SCTP does not say when it has.
	roomRetry = 5 * time.Millisecond
	// idleWait is how long the loop sleeps when nothing is to be done; everything that gives it work wakes it.
	idleWait = time.Hour
	// Pacing that asks for less than a rest is given a rest, and what is due by then goes out together: each message by itself
	// is a timer, a system call and the wake-up of a few goroutines. The controller makes up for timers that are late by so much. A
	// burst is no more than a part of the window that way, and than restMost takes.
	restPart = 8     // of the round trip
	restMost = 2_000 // µs, half of what the controller makes up for
	// restLong is the longest wait for pacing (µs) that nothing interrupts: whatever acks say, no message goes before.
	restLong = 5_000
	// A link keeps its turn for turnTrips round trips, within bounds: where the bottleneck has a queue for each flow, a
	// host whose links all had something waiting there would have as many shares as links, and see no delay of others.
	turnTrips = 4
	turnLeast = 200_000 // µs
	turnMost  = 500_000 // µs
	// A turn lasts longer by so much at most, for the piece of the foreground that is half sent: over a thin line several links would else
	// have a part of a piece each, for longer than any of them waits.
	turnPiece = 1_000_000 // µs
	// A link that claims a queue that another did not see: the others have to be heard of before what they said is old.
	turnRefuted = 50_000 // µs
)

// Sender is the background lane of a host, over all its links.
type Sender struct {
	// Awake, if set, is called instead of waking Run: Work has something to do. It may be called under locks, from any
	// goroutine. Set before the first Add.
	Awake func()

	clock clock
	wake  chan struct{}

	mu     sync.Mutex
	host   *ledbat.Sender // guarded by mu
	active []*Lane        // guarded by mu: have something to send or in flight; the first has its turn
	until  int64          // guarded by mu: the end of that turn
	rest   int64          // guarded by mu: nothing goes out before this moment, of the clock; in the past mostly
	eager  bool           // guarded by mu
	cap    uploadCap      // guarded by mu, but for its rate
	buf    []byte         // guarded by mu
	totals totals         // guarded by mu

	waking sync.Mutex
	woken  []*Lane // guarded by waking: may have something again
}

// totals are bytes of messages, headers included: sent, and acknowledged of them.
type totals struct{ sent, acked int64 }

// NewSender makes the background lane of a host; Run works it.
func NewSender(cfg ledbat.Config, now func() time.Time) *Sender {
	return &Sender{clock: newClock(now), host: ledbat.NewSender(cfg), wake: make(chan struct{}, 1)}
}

// Lane is the background of one link.
type Lane struct {
	sender *Sender
	link   Link
	source Source
	path   *ledbat.Path // guarded by Sender.mu
	active bool         // guarded by Sender.mu: is in the sender's list
	closed bool         // guarded by Sender.mu

	woken atomic.Bool // the source may have something again
}

// Add begins to serve an open link. base is the base delay of the route from an earlier link, 0 unknown.
func (s *Sender) Add(link Link, source Source, base time.Duration) *Lane {
	s.mu.Lock()
	l := &Lane{sender: s, link: link, source: source}
	l.path = s.host.Open(s.clock.micros(), ledbat.PathConfig{
		Payload: int64(link.Payload()), MaxMessage: int64(link.MaxMessage()), Base: base.Microseconds(),
	})
	s.mu.Unlock()
	l.Wake()
	return l
}

// Close ends the service of a link.
func (l *Lane) Close() {
	s := l.sender
	s.mu.Lock()
	if !l.closed {
		l.closed = true
		l.path.Close()
		s.active = slices.DeleteFunc(s.active, func(o *Lane) bool { return o == l })
	}
	s.mu.Unlock()
	s.nudge() // what it had in flight is room for others
}

// Wake says that the source has something again. It takes no lock, so that a source may call it under its own.
func (l *Lane) Wake() {
	if !l.woken.Swap(true) {
		l.sender.wakeUp(l)
	}
}

// Reset forgets what was measured of the link: its packets take another way now.
func (l *Lane) Reset() {
	s := l.sender
	s.mu.Lock()
	if !l.closed {
		l.path.Reset(s.clock.micros())
	}
	s.mu.Unlock()
	s.nudge() // what it had in flight is room
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
	now := s.clock.micros()
	out := l.path.OnAck(now, a)
	s.totals.acked += out.Acked
	rests := now < s.rest
	s.mu.Unlock()
	if !rests {
		s.nudge()
	}
	return out.Problem == ""
}

// Eager says whether any source has foreground to send: the controller then bears its whole target.
func (s *Sender) Eager(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eager = on
	s.host.Eager(on)
	if on {
		s.rest = 0
	}
}

// Beside notes bytes that the host sends over its line outside the controller.
func (s *Sender) Beside(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host.Beside(s.clock.micros(), int64(n))
}

// Cap bounds what the host sends, kbit/s; 0: nothing but the controller does.
func (s *Sender) Cap(kbps int64) {
	s.cap.kbps.Store(kbps)
	s.nudge()
}

// IsCapped says whether there is a cap. It takes no lock: callers hold those of sources.
func (s *Sender) IsCapped() bool { return s.Kbps() > 0 }

// Kbps is the cap, kbit/s; 0: there is none. It takes no lock either.
func (s *Sender) Kbps() int64 { return s.cap.kbps.Load() }

// Stats tells how the host stands.
func (s *Sender) Stats() ledbat.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host.Stats()
}

// Totals are the bytes of messages that were sent and that were acknowledged.
func (s *Sender) Totals() (sent, acked int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals.sent, s.totals.acked
}

// wakeUp notes that a link has something again.
func (s *Sender) wakeUp(l *Lane) {
	s.waking.Lock()
	s.woken = append(s.woken, l)
	s.waking.Unlock()
	s.nudge()
}

func (s *Sender) nudge() {
	if s.Awake != nil {
		s.Awake()
		return
	}
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
		timer.Reset(s.Work())
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// Woken has something when Work has something to do. For owners with a loop of their own, instead of Run.
func (s *Sender) Woken() <-chan struct{} { return s.wake }

// Work sends what may go out now, and says after how long there may be more. For owners with a loop of their own, instead
// of Run.
func (s *Sender) Work() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.join()
	now := s.clock.micros()
	for _, l := range s.active {
		if at := l.path.Deadline(); at != 0 && at <= now {
			l.path.OnTimeout(now)
		}
	}
	wait := s.serve()
	s.active = slices.DeleteFunc(s.active, func(l *Lane) bool {
		at := l.path.Deadline()
		if at != 0 { // what was just sent has one, too
			wait = min(wait, max(s.clock.until(at), 0))
		}
		l.active = at != 0 || l.source.Waiting()
		return !l.active
	})
	return wait
}

// join takes in links that have something again. Under mu.
func (s *Sender) join() {
	s.waking.Lock()
	woken := s.woken
	s.woken = nil
	s.waking.Unlock()
	for _, l := range woken {
		l.woken.Store(false)
		if !l.active && !l.closed {
			l.active = true
			s.active = append(s.active, l)
		}
	}
}

// serve sends until nothing may go out any more: from the link that has its turn, and from the others in their order
// what that one leaves room for. Under mu.
func (s *Sender) serve() (wait time.Duration) {
	if left := s.clock.until(s.rest); left > 0 {
		return left
	}
	wait = idleWait
	crowded := false
	for i := 0; i < len(s.active); i++ {
		if i == 0 {
			s.rotate()
			wait, crowded = idleWait, false
		}
		if crowded && s.active[i].path.Flight() > 0 {
			continue // only a link with nothing in flight may learn whether others hold their acks back
		}
		did, again := s.active[i].send()
		wait = min(wait, again)
		switch did {
		case sent:
			i = -1
		case full:
			return wait
		case crowd:
			crowded = true
		}
	}
	return wait
}

// rotate gives the turn to the next link when it is time, or when the one that has it has nothing to send; with every message
// where the controller empties the line. Under mu.
func (s *Sender) rotate() {
	now, st := s.clock.micros(), s.host.Stats()
	each := st.State == ledbat.SlowStart || st.State == ledbat.Slowdown
	if each {
		s.until = now // the host has no queue: every link is to see its base
	}
	for range s.active {
		first := s.active[0]
		if first.source.Waiting() && (now < s.until || !each && now < s.until+turnPiece && first.midway()) {
			return
		}
		s.active = append(s.active[1:], s.active[0])
		s.until = now + turnRefuted
		if !s.active[0].path.Refuted() {
			s.until = now + min(max(turnTrips*st.RTT, turnLeast), turnMost)
		}
	}
}

// midway says whether a piece of the foreground is half sent over the link, unless the link's word is not believed. Under mu.
func (l *Lane) midway() bool {
	whole, is := l.source.(Whole)
	return is && !l.path.Refuted() && whole.Midway()
}

// attempt is what came of an attempt to send.
type attempt int

const (
	held  attempt = iota // the link has nothing to send, or no room
	sent                 // a message went out
	full                 // no link of the host may send now
	crowd                // nor may one that has something in flight
)

// send sends a message of the lane if it may, and says after how long to try again if not. Under mu.
func (l *Lane) send() (did attempt, again time.Duration) {
	s := l.sender
	if !l.source.Waiting() {
		return held, idleWait
	}
	now, size := s.clock.micros(), l.path.MessageSize()
	if at := s.cap.at(); at > now {
		return full, time.Duration(at-now) * time.Microsecond
	}
	switch ok, at := l.path.MaySend(now, size); {
	case ok:
	case at != 0: // pacing is the host's
		return full, s.pause(at)
	case s.host.Stats().Flight > 0 && s.host.Stats().Flight+size > s.host.Window():
		return crowd, idleWait // an ack or a deadline comes first
	default:
		return held, idleWait
	}
	behind, ok := l.link.Room(int(size))
	if !ok {
		return held, roomRetry
	}
	part, ok := l.source.Next(int(size) - Header)
	if !ok {
		return held, idleWait
	}
	stamp := l.path.OnSent(now, int64(Header+len(part.Payload)), int64(behind))
	s.buf = appendData(s.buf[:0], part, stamp)
	s.totals.sent += int64(len(s.buf))
	s.cap.sent(now, int64(len(s.buf)))
	l.link.SendBackground(s.buf) // one that takes nothing is closing
	return sent, idleWait
}

// pause is how long to wait for what pacing lets go at that moment. A send for which a load waits has no rests. Under mu.
func (s *Sender) pause(at int64) time.Duration {
	now := s.clock.micros()
	if !s.eager {
		if at = max(at, now+min(s.host.Stats().RTT/restPart, restMost)); at-now <= restLong {
			s.rest = at
		}
	}
	return max(time.Duration(at-now)*time.Microsecond, 0)
}
