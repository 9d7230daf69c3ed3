package wsconn

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// pulse is by what the pinger tells whether a connection is alive: when something came last, since when a write has been under
// way, and how long pings take.
type pulse struct {
	heard  atomic.Int64  // when something came last, of steady
	since  atomic.Int64  // when the write under way began; 0: none is
	stuck  atomic.Bool   // a write took too long
	pinged atomic.Int64  // when the last ping went out that was not answered; 0: none
	mark   atomic.Uint64 // what that one says
	rtt    atomic.Int64  // ns, smoothed; 0 until the first pong

	midway  bool  // only the goroutine that reads: a message has begun, and is not whole
	pingDue int64 // only the pinger
	at      int   // guarded by the pinger's mu: in its list
}

// longAgo is where steady counts from: 0 is before all that is noted.
var longAgo = time.Now().Add(-time.Hour)

// steady is now, as ns of a clock that is not set. By one that is, all connections would end when it is put forward by as much as one may be
// silent.
func steady() int64 { return int64(time.Since(longAgo)) }

// RTT is the round trip of the connection, 0 while no ping has been answered.
func (p *pulse) RTT() time.Duration { return time.Duration(p.rtt.Load()) }

// lives notes that a ping or a pong has come. Between the parts of a message it is no sign of life: a message that is never whole would
// hold its buffers, and a worker, for as long as its sender likes.
func (p *pulse) lives(now int64) {
	if !p.midway {
		p.heard.Store(now)
	}
}

// asks notes that a ping goes out, and returns what it says.
func (p *pulse) asks(now int64) []byte {
	mark := rand.Uint64()
	p.mark.Store(mark)
	p.pinged.Store(now)
	return binary.BigEndian.AppendUint64(nil, mark)
}

// ponged takes a sample of the round trip: one quarter of the new one, three of what was known. A pong that does not say what the ping did
// is no sample: the other side would seem to be as near as it likes.
func (p *pulse) ponged(now int64, said []byte) {
	p.lives(now)
	if len(said) != 8 || binary.BigEndian.Uint64(said) != p.mark.Load() {
		return
	}
	sent := p.pinged.Swap(0)
	if sent == 0 {
		return // not asked for
	}
	sample := max(1, now-sent)
	if old := p.rtt.Load(); old != 0 {
		sample = (3*old + sample) / 4
	}
	p.rtt.Store(sample)
}

// overdue says whether the write under way has taken longer than most, and remembers it.
func (p *pulse) overdue(now int64, most time.Duration) bool {
	since := p.since.Load()
	if since == 0 || now-since <= int64(most) {
		return false
	}
	p.stuck.Store(true)
	return true
}

// silent says whether nothing has come for longer than most.
func (p *pulse) silent(now int64, most time.Duration) bool { return now-p.heard.Load() > int64(most) }
