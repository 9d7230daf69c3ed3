package netcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

var (
	errText = errors.New("a control message that is no text")
	errThin = errors.New("the line carries less than the stream has")
)

// Line is the client's end of a quality test. Its methods Open, Message, Control, Lane and Closed are for what carries it.
type Line struct {
	link     *qualitylink.Line
	began    time.Time
	opened   chan struct{}
	gone     chan struct{}
	reason   error         // of the end; set before gone
	answered time.Duration // how long the answer to the offer took

	mu      sync.Mutex
	streams map[uint16]*stream // guarded by mu
	refused error              // guarded by mu: what the server said of the connection
	load    *laneLoad          // guarded by mu: nil: there is none
}

func newLine() *Line {
	return &Line{began: time.Now(), opened: make(chan struct{}), gone: make(chan struct{}), streams: map[uint16]*stream{}}
}

// Open implements qualitylink.Events.
func (l *Line) Open() { close(l.opened) }

// Closed implements qualitylink.Events.
func (l *Line) Closed(err error) {
	l.reason = err
	close(l.gone)
}

func (l *Line) now(at time.Time) int64 { return at.Sub(l.began).Microseconds() }

func (l *Line) stream(n uint16) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[n]
}

// Message implements qualitylink.Events. What is malformed is left out: the server's errors cost this side nothing.
func (l *Line) Message(b []byte, text bool, at time.Time) {
	m, err := quality.Decode(b)
	if err != nil || text {
		return
	}
	switch m := m.(type) {
	case quality.Probe:
		if s := l.stream(m.Stream); s != nil && s.Direction == quality.Down {
			s.arrived(m, l.now(at))
		}
	case quality.Echo:
		if s := l.stream(m.Stream); s != nil && s.Direction == quality.Both {
			s.returned(m, l.now(at))
		}
	}
}

// Control implements qualitylink.Events.
func (l *Line) Control(b []byte, text bool) {
	c, err := quality.DecodeControl(b)
	if err != nil || !text {
		l.fail(fmt.Errorf("the server sent what it must not: %w", cmp.Or[error](err, errText)))
		return
	}
	switch c := c.(type) {
	case quality.Ready:
		closeOnce(l.stream(c.Stream), func(s *stream) chan struct{} { return s.ready })
	case quality.Sent:
		closeOnce(l.stream(c.Stream), func(s *stream) chan struct{} { return s.said })
	case quality.Record:
		if s := l.stream(c.Stream); s != nil {
			s.record(c.Arrivals)
		}
	case quality.End:
		if s := l.stream(c.Stream); s != nil {
			s.mu.Lock()
			s.marks = c.Marks
			s.mu.Unlock()
		}
		closeOnce(l.stream(c.Stream), func(s *stream) chan struct{} { return s.ended })
	case quality.Error:
		err := &saidError{c.Code, c.Text}
		if c.Stream == nil {
			l.fail(err)
		} else if s := l.stream(*c.Stream); s != nil {
			s.mu.Lock()
			s.refused = err
			s.mu.Unlock()
			closeOnce(s, func(s *stream) chan struct{} { return s.ended })
		}
	}
}

// fail ends the line with what is wrong.
func (l *Line) fail(err error) {
	l.mu.Lock()
	if l.refused == nil {
		l.refused = err
	}
	l.mu.Unlock()
	l.link.Cut()
}

// closeOnce closes a channel of a stream that is there.
func closeOnce(s *stream, which func(*stream) chan struct{}) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-which(s):
	default:
		close(which(s))
	}
}

// lost is why the line has ended.
func (l *Line) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.refused != nil:
		return l.refused
	case l.reason != nil:
		return l.reason
	}
	return qualitylink.ErrClosed
}

// Close ends the line and returns when nothing of it runs any more.
func (l *Line) Close() { l.link.Close() }

// Signaler posts an offer and returns the answer.
type Signaler func(ctx context.Context, offer string) (answer string, err error)

// Dial opens a line from an address of this machine.
func Dial(ctx context.Context, host *qualitylink.Host, from netip.Addr, dscp int, post Signaler) (*Line, error) {
	l := newLine()
	link, offer, err := host.Offer(from, dscp, l)
	if err != nil {
		return nil, err
	}
	l.link = link
	asked := time.Now()
	answer, err := post(ctx, offer)
	l.answered = time.Since(asked)
	if err == nil {
		err = link.Accept(answer)
	}
	if err != nil {
		link.Close()
		return nil, err
	}
	late := time.NewTimer(max(openTime, openTrips*l.answered))
	defer late.Stop()
	select {
	case <-l.opened:
		return l, nil
	case <-l.gone:
		err = l.lost()
	case <-late.C:
		err = qualitylink.ErrOpen
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	link.Close()
	return nil, err
}

// Run has the streams run at once and returns their results.
func (l *Line) Run(ctx context.Context, runs []quality.Run) ([]StreamResult, error) {
	results, errs := make([]StreamResult, len(runs)), make([]error, len(runs))
	var work sync.WaitGroup
	for i, r := range runs {
		s := newStream(r)
		l.mu.Lock()
		l.streams[r.Stream] = s
		l.mu.Unlock()
		work.Go(func() { errs[i] = l.one(ctx, s) })
	}
	work.Wait()
	for i := range runs {
		results[i] = l.stream(runs[i].Stream).result()
	}
	return results, errors.Join(errs...)
}

// one lives as long as a stream does, and in any case no longer than its time.
func (l *Line) one(ctx context.Context, s *stream) error {
	limit := s.Length() + quality.Patience
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("the server does not end the stream"))
	defer cancel()
	if err := l.say(s.Run); err != nil {
		return l.lost()
	}
	if err := l.await(ctx, s, s.ready); err != nil {
		return err
	}
	if s.Direction != quality.Down {
		n, err := l.send(ctx, s)
		if err != nil {
			return err
		}
		s.sent(n)
		if err := l.say(quality.Sent{Stream: s.Stream}); err != nil {
			return l.lost()
		}
	}
	if err := l.await(ctx, s, s.ended); err != nil || s.Direction == quality.Up {
		return err
	}
	late := time.NewTimer(quality.Late(l.link.RTT()))
	defer late.Stop()
	select {
	case <-s.whole:
	case <-late.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.tally.Closed = true
	s.mu.Unlock()
	return nil
}

// await waits for what the server says of a stream.
func (l *Line) await(ctx context.Context, s *stream, what chan struct{}) error {
	select {
	case <-what:
	case <-s.ended:
	case <-l.gone:
		return l.lost()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (l *Line) say(c quality.Control) error {
	b, err := quality.EncodeControl(c)
	if err != nil {
		return err
	}
	return l.link.Say(b)
}

// send sends the messages of a stream until all are sent, the server has closed its record, or the line takes them too slowly. It
// returns how many were sent.
func (l *Line) send(ctx context.Context, s *stream) (n int64, err error) {
	began := time.Now()
	until := began.Add(s.Length() + quality.ThinTime)
	tick := time.NewTimer(0)
	defer tick.Stop()
	b := make([]byte, 0, quality.MaxSize)
	for n < s.Messages+quality.Tail {
		select {
		case <-tick.C:
		case <-s.ended:
			return n, nil
		case <-l.gone:
			return n, l.lost()
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
		now := time.Now()
		if now.After(until) {
			break
		}
		for due := s.Due(now.Sub(began).Microseconds()); n < due && l.link.Waiting() <= quality.MaxWaiting; n++ {
			p := quality.Probe{Stream: s.Stream, Sequence: uint32(n), Sent: l.now(time.Now())}
			if err := l.link.Send(p.Append(b[:0], int(s.Size))); err != nil {
				return n, l.lost()
			}
		}
		tick.Reset(s.Wait(n, time.Since(began)))
	}
	if n < min(leastMessages, s.Messages)+quality.Tail {
		return n, errThin
	}
	return n, nil
}
