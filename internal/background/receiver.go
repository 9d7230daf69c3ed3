package background

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Receiver takes the background messages of one link and acknowledges them.
type Receiver struct {
	// Asked, if set, says whether a request is of what demand bounds; foreground may come in the same messages. It is
	// called under the receiver's lock. Set before the first Data.
	Asked func(request uint32) bool
	// After calls f once d has passed, unless stopped; time.AfterFunc if it is nil. Set before the first Data.
	After func(d time.Duration, f func()) (stop func())

	link   Link
	demand *Demand // nil: nothing is bounded
	clock  clock

	mu     sync.Mutex
	acker  *ledbat.Acker // guarded by mu
	stop   func()        // guarded by mu: of the timer that counts; nil if none runs
	rings  int64         // guarded by mu: when it is to ring, of the clock
	closed bool          // guarded by mu
	buf    []byte        // guarded by mu
}

// NewReceiver makes the receiving end of a link. demand is what was asked for over it; nil where that has no bound.
func NewReceiver(link Link, demand *Demand, now func() time.Time) *Receiver {
	r := &Receiver{link: link, demand: demand, clock: newClock(now), acker: ledbat.NewAcker()}
	if demand != nil {
		r.clock = demand.requester.clock // the sender tells us back what we say of our time
	}
	return r
}

// Data takes a background message and returns what it carries; Payload aliases b. fresh is false for a message that came
// before, or too far ahead of what is missing: what it carries is to be dropped.
func (r *Receiver) Data(b []byte) (part peer.Data, fresh bool, err error) {
	part, stamp, err := parseData(b, r.link.MaxMessage())
	if err != nil {
		return peer.Data{}, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acker.Foreground = r.Asked != nil && !r.Asked(part.Request)
	fresh = r.acker.OnData(r.clock.micros(), int64(len(b)), stamp)
	r.answer()
	if fresh && r.demand != nil {
		size := len(part.Payload)
		if r.Asked != nil && !r.Asked(part.Request) {
			size = 0
		}
		r.demand.arrived(size, stamp)
	}
	return part, fresh, nil
}

// answer acknowledges, now or when it is due. Under mu.
func (r *Receiver) answer() {
	due := r.acker.Due()
	if due == 0 || r.closed {
		return
	}
	if wait := r.clock.until(due); wait > 0 {
		if r.stop == nil || due < r.rings { // one that comes too soon looks again
			r.rings, r.stop = due, r.after(due, wait)
		}
		return
	}
	if a, ok := r.acker.Make(r.clock.micros()); ok {
		r.buf = a.Append(r.buf[:0])
		r.link.SendAck(r.buf)
	}
}

func (r *Receiver) after(due int64, d time.Duration) (stop func()) {
	late := func() { r.late(due) }
	if r.After != nil {
		return r.After(d, late)
	}
	t := time.AfterFunc(d, late)
	return func() { t.Stop() }
}

// late is what a timer calls. One that another has come before does nothing.
func (r *Receiver) late(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if due != r.rings {
		return
	}
	r.stop, r.rings = nil, 0
	r.answer()
}

// Close ends it: no ack goes out any more.
func (r *Receiver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.stop != nil {
		r.stop()
	}
}
