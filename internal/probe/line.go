package probe

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/quality"
)

// Bounds of the streams of a connection.
const (
	maxStreams    = 4 // at a time
	maxStreamsAll = 32
	maxRefused    = 32      // runs, before the connection ends
	maxRecorded   = 1 << 20 // messages of the streams that are recorded, of all connections
	// maxRecordedOne are those of an address: a quarter, which is four connections with as much as each may have.
	maxRecordedOne = maxRecorded / 4
	maxSaid        = 4 << 20 // bytes of control messages that a client does not read
)

// lineSession is a test on a line. It is what the line tells its events.
type lineSession struct {
	*test
	ready    chan struct{} // closed when line is set
	line     Line          // set before ready
	open     chan struct{} // closed with Open
	gone     chan struct{} // closed with Closed
	over     chan string   // why this side ends the line
	halfOpen sync.Once     // the end of being so
	work     sync.WaitGroup

	mu      sync.Mutex
	streams map[uint16]*stream // guarded by mu; all that there have been, nil for a load
	load    *load              // guarded by mu; nil: none was asked for
	tally                      // guarded by mu
	idle    time.Time          // guarded by mu: until when there may be no stream
	ended   bool               // guarded by mu
}

// tally counts the streams of a line, the load included.
type tally struct{ active, done, refused int }

func newLineSession(t *test) *lineSession {
	return &lineSession{
		test: t, ready: make(chan struct{}), open: make(chan struct{}), gone: make(chan struct{}), over: make(chan string, 1),
		streams: map[uint16]*stream{},
	}
}

// run lives as long as the test does.
func (x *lineSession) run(line Line) {
	x.line = line
	close(x.ready)
	x.onStop(func() { x.finish(endDraining) })
	outcome := x.wait()
	x.halfOpen.Do(func() { x.server.opened(x.network) })
	x.mu.Lock()
	x.ended = true
	for _, s := range x.streams {
		if s != nil {
			s.stop()
		}
	}
	if x.load != nil {
		x.load.stop()
	}
	complete := x.done > 0 && x.active == 0
	x.mu.Unlock()
	x.farewell(outcome)
	line.Cut()
	<-x.gone
	x.work.Wait()
	if outcome == endClient && complete {
		outcome = endComplete
	}
	x.end(outcome)
}

// wait says how the line ends.
func (x *lineSession) wait() string {
	timer := time.NewTimer(quality.OpenTime)
	defer timer.Stop()
	open := x.open
	for {
		select {
		case outcome := <-x.over:
			return outcome
		case <-x.gone:
			return endClient
		case <-open:
			open = nil
			x.mu.Lock()
			x.start, x.idle = time.Now(), time.Now().Add(quality.IdleTime)
			x.mu.Unlock()
			timer.Reset(quality.IdleTime)
		case now := <-timer.C:
			x.mu.Lock()
			left := x.start.Add(quality.LineTime).Sub(now)
			if x.active == 0 {
				left = min(left, x.idle.Sub(now))
			}
			x.mu.Unlock()
			if open != nil || left <= 0 {
				return endTimeout
			}
			timer.Reset(min(left, quality.IdleTime))
		}
	}
}

// farewell says why this side ends the line, if the client can hear it.
func (x *lineSession) farewell(outcome string) {
	codes := map[string]quality.Code{endBytes: quality.CodeBytes, endProtocol: quality.CodeMalformed, endTimeout: quality.CodeEnding, endDraining: quality.CodeEnding}
	code, ok := codes[outcome]
	select {
	case <-x.open:
	default:
		return
	}
	if !ok {
		return
	}
	texts := map[string]string{
		endBytes: "this address has used up the bytes that it may have in a day", endProtocol: "not what a client may send",
		endTimeout: "the time of this connection is over", endDraining: "the server ends",
	}
	x.say(quality.Error{Code: code, Text: texts[outcome]})
	until := time.NewTimer(time.Second) // for the line to carry it
	defer until.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for x.line.Waiting() > 0 {
		select {
		case <-poll.C:
		case <-until.C:
			return
		case <-x.gone:
			return
		}
	}
}

// finish ends the line from this side.
func (x *lineSession) finish(outcome string) {
	select {
	case x.over <- outcome:
	default: // it ends
	}
}

// Open implements LineEvents.
func (x *lineSession) Open() {
	<-x.ready
	x.halfOpen.Do(func() { x.server.opened(x.network) })
	close(x.open)
}

// Closed implements LineEvents.
func (x *lineSession) Closed(error) { close(x.gone) }

// pays charges a message.
func (x *lineSession) pays(bytes int, down bool) bool {
	if x.moved(int64(bytes)+packetCost, down) {
		return true
	}
	x.finish(endBytes)
	return false
}

// say sends a control message.
func (x *lineSession) say(c quality.Control) {
	b, err := quality.EncodeControl(c)
	if err != nil {
		x.server.cfg.Log.Error("a control message could not be written", "error", err)
		return
	}
	if x.line.Waiting() > maxSaid {
		x.finish(endProtocol)
		return
	}
	if _, last := c.(quality.Error); !last && !x.pays(len(b), true) {
		return
	}
	_ = x.line.Say(b) // a line that has ended says so
}

// now is the server's clock, in microseconds.
func (x *lineSession) now(at time.Time) int64 { return at.Sub(x.server.began).Microseconds() }

// Message implements LineEvents.
func (x *lineSession) Message(b []byte, text bool, at time.Time) {
	if !x.pays(len(b), false) {
		return
	}
	m, err := quality.Decode(b)
	p, ok := m.(quality.Probe)
	if text || err != nil || !ok {
		x.finish(endProtocol)
		return
	}
	x.mu.Lock()
	s := x.streams[p.Stream]
	x.mu.Unlock()
	if s == nil || s.Direction == quality.Down {
		x.finish(endProtocol)
		return
	}
	if s.Direction == quality.Both && x.line.Waiting() < quality.MaxWaiting && x.pays(len(b), true) {
		received := x.now(at)
		_ = x.line.Send(quality.Echo{Probe: p, Received: received, Echoed: x.now(time.Now())}.Append(nil, len(b)))
	}
	s.arrived(p, x.now(at))
}

// Control implements LineEvents.
func (x *lineSession) Control(b []byte, text bool) {
	if !x.pays(len(b), false) {
		return
	}
	c, err := quality.DecodeControl(b)
	if !text || err != nil {
		x.finish(endProtocol)
		return
	}
	switch c := c.(type) {
	case quality.Run:
		x.begin(c)
	case quality.Load:
		x.beginLoad(c)
	case quality.Sent:
		x.mu.Lock()
		s, l := x.streams[c.Stream], x.load
		x.mu.Unlock()
		if l != nil && l.Stream == c.Stream && l.Direction == quality.Up {
			l.stop()
			return
		}
		if s == nil || s.Direction == quality.Down {
			x.finish(endProtocol)
			return
		}
		s.sent(x.line.RTT())
	default:
		x.finish(endProtocol)
	}
}

// begin starts a stream, or refuses it.
func (x *lineSession) begin(r quality.Run) {
	s, code, text := x.admitStream(r)
	if code == "" {
		x.say(quality.Ready{Stream: r.Stream})
		x.work.Go(s.run)
		return
	}
	x.refuse(r.Stream, code, text)
}

// refuse says that there is no such stream; a client that asks too often goes.
func (x *lineSession) refuse(stream uint16, code quality.Code, text string) {
	x.mu.Lock()
	x.refused++
	much := x.refused > maxRefused
	x.mu.Unlock()
	if much {
		x.finish(endProtocol)
		return
	}
	x.say(quality.Error{Stream: &stream, Code: code, Text: text})
}

// placeFor says why there is no place for a stream; an empty code: there is one. Under mu.
func (x *lineSession) placeFor(stream uint16) (code quality.Code, text string) {
	_, used := x.streams[stream]
	switch {
	case x.ended:
		return quality.CodeEnding, "the connection ends"
	case used:
		return quality.CodeBusy, "this number is used"
	case x.active >= maxStreams:
		return quality.CodeLimit, "four streams at a time"
	case len(x.streams) >= maxStreamsAll:
		return quality.CodeLimit, "32 streams a connection"
	}
	return "", ""
}

// admitStream gives a stream its place, or says why not.
func (x *lineSession) admitStream(r quality.Run) (s *stream, code quality.Code, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch code, text := x.placeFor(r.Stream); {
	case code != "":
		return nil, code, text
	case r.Direction != quality.Down && !x.server.remember(x.network, r.Messages):
		return nil, quality.CodeLimit, "the server records as much as it may; come back in a moment"
	}
	s = newStream(x, r)
	x.streams[r.Stream] = s
	x.active++
	return s, "", ""
}

// leave gives back the place of a stream.
func (x *lineSession) leave(s *stream) {
	if s.Direction != quality.Down {
		x.server.forget(x.network, s.Messages)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left()
}

// left notes that one that had a place is over. Under mu.
func (x *lineSession) left() {
	x.active--
	x.done++
	x.idle = time.Now().Add(quality.LateTime)
}
