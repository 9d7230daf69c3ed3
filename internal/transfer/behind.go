package transfer

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// behind is the background lane of a download: what comes in it is acknowledged, and what is asked for in it is noted
// where all links of the host are seen as one. Nothing is made before it is needed.
type behind struct {
	link      background.Link
	requester *background.Requester
	now       func() time.Time
	asked     func(request uint32) bool // in the background
	after     func(time.Duration, func()) (stop func())

	mu       sync.Mutex
	demand   *background.Demand   // guarded by mu
	receiver *background.Receiver // guarded by mu
	closed   bool                 // guarded by mu
	last     time.Time            // guarded by mu: when data came
}

// Background has what comes in the background lane of a link acknowledged and counted. requester bounds what is asked for
// in that lane, over all links; after is a timer, nil for time.AfterFunc. To be called before anything is requested.
func (d *Download) Background(link background.Link, requester *background.Requester, after func(time.Duration, func()) (stop func())) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.behind = &behind{link: link, requester: requester, now: d.now, asked: d.askedBehind, after: after}
}

// askedBehind says whether a request is of the background: foreground may come in the same messages.
func (d *Download) askedBehind(request uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.pending[request]
	return a != nil && a.Lane == peer.Background
}

// BackgroundData takes a message of the background transport. A *LinkError says that the peer is to be dropped.
func (d *Download) BackgroundData(b []byte) error {
	d.mu.Lock()
	lane := d.behind
	d.mu.Unlock()
	if lane == nil {
		return &peer.UnknownTypeError{Type: peer.TypeBackgroundData}
	}
	part, fresh, err := lane.open().Data(b)
	if err != nil {
		return err
	}
	if !fresh { // what came before comes again by no fault of the transport
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.unasked(len(part.Payload))
	}
	lane.mu.Lock()
	lane.last = lane.now()
	lane.mu.Unlock()
	return d.take(part, true)
}

// open returns the receiver of the link.
func (l *behind) open() *background.Receiver {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.receiver == nil {
		l.receiver = background.NewReceiver(l.link, l.want(), l.now)
		l.receiver.Asked, l.receiver.After = l.asked, l.after
		if l.closed {
			l.receiver.Close()
		}
	}
	return l.receiver
}

// want is what is asked for over the link. Under mu.
func (l *behind) want() *background.Demand {
	if l.demand == nil {
		l.demand = l.requester.Add()
		if l.closed {
			l.demand.Close()
		}
	}
	return l.demand
}

// requested notes bytes that were asked for (more), or that do not come in this lane any more (less).
func (l *behind) requested(more, less int) {
	if l == nil || more+less == 0 {
		return
	}
	l.mu.Lock()
	demand := l.want()
	l.mu.Unlock()
	if more > 0 {
		demand.Requested(more)
	}
	if less > 0 {
		demand.Gone(less)
	}
}

// Moved says that the link's packets take another way now.
func (d *Download) Moved() {
	d.mu.Lock()
	lane := d.behind
	d.mu.Unlock()
	if lane == nil {
		return
	}
	lane.mu.Lock()
	demand := lane.demand
	lane.mu.Unlock()
	if demand != nil {
		demand.Reset()
	}
}

// close ends it with its link. The receiver asks the download, under its own lock, what a message is of, and the download asks
// here for the demand: so its lock is not waited for under this one.
func (l *behind) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	receiver, demand := l.receiver, l.demand
	l.mu.Unlock()
	if receiver != nil {
		receiver.Close()
	}
	if demand != nil {
		demand.Close()
	}
}

// owe notes an order that was made. Under mu.
func (d *Download) owe(o *Order) {
	if o.Lane == peer.Foreground {
		d.queued += int64(o.Length)
	} else {
		d.behind.requested(o.Length, 0)
	}
}

// settle notes an order of which nothing is owed any more. Under mu.
func (d *Download) settle(o *Order) {
	if o.Lane == peer.Foreground {
		d.queued -= int64(o.Length)
	} else {
		d.behind.requested(0, o.Length-o.Received())
	}
}

// Promote moves the background requests for a piece to the foreground, and says how many there were.
func (d *Download) Promote(segment segment.ID, piece int) int {
	var list []uint32
	d.mu.Lock()
	for _, id := range d.order {
		if a := d.pending[id]; a.Target.Segment == segment && a.Piece == piece && a.Lane == peer.Background && !a.Checking {
			d.settle(a)
			a.Lane, a.Sent = peer.Foreground, d.now() // from now on it may stall
			d.owe(a)
			list = append(list, id)
		}
	}
	d.mu.Unlock()
	if list != nil {
		d.send(peer.Promote{IDs: list})
	}
	return len(list)
}

// LastBehind is when data last came in the background lane; the zero time if none did.
func (d *Download) LastBehind() time.Time {
	d.mu.Lock()
	lane := d.behind
	d.mu.Unlock()
	if lane == nil {
		return time.Time{}
	}
	lane.mu.Lock()
	defer lane.mu.Unlock()
	return lane.last
}
