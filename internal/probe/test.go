package probe

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

const (
	runtime    = 10 * time.Second // of a test
	maxRuntime = 13 * time.Second // of everything that belongs to it
)

// test is one that has a place.
type test struct {
	server  *Server
	kind    string
	network netip.Prefix
	start   time.Time
	cut     atomic.Bool // the server ends
	stop    func()      // ends what the test waits for; guarded by Server.mu
}

// onStop sets what ends the test from outside.
func (t *test) onStop(stop func()) {
	t.server.mu.Lock()
	t.stop = stop
	t.server.mu.Unlock()
	if t.cut.Load() {
		stop()
	}
}

// deadline is when all is over.
func (t *test) deadline() time.Time { return t.start.Add(maxRuntime) }

// elapsed is the time since the test began, in microseconds.
func (t *test) elapsed() int64 { return time.Since(t.start).Microseconds() }

// moved pays for bytes and counts them; false says that the address has no more. down is towards the client.
func (t *test) moved(n int64, down bool) bool {
	if !t.server.charge(t.network, n) {
		return false
	}
	direction := "up"
	if down {
		direction = "down"
	}
	t.server.cfg.Metrics.Add(mBytes, float64(n), direction)
	return true
}

// broken is the outcome of a test whose connection gives an error.
func (t *test) broken(err error) string {
	var late net.Error
	switch {
	case t.cut.Load():
		return endDraining
	case errors.As(err, &late) && late.Timeout(), !time.Now().Before(t.deadline()): // HTTP/2 says of a stream that it is closed
		return endTimeout
	}
	return endClient
}

// end gives the place back.
func (t *test) end(outcome string) {
	s := t.server
	s.mu.Lock()
	delete(s.running, t)
	if s.addresses[t.network]--; s.addresses[t.network] <= 0 {
		delete(s.addresses, t.network)
	}
	s.mu.Unlock()
	s.cfg.Metrics.Add(mRunning, -1, t.kind)
	s.cfg.Metrics.Add(mTests, 1, t.kind, outcome)
	s.ended.Done()
}
