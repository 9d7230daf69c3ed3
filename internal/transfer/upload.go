package transfer

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// maxQueueAge is how long a request waits for the budget before it is rejected, so that its sender can turn elsewhere.
const maxQueueAge = 4 * time.Second

// Pieces is where an upload takes its bytes from.
type Pieces interface {
	// Piece returns the bytes of a piece, which stay unchanged, or why they cannot be had. It does not wait for a disk or a
	// network, since all links are served from one loop: Later says that Upload.Loaded will be called, and may have been.
	Piece(segment segment.ID, piece int) ([]byte, Refusal)
}

// Refusal is a reason not to serve; Served is none.
type Refusal int

// The refusals, one above the reject reasons of the wire.
const (
	Served Refusal = 0
	Later  Refusal = -1 // not yet: the bytes are on their way
)

// Refuse makes the refusal for a reject reason.
func Refuse(r peer.RejectReason) Refusal { return Refusal(r) + 1 }

// reason is the reject reason of one that Refuse made.
func (r Refusal) reason() peer.RejectReason { return peer.RejectReason(r - 1) }

// Budget decides whether bytes may be sent.
type Budget interface {
	// Take takes n bytes. With ok it has; else the caller tries again after wait, or rejects when wait is 0.
	Take(n int) (wait time.Duration, ok bool)
}

// Observer counts what an upload does.
type Observer interface {
	Sent(lane peer.Lane, bytes int)
	Served()
	Promoted(n int)
	Rejected(reason peer.RejectReason, n int)
	Canceled(n int)
}

// UploadConfig says how one link is served.
type UploadConfig struct {
	Link Link
	// Session hears of each request that is sent whole, which pays for the asking, and says what is to be said.
	Session     *Session
	Send        func(peer.Message) // says it instead; nil: Session does
	Pieces      Pieces
	Budget      Budget // nil: unbounded
	Observer    Observer
	MaxRequests int
	Background  bool // the background lane is served, to peers that ack it
	// Pushed hears of each piece of Push that has been sent, or that is given up. It may be called from any goroutine; no lock is held.
	Pushed func(sent bool)
}

// Uploader serves the requests of many links, one message a turn, round robin; in the background, what the host's
// background lane lets go, and nothing while there is foreground.
type Uploader struct {
	// Background is the host's background lane; nil: it is off, and such requests are rejected. Set before the first Add.
	Background *background.Sender
	// Paced sends the foreground, too, under the controller of the background lane and ahead of it, to peers that ack it. It
	// is for hosts that share their uplink with other traffic. Set before the first Add.
	Paced bool
	// Wake, if set, is called when Work has something to do again. It may be called under locks, from any goroutine.
	// Set before the first Add.
	Wake func()

	// MostQueued requests over all links together leave each link no more than Share. 0: only the links' own bounds hold.
	// Set before the first Add.
	MostQueued, Share int

	now  func() time.Time
	wake chan struct{}

	mu   sync.Mutex
	ring []*Upload // guarded by mu
	next int       // guarded by mu
	busy bool      // guarded by mu: there is foreground to send, so nothing of the background goes out
	buf  []byte    // used by Run only
}

// NewUploader makes one; Run works it, or its owner with Work.
func NewUploader(now func() time.Time) *Uploader {
	return &Uploader{now: now, wake: make(chan struct{}, 1)}
}

// Upload is the queue of one link. All fields below cfg are guarded by Uploader.mu; sending is touched by Run alone.
type Upload struct {
	u   *Uploader
	cfg UploadConfig
	queue
	blocked bool // the link's buffers are full; Drain lifts it
	// blockedAt is when the link last took nothing.
	blockedAt time.Time
	drains    uint64 // calls of Drain, so that one between a refusal and its note is not lost
	loading   bool   // the active request waits for its bytes; Loaded lifts it
	loads     uint64 // calls of Loaded, as drains
	until     time.Time
	closed    bool
	back      *backlog // nil: the background lane is off towards this peer
	strays    int      // acks of nothing that was sent

	sending queued
	size    int
}

// Add begins to serve a link.
func (u *Uploader) Add(cfg UploadConfig) *Upload {
	if cfg.Send == nil {
		cfg.Send = cfg.Session.Send
	}
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
	up.closed = true
	for i, o := range u.ring {
		if o == up {
			u.ring = append(u.ring[:i], u.ring[i+1:]...)
			break
		}
	}
	lane := up.lane()
	u.mu.Unlock()
	if lane != nil {
		lane.Close()
	}
	u.nudge() // what it had may have held up others
}

func (u *Uploader) nudge() {
	if u.Wake != nil {
		u.Wake()
		return
	}
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// Request queues what a peer asked for; what cannot be queued is rejected at once. A request ID that is outstanding
// is a protocol error.
func (up *Upload) Request(m peer.Request) error {
	var busy []uint32
	u := up.u
	now := u.now()
	u.mu.Lock()
	if up.evades() || m.Lane == peer.Background && (up.back == nil || !up.cfg.Background) {
		u.mu.Unlock()
		up.reject(peer.RejectLaneOff, ids(m.Requests))
		return nil
	}
	for _, r := range m.Requests {
		if up.outstanding(r.ID) {
			u.mu.Unlock()
			return errDuplicateID
		}
		if n := up.waiting(); n >= up.cfg.MaxRequests || u.MostQueued > 0 && n >= u.Share && u.queued() >= u.MostQueued {
			busy = append(busy, r.ID)
			continue
		}
		if m.Lane == peer.Foreground {
			up.press()
		}
		up.lanes[m.Lane] = append(up.lanes[m.Lane], queued{segment: m.Segment, id: r.ID, piece: int(r.Piece), lane: m.Lane, at: now})
	}
	u.mu.Unlock()
	if busy != nil {
		up.reject(peer.RejectBusy, busy)
	}
	u.nudge()
	return nil
}

// evades says whether what is sent over the link would go out without the controller, which keeps the cap, though there is one. Under mu.
func (up *Upload) evades() bool {
	return up.back == nil && up.u.Background != nil && up.u.Background.IsCapped()
}

// Push queues a piece that was not asked for, in the foreground: it is charged and sent as one that was, or given up where a request would
// be rejected. The ID is one of peer.PushedID. The owner bounds how many wait.
func (up *Upload) Push(id uint32, data []byte) {
	u := up.u
	u.mu.Lock()
	if up.evades() {
		u.mu.Unlock()
		up.cfg.Pushed(false)
		return
	}
	up.press()
	up.lanes[peer.Foreground] = append(up.lanes[peer.Foreground], queued{id: id, lane: peer.Foreground, at: u.now(), pushed: data})
	u.mu.Unlock()
	u.nudge()
}

// queued is how many requests wait on all links. Under mu.
func (u *Uploader) queued() int {
	n := 0
	for _, up := range u.ring {
		n += up.waiting()
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
	n := up.waiting()
	if up.active != nil {
		n++
	}
	return n
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
		if _, _, pushed := peer.Pushed(id); !pushed && up.cancel(id) {
			n++
		}
	}
	u.mu.Unlock()
	if n > 0 {
		up.cfg.Observer.Canceled(n)
	}
	u.nudge()
}

// Withdraw rejects the queued requests for a segment: it was revoked.
func (up *Upload) Withdraw(segment segment.ID) {
	up.u.mu.Lock()
	gone := up.withdraw(segment)
	up.u.mu.Unlock()
	if gone != nil {
		up.reject(peer.RejectWithdrawn, gone)
		up.u.nudge()
	}
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

// Loaded says that bytes have come for which Pieces said Later, or that there is no hope of them: it is asked again.
func (up *Upload) Loaded() {
	u := up.u
	u.mu.Lock()
	up.loading = false
	if up.back != nil {
		up.back.loading = false
	}
	up.loads++
	u.mu.Unlock()
	u.nudge()
}

// piece asks for the bytes of a request; Later is noted where wait says, unless they came meanwhile.
func (up *Upload) piece(q queued, wait *bool) ([]byte, Refusal) {
	u := up.u
	u.mu.Lock()
	loads := up.loads
	u.mu.Unlock()
	if q.pushed != nil {
		return q.pushed, Served
	}
	data, refusal := up.cfg.Pieces.Piece(q.segment, q.piece)
	if refusal == Later {
		u.mu.Lock()
		*wait = up.loads == loads
		u.mu.Unlock()
	}
	return data, refusal
}

// refuse rejects a request. What was not asked for is given up.
func (up *Upload) refuse(q queued, reason peer.RejectReason) {
	if q.pushed != nil {
		up.cfg.Pushed(false)
		return
	}
	up.reject(reason, []uint32{q.id})
}

// served notes that a request has been sent whole.
func (up *Upload) served(q queued) {
	if q.pushed != nil {
		up.cfg.Pushed(true)
		return
	}
	if up.cfg.Session != nil {
		up.cfg.Session.served()
	}
	up.cfg.Observer.Served()
}
