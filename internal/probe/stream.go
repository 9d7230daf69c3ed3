package probe

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/quality"
)

// stream is one of a line.
type stream struct {
	quality.Run
	session *lineSession
	before  [quality.MaxDSCP + 1]int64 // marks when it began

	stopped chan struct{} // closed when the line ends
	once    sync.Once     // of stopped
	whole   chan struct{} // closed when every number has come
	said    chan time.Duration

	mu    sync.Mutex
	tally quality.Tally // guarded by mu
}

func newStream(x *lineSession, r quality.Run) *stream {
	s := &stream{Run: r, session: x, stopped: make(chan struct{}), whole: make(chan struct{}), said: make(chan time.Duration, 1)}
	s.before, _ = x.line.Marks()
	if r.Direction != quality.Down {
		s.tally = quality.NewTally(r)
	}
	return s
}

func (s *stream) stop() { s.once.Do(func() { close(s.stopped) }) }

// limit is the time that a stream has.
func (s *stream) limit() time.Duration {
	return s.Length() + quality.SpareTime
}

// run lives as long as the stream does.
func (s *stream) run() {
	defer s.session.leave(s)
	if s.Direction == quality.Down {
		s.send()
		return
	}
	s.collect()
}

// arrived records a message.
func (s *stream) arrived(p quality.Probe, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tally.Arrived(p, at) {
		close(s.whole)
	}
}

// sent has the record close soon.
func (s *stream) sent(rtt time.Duration) {
	select {
	case s.said <- quality.Late(rtt):
	default: // said before
	}
}

// collect waits until the record is closed, and sends it.
func (s *stream) collect() {
	timer := time.NewTimer(s.limit())
	defer timer.Stop()
	said := s.said
	for open := true; open; {
		select {
		case late := <-said:
			said = nil
			timer.Reset(late)
		case <-s.whole:
			open = false
		case <-timer.C:
			open = false
		case <-s.stopped:
			return
		}
	}
	s.mu.Lock()
	arrivals := s.tally.Arrivals
	s.tally = quality.Tally{Closed: true}
	s.mu.Unlock()
	for len(arrivals) > 0 {
		n := min(len(arrivals), quality.MaxArrivals)
		s.session.say(quality.Record{Stream: s.Stream, Arrivals: arrivals[:n]})
		arrivals = arrivals[n:]
	}
	s.session.say(quality.End{Stream: s.Stream, Marks: s.marks()})
}

// send sends the messages of a stream.
func (s *stream) send() {
	began := time.Now()
	until := began.Add(s.limit())
	tick := time.NewTimer(0)
	defer tick.Stop()
	b := make([]byte, 0, quality.MaxSize)
	for n := int64(0); n < s.Messages+quality.Tail; {
		select {
		case <-tick.C:
		case <-s.stopped:
			return
		}
		now := time.Now()
		if now.After(until) {
			s.session.say(quality.Error{Stream: &s.Stream, Code: quality.CodeLimit, Text: "the line carries less than this stream has"})
			return
		}
		for due := s.Due(now.Sub(began).Microseconds()); n < due; n++ {
			if s.session.line.Waiting() > quality.MaxWaiting {
				break
			}
			if !s.session.pays(int(s.Size), true) {
				return
			}
			p := quality.Probe{Stream: s.Stream, Sequence: uint32(n), Sent: s.session.now(time.Now())}
			if s.session.line.Send(p.Append(b[:0], int(s.Size))) != nil {
				return // the line has ended
			}
		}
		tick.Reset(s.Wait(n, time.Since(began)))
	}
	s.session.say(quality.Sent{Stream: s.Stream})
	s.session.say(quality.End{Stream: s.Stream, Marks: s.marks()})
}

// marks are those of the client's packets since the stream began.
func (s *stream) marks() []quality.Mark { return s.session.marksSince(s.before) }

// marksSince are those of the client's packets since there were so many; nil: that cannot be told.
func (x *lineSession) marksSince(before [quality.MaxDSCP + 1]int64) []quality.Mark {
	now, ok := x.line.Marks()
	if !ok {
		return nil
	}
	marks := []quality.Mark{}
	for dscp, n := range now {
		if n -= before[dscp]; n > 0 {
			marks = append(marks, quality.Mark{DSCP: int64(dscp), Packets: n})
		}
	}
	return marks
}
