package viewer

import (
	"bytes"
	"encoding/hex"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Bounds of one link (spec/peer-protocol.md).
const (
	ownMaxRequests = 256
	announceEvery  = 50 * time.Millisecond
	stallPause     = 2 * time.Second
	mostStalls     = 3 // in a row, without as many bytes as a piece has, that end a link
	rejectPause    = 200 * time.Millisecond
	longestPause   = 30 * time.Second
	// muteTime is how long a peer that has stalled and answers a ping may go on without data.
	muteTime = 3 * time.Second
	// Requests queued over all links, from which on a link gets no more than its share: 4 MiB and 512 KiB of pieces.
	mostQueued = 256
	queueShare = 32
)

// waits is how long a peer is left alone that has what it rejected.
var waits = map[peer.RejectReason]time.Duration{
	peer.RejectBusy: rejectPause, peer.RejectBudget: 5 * time.Second, peer.RejectLaneOff: 30 * time.Second,
}

// remote is a peer with an open link. Its session's messages are handled on the loop; data is taken by download in the
// goroutine that reads the link.
type remote struct {
	e        *engine
	id       string // hexadecimal
	role     schedule.Role
	link     transfer.Link
	session  *transfer.Session
	download *transfer.Download
	upload   *transfer.Upload
	path     transfer.Path
	wire     background.Link // nil: the link carries nothing of the background transport
	acking   acking

	ready       bool
	onDemand    bool
	noUpload    bool // never ask it
	acks        bool // background data: it may be asked for some
	maxRequests int
	holdings    *holdings
	stalledUs   int64 // until then it is left alone
	behindUs    int64 // likewise, in the background
	stalls      int   // in a row without as many bytes as a piece has
	rejects     int   // likewise
	lateness    lateness
	stallCame   int64  // bytes that had come by the last of them
	mute        int    // pings, and one more, sent since the last stall without data since
	muteCame    int64  // bytes that had come by then
	muteNonce   uint32 // of the latest of them
	muteTimer   func()
	came        *atomic.Int64 // messages of any kind
	cameBy      int64         // of them by the last look
	stallHeard  int64         // likewise by the first stall in a row
	unheard     int           // looks at which nothing had come that should have
	suspect     *suspect
	gone        bool

	asked      []peer.ID // certificates that it waits for
	dirty      []string  // segments to announce
	announced  map[string]bool
	announceAt time.Time
	announcing func() // stops the timer

	downloaded, uploaded int64
}

var (
	_ transfer.Handler        = (*remote)(nil)
	_ transfer.DownloadEvents = (*remote)(nil)
	_ transfer.Observer       = (*remote)(nil)
	_ transfer.Pieces         = served{}
	_ transfer.Lane           = (*remote)(nil)
)

// newRemote makes the peer of a link that has opened. open sends the hello.
func newRemote(e *engine, id peer.ID, role schedule.Role, link transfer.Link) *remote {
	r := &remote{
		e: e, id: hex.EncodeToString(id[:]), role: role, link: link, path: link.Path(),
		holdings: newHoldings(), announced: map[string]bool{}, came: new(atomic.Int64),
	}
	r.wire, _ = link.(background.Link)
	r.acking = acking{r.wire, e.pacing.uploader.Background}
	r.session = transfer.NewSession(link, e.greeting.hello(link), id, r, e.loop.Now)
	r.download = transfer.NewDownload(r.session.Send, e.loop.Now, r)
	if r.wire != nil {
		r.session.Lane = r
		r.download.Background(r.acking, e.pacing.requester, e.loop.After)
	}
	r.session.Pong = r.pong
	r.upload = e.pacing.uploader.Add(transfer.UploadConfig{
		Link: link, Session: r.session, Send: r.refuse, Pieces: served{e.store}, Observer: r, MaxRequests: ownMaxRequests, Background: e.ahead.possible(),
	})
	return r
}

// Ready implements transfer.Handler: the other hello is here.
func (r *remote) Ready(h peer.Hello) error {
	r.ready = true
	r.e.peers.opened++
	r.onDemand = r.role == schedule.Seed && h.Flags&peer.OnDemand != 0
	r.noUpload = h.Flags&peer.NoUpload != 0
	r.maxRequests = int(h.MaxRequests)
	if r.wire != nil && h.Flags&peer.AcksBackground != 0 {
		r.acks = true
		r.upload.Acknowledged(r.wire)
	}
	r.session.Ping()
	if r.role == schedule.Viewer {
		for _, id := range r.e.store.ids() { // beside what an answer has said, which may be gone or more by now
			if !r.announced[id] {
				r.dirty = append(r.dirty, id)
			}
		}
		r.flush()
	}
	r.e.changed()
	return nil
}

// Piece implements transfer.Handler, in the link's goroutine.
func (r *remote) Piece(m peer.Data) error {
	r.acking.took(len(m.Payload))
	return r.download.Data(m)
}

// BackgroundData implements transfer.Lane, in the link's goroutine.
func (r *remote) BackgroundData(b []byte) error {
	r.acking.took(len(b))
	return r.download.BackgroundData(b)
}

// Ack implements transfer.Lane, in the link's goroutine.
func (r *remote) Ack(b []byte) error { return r.upload.Ack(b) }

// Arrived implements transfer.DownloadEvents, in the link's goroutine.
func (r *remote) Arrived(o transfer.Order, data []byte, matches bool) {
	r.e.loop.Post(func() { r.e.vouch.piece(r, o, data, matches) })
}

// Wasted implements transfer.DownloadEvents, in any goroutine.
func (r *remote) Wasted(n int) { r.e.loop.Post(func() { r.e.ledger.wasted(n) }) }

// Message implements transfer.Handler.
func (r *remote) Message(m peer.Message) error {
	e := r.e
	switch m := m.(type) {
	case peer.Have:
		if r.role == schedule.Viewer && !r.noUpload {
			r.holdings.apply(m.Entries, e.nowUs())
		}
		e.changed()
	case peer.CertificateRequest:
		r.askedFor(m.Segments)
	case peer.Certificate:
		e.vouch.certificate(r, hex.EncodeToString(m.Segment[:]), bytes.Clone(m.Raw))
	case peer.CertificateNone:
		e.vouch.none(r, hex.EncodeToString(m.Segment[:]))
	case peer.Request:
		if !e.host.uploads() {
			r.session.Send(peer.Reject{Reason: peer.RejectLaneOff, IDs: requestIDs(m)})
			return nil
		}
		err := r.upload.Request(m)
		e.pacing.work()
		return err
	case peer.Cancel:
		r.upload.Cancel(m)
		e.pacing.work()
	case peer.Promote:
		r.upload.Promote(m)
		e.pacing.work()
	case peer.Reject:
		r.rejected(m)
	}
	return nil
}

func requestIDs(m peer.Request) []uint32 {
	out := make([]uint32, len(m.Requests))
	for i, q := range m.Requests {
		out[i] = q.ID
	}
	return out
}

// refuse sends what the upload says. What is no longer held is said before: a reject of what is still announced is taken
// for a lie.
func (r *remote) refuse(m peer.Message) {
	r.flush()
	r.session.Send(m)
}

func (r *remote) rejected(m peer.Reject) {
	wait, has := waits[m.Reason]
	gone := r.download.Reject(m)
	lie, urgent := false, len(gone) == 0
	for _, o := range gone {
		urgent = urgent || o.Lane == peer.Foreground
		if o.Lane == peer.Background {
			e := r.e
			e.ledger.lost(o.Received)
			if r.behindUs = e.nowUs() + max(wait, rejectPause).Microseconds(); m.Reason == peer.RejectLaneOff {
				r.behindUs = never
			}
		}
		// It would have said first that the piece is gone. Anything else may pass.
		if !has && r.holdings.remove(hex.EncodeToString(o.Target.Segment[:]), o.Piece) {
			lie = true
		}
	}
	if !has {
		wait = rejectPause
	}
	if r.forgive(); urgent {
		r.leaveAlone(wait, r.rejects)
		r.rejects++
	}
	if lie {
		r.e.drop(r, peer.CloseFalse, peer.ByePolicy)
	}
	r.e.changed()
}

// forgive forgets stalls and rejects once as much came as a piece has.
func (r *remote) forgive() {
	if r.download.Came() >= r.stallCame+peer.PieceSize {
		r.stalls, r.rejects = 0, 0
		r.stallCame = r.download.Came()
	}
}

// leaveAlone asks nothing of the peer for a while, longer each time.
func (r *remote) leaveAlone(d time.Duration, times int) {
	r.stalledUs = max(r.stalledUs, r.e.nowUs()+min(longestPause, d<<min(times, 16)).Microseconds())
}

// askedFor takes the peer's request for certificates.
func (r *remote) askedFor(ids []peer.ID) {
	room := min(len(ids), peer.MaxAsked-len(r.asked))
	r.asked = append(r.asked, ids[:room]...)
	for _, id := range ids[room:] {
		r.session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
	r.showMore()
}

// showMore shows the certificates that the peer asked for, as fast as it reads them.
func (r *remote) showMore() {
	for len(r.asked) > 0 && transfer.HasControlRoom(r.link) {
		id := r.asked[0]
		if r.asked = r.asked[1:]; len(r.asked) == 0 {
			r.asked = nil
		}
		r.session.Send(r.e.vouch.answer(id))
	}
}

// served is where uploads take their pieces from, on the loop.
type served struct{ store *store }

// Piece implements transfer.Pieces.
func (s served) Piece(id peer.ID, n int) ([]byte, transfer.Refusal) {
	key := hex.EncodeToString(id[:])
	switch held := s.store.get(key); {
	case held == nil:
		return nil, transfer.Refuse(peer.RejectWithdrawn)
	case n >= len(held.pieces):
		return nil, transfer.Refuse(peer.RejectOutOfRange)
	}
	if data := s.store.piece(key, n); data != nil {
		return data, transfer.Served
	}
	return nil, transfer.Refuse(peer.RejectNotHeld)
}

// announce tells the peer what is held of a segment, at most every announceEvery. Seeds ask nobody.
func (r *remote) announce(id string) {
	if !r.ready || r.gone || r.role == schedule.Seed {
		return
	}
	if !slices.Contains(r.dirty, id) {
		r.dirty = append(r.dirty, id)
	}
	if r.announcing != nil {
		return
	}
	if wait := r.announceAt.Add(announceEvery).Sub(r.e.loop.Now()); wait > 0 {
		r.announcing = r.e.loop.After(wait, r.flush)
	} else {
		r.flush()
	}
}

func (r *remote) flush() {
	if r.announcing != nil {
		r.announcing()
		r.announcing = nil
	}
	if r.gone || len(r.dirty) == 0 {
		return
	}
	r.announceAt = r.e.loop.Now()
	var entries []peer.HaveEntry
	for _, id := range r.dirty {
		if entry, ok := r.e.greeting.announcement(id); ok {
			r.announced[id] = true
			entries = append(entries, entry)
		} else if r.announced[id] {
			delete(r.announced, id)
			entries = append(entries, peer.HaveEntry{Segment: entry.Segment})
		}
	}
	r.dirty = nil
	for part := range slices.Chunk(entries, 255) {
		r.session.Send(peer.Have{Entries: part})
	}
}

// moved notes that the packets of the link take another way now.
func (r *remote) moved() {
	r.path = r.link.Path()
	r.upload.Moved()
}

// drained goes on with what the link had no room for.
func (r *remote) drained() {
	r.upload.Drain()
	r.e.pacing.work()
	r.showMore()
}

// ended lets go of what the link held. It runs once, on the loop.
func (r *remote) ended() {
	r.gone = true
	if r.announcing != nil {
		r.announcing()
	}
	r.stopMute()
	if r.suspect != nil {
		r.suspect.stop()
	}
	r.upload.Remove()
	r.download.Close()
}

// Sent implements transfer.Observer.
func (r *remote) Sent(lane peer.Lane, n int) {
	r.uploaded += int64(n)
	r.e.ledger.uploaded(r.id, r.path, lane, n)
}

// Promoted implements transfer.Observer: who asked counts it.
func (r *remote) Promoted(int) {}

// Served implements transfer.Observer.
func (r *remote) Served() {}

// Rejected implements transfer.Observer.
func (r *remote) Rejected(peer.RejectReason, int) {}

// Canceled implements transfer.Observer.
func (r *remote) Canceled(int) {}
