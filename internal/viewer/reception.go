package viewer

import (
	"bytes"
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// reception takes the events of one link, which come from other goroutines and are posted; data alone goes to the peer's
// download at once.
type reception struct {
	loop    Loop
	link    *link
	remote  *remote                          // of an open link; the loop's
	session atomic.Pointer[transfer.Session] // takes data and acks of an open link
	came    atomic.Int64                     // messages of an open link
}

var (
	_ transfer.LinkEvents = (*reception)(nil)
	_ transfer.AckEvents  = (*reception)(nil)
	_ transfer.PathEvents = (*reception)(nil)
)

// attach joins an open link to its peer.
func (r *reception) attach(to *remote) {
	r.remote, to.came = to, &r.came
	r.session.Store(to.session)
}

// on has f run with the peer of the link, as long as there is one.
func (r *reception) on(f func(*remote)) {
	r.loop.Post(func() {
		if r.remote != nil && !r.remote.gone {
			f(r.remote)
		}
	})
}

// Candidate implements transfer.LinkEvents.
func (r *reception) Candidate(c transfer.Candidate) { r.loop.Post(func() { r.link.trickle.local(c) }) }

// Open implements transfer.LinkEvents.
func (r *reception) Open() { r.loop.Post(r.link.opened) }

// Closed implements transfer.LinkEvents.
func (r *reception) Closed(reason peer.CloseReason) { r.loop.Post(func() { r.link.closed(reason) }) }

// Control implements transfer.LinkEvents. What a message consists of may be kept: the link's bytes are used again.
func (r *reception) Control(message []byte) {
	b := bytes.Clone(message)
	r.came.Add(1)
	r.on(func(p *remote) { p.session.Control(b) })
}

// Data implements transfer.LinkEvents, in the goroutine that reads the link.
func (r *reception) Data(message []byte) {
	r.came.Add(1)
	if s := r.session.Load(); s != nil {
		s.Data(message)
	}
}

// Ack implements transfer.AckEvents, in the goroutine that reads the link.
func (r *reception) Ack(message []byte) {
	r.came.Add(1)
	if s := r.session.Load(); s != nil {
		s.Ack(message)
	}
}

// Moved implements transfer.PathEvents.
func (r *reception) Moved() { r.on((*remote).moved) }

// Drain implements transfer.LinkEvents.
func (r *reception) Drain() { r.on((*remote).drained) }
