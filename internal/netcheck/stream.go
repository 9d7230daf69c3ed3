package netcheck

import (
	"sync"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// stream is one of a line, as the client sees it.
type stream struct {
	quality.Run
	ready chan struct{} // the server's ready
	said  chan struct{} // down: the server's sent
	ended chan struct{} // the server's end
	whole chan struct{} // every number has come

	mu        sync.Mutex
	tally     quality.Tally      // guarded by mu: down, and echoes
	counted   int64              // guarded by mu: messages that figures count
	exchanges []netstat.Exchange // guarded by mu
	told      []netstat.Arrival  // guarded by mu: the server's record
	marks     []quality.Mark     // guarded by mu: nil: the server cannot tell
	refused   error              // guarded by mu
}

// StreamResult is what is known of a stream.
type StreamResult struct {
	Here      netstat.Record     // what came here: of a stream down, or echoes
	There     netstat.Record     // what came to the server: of a stream up, or the probes of echoes
	Exchanges []netstat.Exchange // of echoes
	Marks     []quality.Mark     // that the server read; nil: it cannot tell
}

func newStream(r quality.Run) *stream {
	return &stream{
		Run: r, ready: make(chan struct{}), said: make(chan struct{}), ended: make(chan struct{}), whole: make(chan struct{}),
		tally: quality.NewTally(r), counted: r.Messages,
	}
}

// sent notes that so many messages were sent, those at the end included. The last ones of a stream that was cut short show gaps before
// them, and no figure counts them.
func (s *stream) sent(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = max(0, min(s.Messages, n-quality.Tail))
}

// arrived notes a message of the server's.
func (s *stream) arrived(p quality.Probe, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tally.Arrived(p, at) {
		close(s.whole)
	}
}

// returned notes an echo.
func (s *stream) returned(e quality.Echo, at int64) {
	s.arrived(e.Probe, at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(e.Sequence) < s.Messages && int64(len(s.exchanges)) < s.Messages+quality.Tail && !s.tally.Closed {
		s.exchanges = append(s.exchanges, netstat.Exchange{Sent: e.Sent, Received: e.Received, Echoed: e.Echoed, Returned: at})
	}
}

// record takes in a part of the server's record.
func (s *stream) record(arrivals []netstat.Arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(len(s.told)) <= 2*(s.Messages+quality.Tail) {
		s.told = append(s.told, arrivals...)
	}
}

func (s *stream) result() StreamResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := StreamResult{Exchanges: s.exchanges, Marks: s.marks}
	if s.Direction != quality.Up {
		r.Here = netstat.Record{Sent: s.counted, Arrivals: s.tally.Arrivals}
	}
	if s.Direction != quality.Down {
		r.There = netstat.Record{Sent: s.counted, Arrivals: s.told}
	}
	return r
}
