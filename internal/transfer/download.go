package transfer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// canceledFor is how long data of a canceled request is known for what it is.
const canceledFor = 60 * time.Second

var errDuplicateID = errors.New("a request ID that is outstanding")

// Target is a certified segment that pieces are requested of.
type Target struct {
	Segment peer.ID
	Length  int64
	Digests [][32]byte
	// Piece gets a verified piece, Rejected one that the peer refused. Both may be nil.
	Piece    func(piece int, data []byte)
	Rejected func(piece int, reason peer.RejectReason)
}

// pieceLen is the length of piece i, 0 out of range.
func (t *Target) pieceLen(i int) int {
	start := int64(i) * peer.PieceSize
	return int(max(0, min(peer.PieceSize, t.Length-start)))
}

// Download is the fetching side of one link: requests, reassembly, verification. Safe for concurrent use; callbacks
// run without its lock.
type Download struct {
	send func(peer.Message)
	now  func() time.Time

	mu          sync.Mutex
	nextID      uint32
	pending     map[uint32]*arriving
	canceled    map[uint32]time.Time
	unsolicited int
	wasted      int64
}

type arriving struct {
	target *Target
	piece  int
	data   []byte
	spans  []span // received, sorted, disjoint
}

type span struct{ from, to int }

// NewDownload makes the fetching side of a link; send writes control messages.
func NewDownload(send func(peer.Message), now func() time.Time) *Download {
	return &Download{send: send, now: now, pending: map[uint32]*arriving{}, canceled: map[uint32]time.Time{}}
}

// Request asks for pieces of a segment and returns the request IDs.
func (d *Download) Request(t *Target, lane peer.Lane, pieces ...int) []uint32 {
	m := peer.Request{Segment: t.Segment, Lane: lane}
	d.mu.Lock()
	for _, p := range pieces {
		id := d.nextID
		d.nextID++
		d.pending[id] = &arriving{target: t, piece: p, data: make([]byte, t.pieceLen(p))}
		m.Requests = append(m.Requests, peer.PieceRequest{ID: id, Piece: uint16(p)})
	}
	d.mu.Unlock()
	for rest := m.Requests; len(rest) > 0; {
		n := min(len(rest), 255)
		d.send(peer.Request{Segment: t.Segment, Lane: lane, Requests: rest[:n]})
		rest = rest[n:]
	}
	return ids(m.Requests)
}

// Cancel takes requests back.
func (d *Download) Cancel(list ...uint32) {
	now := d.now()
	d.mu.Lock()
	for _, id := range list {
		delete(d.pending, id)
		d.canceled[id] = now
	}
	for id, at := range d.canceled {
		if now.Sub(at) > canceledFor {
			delete(d.canceled, id)
		}
	}
	d.mu.Unlock()
	d.send(peer.Cancel{IDs: list})
}

// Wasted is the bytes that came for canceled requests.
func (d *Download) Wasted() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wasted
}

// Reject takes a peer's refusals.
func (d *Download) Reject(m peer.Reject) {
	for _, id := range m.IDs {
		d.mu.Lock()
		a := d.pending[id]
		delete(d.pending, id)
		d.mu.Unlock()
		if a != nil && a.target.Rejected != nil {
			a.target.Rejected(a.piece, m.Reason)
		}
	}
}

// Data takes a part of a piece. A *LinkError says that the peer is to be dropped.
func (d *Download) Data(m peer.Data) error {
	d.mu.Lock()
	a := d.pending[m.Request]
	if a == nil {
		defer d.mu.Unlock()
		if _, ok := d.canceled[m.Request]; ok {
			d.wasted += int64(len(m.Payload))
			return nil
		}
		if d.unsolicited += len(m.Payload); d.unsolicited > peer.MaxUnsolicited {
			return &LinkError{peer.CloseLimit, peer.ByeOverLimit, errors.New("unsolicited data")}
		}
		return nil
	}
	whole, err := a.add(m)
	if whole || err != nil {
		delete(d.pending, m.Request)
	}
	d.mu.Unlock()
	if err != nil || !whole {
		return err
	}
	if a.piece >= len(a.target.Digests) || sha256.Sum256(a.data) != a.target.Digests[a.piece] {
		return &LinkError{peer.CloseBadPiece, peer.ByeBadPiece, fmt.Errorf("piece %d does not match its digest", a.piece)}
	}
	if a.target.Piece != nil {
		a.target.Piece(a.piece, a.data)
	}
	return nil
}

// add puts a part in its place; whole says that nothing is missing.
func (a *arriving) add(m peer.Data) (whole bool, err error) {
	from, to := int(m.Offset), int(m.Offset)+len(m.Payload)
	if to > len(a.data) {
		return false, errors.New("data beyond the end of its piece")
	}
	at := len(a.spans)
	for i, s := range a.spans {
		if from < s.to && s.from < to {
			return false, errors.New("data overlaps what was there")
		}
		if s.from > from && i < at {
			at = i
		}
	}
	copy(a.data[from:], m.Payload)
	a.spans = append(a.spans, span{})
	copy(a.spans[at+1:], a.spans[at:])
	a.spans[at] = span{from, to}
	got := 0
	for _, s := range a.spans {
		got += s.to - s.from
	}
	return got == len(a.data), nil
}
