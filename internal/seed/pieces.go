package seed

import (
	"context"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// pieceWait is how long a request for a piece waits for a fetch. After a second without data viewers take a peer for stalled.
const pieceWait = 750 * time.Millisecond

// pieces is the view of the shelf that one link has, and counts what it is sent. It satisfies transfer.Pieces and transfer.Observer.
type pieces struct {
	link *viewerLink

	mu      sync.Mutex
	missing segment.ID // guarded by mu: could not be read from disk just now

	waits sync.Map // of IDs of segments whose fetches are waited for
}

// Piece implements transfer.Pieces: bytes of segments of the link's own title, under the certificate that the viewer knows.
func (p *pieces) Piece(id segment.ID, piece int) ([]byte, transfer.Refusal) {
	v, s := p.link, p.link.all.supply
	content, shown := v.showing.shown(id)
	r := v.title.lookup(id)
	if r == nil && !shown {
		return nil, transfer.Refuse(peer.RejectNotHeld)
	}
	h := s.shelf.cached(id)
	if h == nil && s.shelf.onDisk(id) > 0 && !p.unreadable(id) {
		if !s.shelf.load(v.conn.payer(), id, func(h *held) { p.loaded(id, h) }) {
			return nil, transfer.Refuse(peer.RejectBudget)
		}
		return nil, transfer.Later
	}
	switch {
	case h == nil:
		return nil, p.fetched(r, shown)
	case shown && h.sum != content, s.issuer.takedowns.withdraws(h.cert):
		return nil, transfer.Refuse(peer.RejectWithdrawn) // other bytes than the viewer would verify
	case piece >= segment.Pieces(h.cert.Length):
		return nil, transfer.Refuse(peer.RejectOutOfRange)
	}
	from := piece * segment.PieceSize
	return h.data[from : from+segment.PieceLen(h.cert.Length, piece)], transfer.Served
}

// fetched has a segment fetched that is not held, and says whether the request waits for it. A viewer that knows the segment from others
// would ask the origin for what the seed fetches at that moment, if it were refused. One that was shown a certificate is refused: that may
// have been withdrawn since.
func (p *pieces) fetched(r *ref, shown bool) transfer.Refusal {
	v := p.link
	if r == nil || !v.certifies() || v.title.rests() {
		return transfer.Refuse(peer.RejectNotHeld)
	}
	fetches := v.all.supply.fetches
	f, _ := v.all.supply.fetch(request{v.title, r, v.conn.payer()}, nil, false)
	if f == nil || shown || fetches.now().Sub(f.began) >= pieceWait {
		return transfer.Refuse(peer.RejectNotHeld)
	}
	// What has come has the first requests of both lanes asked again: each would begin another wait, and the end of that as well.
	if _, is := p.waits.LoadOrStore(r.id, nil); is {
		return transfer.Later
	}
	if !fetches.tasks.begin(func() {
		ctx, cancel := context.WithTimeout(fetches.tasks.ctx, pieceWait)
		defer cancel()
		f.wait(ctx)
		p.waits.Delete(r.id)
		_, upload := v.conn.parts()
		upload.Loaded()
	}) {
		p.waits.Delete(r.id)
		return transfer.Refuse(peer.RejectNotHeld)
	}
	return transfer.Later
}

// loaded says that a segment which a request waits for has been read, or could not be.
func (p *pieces) loaded(id segment.ID, h *held) {
	if h == nil {
		p.mu.Lock()
		p.missing = id
		p.mu.Unlock()
	}
	_, upload := p.link.conn.parts()
	upload.Loaded()
}

// unreadable says whether a segment on disk could just not be read; the next request tries again.
func (p *pieces) unreadable(id segment.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.missing == id
	if is {
		p.missing = segment.ID{}
	}
	return is
}

// Sent implements transfer.Observer.
func (p *pieces) Sent(lane peer.Lane, bytes int) {
	v := p.link
	v.use()
	v.all.sink.Add(mLane, float64(bytes), metric.Lanes[lane])
	path := *v.path.Load()
	v.all.sink.Add(mSent, float64(bytes), v.title.site.name, string(path))
	if path == transfer.Relay {
		v.title.costs(bytes)
	}
}

func (p *pieces) count(n int, outcome string) { p.link.all.sink.Add(mRequests, float64(n), outcome) }

// Served implements transfer.Observer.
func (p *pieces) Served() { p.count(1, "served") }

// Rejected implements transfer.Observer.
func (p *pieces) Rejected(_ peer.RejectReason, n int) { p.count(n, "rejected") }

// Canceled implements transfer.Observer.
func (p *pieces) Canceled(n int) { p.count(n, "canceled") }

// Promoted implements transfer.Observer.
func (p *pieces) Promoted(n int) { p.link.all.sink.Add(mPromotions, float64(n)) }
