package transfer

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// canceledFor is how long data of a canceled request is known for what it is, and its ID unused.
const canceledFor = 60 * time.Second

var errDuplicateID = errors.New("a request ID that is outstanding")

// Target is a certified segment that pieces are requested of.
type Target struct {
	Segment     segment.ID
	Certificate *certificate.Certificate // its pieces are checked by it
}

// Order is one piece that was asked of the other side.
type Order struct {
	ID       uint32
	Target   *Target
	Piece    int
	Length   int // bytes of the piece
	Lane     peer.Lane
	Why      string // what the requester asked for it for
	Sent     time.Time
	Checking bool // all bytes are in, and on their way to the owner

	came peer.Assembly // the piece as far as it has come
}

// Received is how many bytes of the piece are in.
func (o *Order) Received() int { return o.came.Received }

// DownloadEvents receives the outcome of requests. Its methods may be called from any goroutine.
type DownloadEvents interface {
	// Arrived hands over a whole piece and says whether it matches its digest. The order stays among the outstanding
	// ones until Remove, so that the piece is not asked for again in between.
	Arrived(o Order, data []byte, matches bool)
	// Wasted counts bytes that came for what had been canceled.
	Wasted(bytes int)
}

// Download is the fetching side of one link: requests, reassembly, comparison with the digests, and how quick the other
// side is. Safe for concurrent use; data is taken in the goroutine that reads the link, so that pieces of several links
// are digested side by side. No lock is held while DownloadEvents are called.
type Download struct {
	// Pushed, if set before the first data, takes the data of pushed pieces (spec/parts.md). Without it they were not asked for.
	Pushed func(peer.Data) error

	send   func(peer.Message)
	now    func() time.Time
	events DownloadEvents
	gauge  // locked under mu, never the other way round

	mu          sync.Mutex
	lastID      uint32
	pending     map[uint32]*Order
	order       []uint32 // of pending, as they were asked for
	canceled    map[uint32]canceled
	queued      int64 // bytes asked for in the foreground and not all in
	unsolicited int
	lateBehind  int     // bytes, see LateBehind
	behind      *behind // nil: nothing is taken in the background lane
}

// canceled is what is remembered of a request that was taken back: when, and how many bytes of it may still come.
type canceled struct {
	at       time.Time
	left     int
	messages int // in which it came
	lane     peer.Lane
}

// NewDownload makes the fetching side of a link; send writes control messages.
func NewDownload(send func(peer.Message), now func() time.Time, events DownloadEvents) *Download {
	return &Download{send: send, now: now, events: events, gauge: gauge{clock: now}, pending: map[uint32]*Order{}, canceled: map[uint32]canceled{}}
}

// Request asks for pieces of a segment and returns the request IDs.
func (d *Download) Request(t *Target, lane peer.Lane, why string, pieces ...int) []uint32 {
	var list []peer.PieceRequest
	d.mu.Lock()
	now := d.now()
	for _, p := range pieces {
		id := d.unusedID()
		n := segment.PieceLen(t.Certificate.Length, p)
		o := &Order{ID: id, Target: t, Piece: p, Length: n, Lane: lane, Why: why, Sent: now}
		d.pending[id] = o
		d.order = append(d.order, id)
		d.owe(o)
		list = append(list, peer.PieceRequest{ID: id, Piece: uint16(p)})
	}
	d.mu.Unlock()
	for part := range slices.Chunk(list, maxIDs) {
		d.send(peer.Request{Segment: t.Segment, Lane: lane, Requests: part})
	}
	return ids(list)
}

// maxIDs is how many entries one control message may list.
const maxIDs = 255

// unusedID is under mu.
func (d *Download) unusedID() uint32 {
	for {
		d.lastID++
		_, canceled := d.canceled[d.lastID]
		if d.pending[d.lastID] == nil && !canceled {
			return d.lastID
		}
	}
}

// Cancel takes back the outstanding requests that match and returns them. Pieces that are being checked are left alone.
func (d *Download) Cancel(match func(Order) bool) []Order {
	now := d.now()
	var gone []Order
	var list []uint32
	d.mu.Lock()
	for _, id := range slices.Clone(d.order) {
		if o := d.pending[id]; !o.Checking && match(*o) {
			d.remove(id)
			d.canceled[id] = canceled{now, o.Length - o.Received(), o.came.Messages(), o.Lane}
			gone = append(gone, *o)
			list = append(list, id)
		}
	}
	if len(gone) > 0 {
		for id, c := range d.canceled {
			if now.Sub(c.at) > canceledFor {
				delete(d.canceled, id)
			}
		}
		d.rest()
	}
	d.mu.Unlock()
	for part := range slices.Chunk(list, maxIDs) {
		d.send(peer.Cancel{IDs: part})
	}
	d.waste(gone)
	return gone
}

func (d *Download) waste(gone []Order) {
	n := 0
	for _, o := range gone {
		n += o.Received()
	}
	if n > 0 {
		d.events.Wasted(n)
	}
}

// rest ends the watch of the rate where nothing is outstanding any more. Under mu.
func (d *Download) rest() {
	if d.queued == 0 {
		d.gauge.rest()
	}
}

// remove is under mu.
func (d *Download) remove(id uint32) {
	o := d.pending[id]
	if o == nil {
		return
	}
	if !o.Checking {
		d.settle(o)
	}
	delete(d.pending, id)
	at := slices.Index(d.order, id)
	d.order = slices.Delete(d.order, at, at+1)
}

// Remove forgets an order that has arrived.
func (d *Download) Remove(id uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(id)
}

// Reject takes the other side's refusals and returns the orders that they ended.
func (d *Download) Reject(m peer.Reject) []Order {
	d.mu.Lock()
	var gone []Order
	for _, id := range m.IDs {
		if o := d.pending[id]; o != nil && !o.Checking {
			d.remove(id)
			gone = append(gone, *o)
		}
	}
	d.rest()
	d.mu.Unlock()
	d.waste(gone)
	return gone
}

// Orders lists what is outstanding, in the order in which it was asked for.
func (d *Download) Orders() []Order {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Order, len(d.order))
	for i, id := range d.order {
		out[i] = *d.pending[id]
	}
	return out
}

// Queued is how many bytes were asked for in the foreground and have not all come.
func (d *Download) Queued() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued
}

// Close forgets everything: the link is gone.
func (d *Download) Close() {
	d.mu.Lock()
	var gone []Order
	for _, id := range d.order {
		if o := d.pending[id]; !o.Checking {
			gone = append(gone, *o)
		}
	}
	d.pending, d.order, d.queued = map[uint32]*Order{}, nil, 0
	d.mu.Unlock()
	d.waste(gone)
	d.behind.close()
}

// Data takes a part of a piece that came in the foreground. A *LinkError says that the peer is to be dropped.
func (d *Download) Data(m peer.Data) error { return d.take(m, false) }

// take takes a part of a piece. noted says that it has been taken from what is asked for in the background, if it was of that.
func (d *Download) take(m peer.Data, noted bool) error {
	if _, _, pushed := peer.Pushed(m.Request); pushed && d.Pushed != nil {
		return d.Pushed(m)
	}
	d.mu.Lock()
	o := d.pending[m.Request]
	if o == nil {
		err := d.stray(m)
		d.mu.Unlock()
		if err == errCanceled {
			d.events.Wasted(len(m.Payload))
			return nil
		}
		return err
	}
	if o.Checking {
		d.mu.Unlock()
		return errors.New("data of a piece that is whole")
	}
	if err := o.add(m); err != nil {
		d.mu.Unlock()
		return err
	}
	if o.Lane == peer.Background && !noted { // not as it should have come, but it has
		d.behind.requested(0, len(m.Payload))
	}
	whole := o.Received() == o.Length
	if whole {
		o.Checking = true
		d.settle(o)
	}
	now := d.now()
	d.gauge.came(len(m.Payload), now, o.Sent, o.Lane, d.queued == 0)
	d.mu.Unlock()
	if whole {
		piece := o.came.Data
		d.events.Arrived(*o, piece, o.Target.Certificate.CheckPiece(o.Piece, piece))
	}
	return nil
}

// LateBehind is how many bytes came, since it was last asked, of what had been asked for in the background and canceled.
func (d *Download) LateBehind() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.lateBehind
	d.lateBehind = 0
	return n
}

// errCanceled marks data of a canceled request: it is late and no fault of the peer.
var errCanceled = errors.New("data of a canceled request")

// stray judges data that belongs to no order. Under mu.
func (d *Download) stray(m peer.Data) error {
	now := d.now()
	if c, ok := d.canceled[m.Request]; ok && now.Sub(c.at) <= canceledFor && c.left >= len(m.Payload) && c.messages < peer.MaxPieceMessages {
		c.left -= len(m.Payload)
		c.messages++
		if c.lane == peer.Background {
			d.lateBehind += len(m.Payload)
		}
		d.canceled[m.Request] = c
		d.gauge.late(len(m.Payload), now)
		return errCanceled
	}
	return d.unasked(len(m.Payload))
}

// Unsolicited counts n bytes of a message of pushed data as data that was not asked for. A *LinkError says that the peer is to be dropped.
func (d *Download) Unsolicited(n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unasked(n)
}

// unasked counts a message of data that was not asked for. Under mu.
func (d *Download) unasked(n int) error {
	if d.unsolicited += peer.Unsolicited(n); d.unsolicited > peer.MaxUnsolicited {
		return Overrun(peer.LimitData)
	}
	return nil
}

// add puts a part in its place.
func (o *Order) add(m peer.Data) error {
	err := o.came.Add(m, o.Length)
	if errors.Is(err, peer.ErrCrumbs) {
		return Overrun(peer.LimitData)
	}
	return err
}
