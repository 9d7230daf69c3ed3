package transfer

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// maxQueueAge is how long a request waits for the budget before it is rejected, so that its sender can turn elsewhere.
const maxQueueAge = 4 * time.Second

// Pieces is where an upload takes its bytes from.
type Pieces interface {
	// Piece returns the bytes of a piece, which stay unchanged, or why they cannot be had.
	Piece(segment peer.ID, piece int) ([]byte, Refusal)
}

// Refusal is a reason not to serve; Served is none.
type Refusal int

// The refusals, one above the reject reasons of the wire.
const Served Refusal = 0

// Refuse makes the refusal for a reject reason.
func Refuse(r peer.RejectReason) Refusal { return Refusal(r) + 1 }

// Budget decides whether bytes may be sent.
type Budget interface {
	// Take takes n bytes. With ok it has; else the caller tries again after wait, or rejects when wait is 0.
	Take(n int) (wait time.Duration, ok bool)
}

// Observer counts what an upload does.
type Observer interface {
	Sent(bytes int)
	Served()
	Rejected(reason peer.RejectReason, n int)
	Canceled(n int)
}

// UploadConfig says how one link is served.
type UploadConfig struct {
	Link        Link
	Send        func(peer.Message) // control messages
	Pieces      Pieces
	Budget      Budget // nil: unbounded
	Observer    Observer
	MaxRequests int
	Background  bool // the background lane is served
}

// Uploader serves the requests of many links, one message a turn, round robin.
type Uploader struct {
	// MostQueued requests over all links together leave each link no more than Share. 0: only the links' own bounds hold.
	// Set before the first Add.
	MostQueued, Share int

	now  func() time.Time
	wake chan struct{}

	mu   sync.Mutex
	ring []*Upload // guarded by mu
	next int       // guarded by mu
	buf  []byte    // used by Run only
}

// NewUploader makes one; Run works it.
func NewUploader(now func() time.Time) *Uploader {
	return &Uploader{now: now, wake: make(chan struct{}, 1)}
}

// Upload is the queue of one link. All fields below cfg are guarded by Uploader.mu; sending is touched by Run alone.
type Upload struct {
	u       *Uploader
	cfg     UploadConfig
	lanes   [2][]queued
	active  *uint32 // request being sent
	stop    bool    // the active request was canceled
	blocked bool    // the link's buffers are full; Drain lifts it
	drains  uint64  // calls of Drain, so that one between a refusal and its note is not lost
	until   time.Time
	closed  bool

	sending queued
	data    []byte
	offset  int
	size    int
}

type queued struct {
	segment peer.ID
	id      uint32
	piece   int
	at      time.Time
}

// Add begins to serve a link.
func (u *Uploader) Add(cfg UploadConfig) *Upload {
	up := &Upload{u: u, cfg: cfg}
	u.mu.Lock()
	u.ring = append(u.ring, up)
	u.mu.Unlock()
	return up
}

// Remove ends it; queued requests are forgotten.
func (up *Upload) Remove() {
	u := up.u
	u.mu.Lock()
	defer u.mu.Unlock()
	up.closed = true
	for i, o := range u.ring {
		if o == up {
			u.ring = append(u.ring[:i], u.ring[i+1:]...)
			break
		}
	}
}

func (u *Uploader) nudge() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// Request queues what a peer asked for; what cannot be queued is rejected at once. A request ID that is outstanding
// is a protocol error.
func (up *Upload) Request(m peer.Request) error {
	if m.Lane == peer.Background && !up.cfg.Background {
		up.reject(peer.RejectLaneOff, ids(m.Requests))
		return nil
	}
	var busy []uint32
	u := up.u
	now := u.now()
	u.mu.Lock()
	for _, r := range m.Requests {
		if up.outstanding(r.ID) {
			u.mu.Unlock()
			return errDuplicateID
		}
		if n := len(up.lanes[0]) + len(up.lanes[1]); n >= up.cfg.MaxRequests || u.MostQueued > 0 && n >= u.Share && u.queued() >= u.MostQueued {
			busy = append(busy, r.ID)
			continue
		}
		up.lanes[m.Lane] = append(up.lanes[m.Lane], queued{segment: m.Segment, id: r.ID, piece: int(r.Piece), at: now})
	}
	u.mu.Unlock()
	if busy != nil {
		up.reject(peer.RejectBusy, busy)
	}
	u.nudge()
	return nil
}

// queued is how many requests wait on all links. Under mu.
func (u *Uploader) queued() int {
	n := 0
	for _, up := range u.ring {
		n += len(up.lanes[0]) + len(up.lanes[1])
	}
	return n
}

func ids(rs []peer.PieceRequest) []uint32 {
	out := make([]uint32, len(rs))
	for i, r := range rs {
		out[i] = r.ID
	}
	return out
}

// Len is the number of requests that wait or are being served.
func (up *Upload) Len() int {
	up.u.mu.Lock()
	defer up.u.mu.Unlock()
	n := len(up.lanes[0]) + len(up.lanes[1])
	if up.active != nil {
		n++
	}
	return n
}

func (up *Upload) outstanding(id uint32) bool {
	if up.active != nil && *up.active == id {
		return true
	}
	for _, lane := range up.lanes {
		for _, q := range lane {
			if q.id == id {
				return true
			}
		}
	}
	return false
}

func (up *Upload) reject(reason peer.RejectReason, list []uint32) {
	up.cfg.Send(peer.Reject{Reason: reason, IDs: list})
	up.cfg.Observer.Rejected(reason, len(list))
}

// Cancel stops requests that are not fully sent.
func (up *Upload) Cancel(m peer.Cancel) {
	u, n := up.u, 0
	u.mu.Lock()
	for _, id := range m.IDs {
		if up.active != nil && *up.active == id && !up.stop {
			up.stop = true
			n++
		}
		if _, ok := up.take(id); ok {
			n++
		}
	}
	u.mu.Unlock()
	if n > 0 {
		up.cfg.Observer.Canceled(n)
	}
	u.nudge()
}

// take removes a queued request. Under mu.
func (up *Upload) take(id uint32) (queued, bool) {
	for l, lane := range up.lanes {
		for i, q := range lane {
			if q.id == id {
				up.lanes[l] = append(lane[:i:i], lane[i+1:]...)
				return q, true
			}
		}
	}
	return queued{}, false
}

// Withdraw rejects the queued requests for a segment: it was revoked.
func (up *Upload) Withdraw(segment peer.ID) {
	var gone []uint32
	up.u.mu.Lock()
	for l, lane := range up.lanes {
		var keep []queued
		for _, q := range lane {
			if q.segment == segment && len(gone) < 255 {
				gone = append(gone, q.id)
			} else {
				keep = append(keep, q)
			}
		}
		up.lanes[l] = keep
	}
	up.u.mu.Unlock()
	if gone != nil {
		up.reject(peer.RejectWithdrawn, gone)
	}
}

// Promote moves background requests to the foreground, in place.
func (up *Upload) Promote(m peer.Promote) {
	u := up.u
	u.mu.Lock()
	for _, id := range m.IDs {
		for _, q := range up.lanes[peer.Background] {
			if q.id == id {
				q, _ = up.take(id)
				up.lanes[peer.Foreground] = append(up.lanes[peer.Foreground], q)
				break
			}
		}
	}
	u.mu.Unlock()
	u.nudge()
}

// Drain says that the link has room again.
func (up *Upload) Drain() {
	u := up.u
	u.mu.Lock()
	up.blocked = false
	up.drains++
	u.mu.Unlock()
	u.nudge()
}
