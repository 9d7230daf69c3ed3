package background

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
)

// Requester bounds what a host has asked for in the background lane, over all its links, and not got. Senders know
// their own uplink only: where many send to one host, only that host can see them as one.
type Requester struct {
	clock clock

	mu   sync.Mutex
	host *ledbat.Receiver // guarded by mu
}

// NewRequester makes the requesting side of a host.
func NewRequester(cfg ledbat.Config, now func() time.Time) *Requester {
	return &Requester{clock: newClock(now), host: ledbat.NewReceiver(cfg)}
}

// Demand is what a host has asked for over one link.
type Demand struct {
	requester *Requester
	source    *ledbat.Source // guarded by Requester.mu
	closed    bool           // guarded by Requester.mu
}

// Add begins with an open link.
func (r *Requester) Add() *Demand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Demand{requester: r, source: r.host.Open(r.clock.micros())}
}

// May says whether another size bytes may be asked for now, over any link; if not, again is when to try it, unless data
// come before.
func (r *Requester) May(size int) (ok bool, again time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, at := r.host.MayRequest(r.clock.micros(), int64(size))
	if ok || at == 0 {
		return ok, idleWait
	}
	return false, max(r.clock.until(at), 0)
}

// Stats tells how the host stands.
func (r *Requester) Stats() ledbat.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.host.Stats()
}

// Requested notes that size bytes of payload were asked for.
func (d *Demand) Requested(size int) {
	d.requester.mu.Lock()
	defer d.requester.mu.Unlock()
	if !d.closed {
		d.source.OnRequest(d.requester.clock.micros(), int64(size))
	}
}

// Gone notes that size bytes of what was asked for will not come in the background: rejected, canceled or promoted.
func (d *Demand) Gone(size int) {
	d.requester.mu.Lock()
	defer d.requester.mu.Unlock()
	if !d.closed {
		d.source.OnGone(int64(size))
	}
}

// arrived notes a message with size bytes of payload.
func (d *Demand) arrived(size int, s ledbat.Stamp) {
	d.requester.mu.Lock()
	defer d.requester.mu.Unlock()
	if !d.closed {
		d.source.OnData(d.requester.clock.micros(), int64(size), s)
	}
}

// Reset forgets what was measured of the link: its packets take another way now.
func (d *Demand) Reset() {
	d.requester.mu.Lock()
	defer d.requester.mu.Unlock()
	if !d.closed {
		d.source.Reset(d.requester.clock.micros())
	}
}

// Close ends it with its link: what is still owed no longer counts.
func (d *Demand) Close() {
	d.requester.mu.Lock()
	defer d.requester.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.source.Close()
	}
}
