package viewer

import (
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Bounds of one link (spec/peer-protocol.md).
const (
	ownMaxRequests = 256
	// Requests queued over all links, from which on a link gets no more than its share: 4 MiB and 512 KiB of pieces.
	mostQueued = 256
	queueShare = 32
)

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
	acking   acking // its Link is nil: the link carries nothing of the background transport

	peerTerms
	peerWatch
	patience     patience
	announcer    announcer
	certificates certificateQueue // that it waits for
	gone         bool
}

// peerTerms is what a peer says of itself.
type peerTerms struct {
	ready       bool // its hello is here
	onDemand    bool
	noUpload    bool // never ask it
	acks        bool // background data: it may be asked for some
	speaksParts bool
	maxRequests int
	holdings    *holdings
}

// peerWatch is what is heard of a peer.
type peerWatch struct {
	came    *atomic.Int64 // messages of any kind
	cameBy  int64         // of them by the last look
	unheard int           // looks at which nothing had come that should have
}

var (
	_ transfer.Handler        = (*remote)(nil)
	_ transfer.DownloadEvents = (*remote)(nil)
	_ transfer.Observer       = (*remote)(nil)
	_ transfer.Pieces         = served{}
	_ transfer.Lane           = (*remote)(nil)
)

// newRemote makes the peer of a link that has opened. open sends the hello.
func newRemote(e *engine, id swarm.ID, role schedule.Role, link transfer.Link) *remote {
	r := &remote{
		e: e, id: hex.EncodeToString(id[:]), role: role, link: link, path: link.Path(),
		peerTerms: peerTerms{holdings: newHoldings()}, peerWatch: peerWatch{came: new(atomic.Int64)},
	}
	wire, _ := link.(background.Link)
	r.acking = acking{wire, e.pacing.uploader.Background}
	r.session = transfer.NewSession(link, e.greeting.hello(link), id, r, e.loop.Now)
	r.download = transfer.NewDownload(r.session.Send, e.loop.Now, r)
	if wire != nil {
		r.session.Lane = r
		r.download.Background(r.acking, e.pacing.requester, e.loop.After)
	}
	r.session.Pong = func(nonce uint32, took time.Duration) {
		r.download.RoundTrip(took)
		r.patience.pong(nonce, took)
	}
	r.announcer = announcer{loop: e.loop, entryOf: e.greeting.announcement, send: r.session.Send, announced: map[string]bool{}}
	r.certificates = certificateQueue{answer: e.verification.answer, send: r.session.Send, room: func() bool { return transfer.HasControlRoom(link) }}
	r.patience.patienceHost = patienceHost{
		loop: e.loop, nowUs: e.nowUs, lenient: role == schedule.Seed, drifted: e.silence.drifted, ping: r.session.Ping,
		data: func() (int64, time.Time) { return r.download.Came(), r.download.Heard() },
		came: func() int64 { return r.came.Load() },
		drop: func(reason peer.CloseReason) {
			if !r.gone {
				e.drop(r, reason, peer.ByePolicy)
			}
		},
	}
	if e.cfg.Parts {
		r.download.Pushed = func(m peer.Data) error { return e.loads.streams.pushed(r, m) }
	}
	r.upload = e.pacing.uploader.Add(transfer.UploadConfig{
		Pushed: func(bool) { e.loads.streams.sent(r) },
		Link:   link, Session: r.session, Send: r.refuse, Pieces: served{e.store}, Observer: r, MaxRequests: ownMaxRequests, Background: e.ahead.possible(),
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
	if r.acking.Link != nil && h.Flags&peer.AcksBackground != 0 {
		r.acks = true
		r.upload.Acknowledged(r.acking.Link)
	}
	if r.e.cfg.Parts && h.Flags&peer.SpeaksParts != 0 {
		r.speaksParts = true
		r.e.loads.streams.linked(r)
	}
	r.session.Ping()
	if r.role == schedule.Viewer {
		r.announcer.add(r.e.store.ids()) // beside what an answer has said, which may be gone or more by now
		r.announcer.flush()
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
	r.e.loop.Post(func() { r.e.verification.piece(r, o, data, matches) })
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
		r.certificates.ask(m.Segments)
	case peer.Certificate:
		e.verification.certificate(r, hex.EncodeToString(m.Segment[:]), m.Raw)
	case peer.CertificateNone:
		e.verification.unlisted(r, hex.EncodeToString(m.Segment[:]), m.Reason)
		e.verification.none(r, hex.EncodeToString(m.Segment[:]))
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
	case peer.Follow, peer.Place, peer.Subscribe, peer.Unsubscribe, peer.End, peer.Part, peer.Enough, peer.Hold:
		if r.speaksParts {
			e.loads.streams.heard(r, m)
		}
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
	r.announcer.flush()
	r.session.Send(m)
}

func (r *remote) rejected(m peer.Reject) {
	gone := r.download.Reject(m)
	denies, lie := r.patience.rejected(m.Reason, gone), false
	for _, o := range gone {
		if o.Lane == peer.Background {
			r.e.ledger.lost(o.Received())
		}
		// It would have said first that the piece is gone. Anything else may pass.
		if denies && r.holdings.remove(hex.EncodeToString(o.Target.Segment[:]), o.Piece) {
			lie = true
		}
	}
	if lie {
		r.e.drop(r, peer.CloseFalse, peer.ByePolicy)
	}
	r.e.changed()
}

// served is where uploads take their pieces from, on the loop.
type served struct{ store *store }

// Piece implements transfer.Pieces.
func (s served) Piece(id segment.ID, n int) ([]byte, transfer.Refusal) {
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

// announce tells the peer what is held of a segment. Seeds ask no viewer. They count how long after its publication viewers have what is
// whole of a live stream.
func (r *remote) announce(id string, whole bool) {
	switch {
	case !r.ready || r.gone:
	case r.role != schedule.Seed:
		r.announcer.tell(id)
	case whole:
		if entry, ok := r.e.greeting.announcement(id); ok {
			r.session.Send(peer.Have{Entries: []peer.HaveEntry{entry}})
		}
	}
}

// late notes that requests for a segment were taken back since another source is quicker.
func (r *remote) late(s *seg, gone []transfer.Order) { r.patience.late(s.ref.Duration, gone) }

// moved notes that the packets of the link take another way now.
func (r *remote) moved() {
	r.path = r.link.Path()
	r.upload.Moved()
	r.download.Moved()
}

// drained goes on with what the link had no room for.
func (r *remote) drained() {
	r.upload.Drain()
	r.e.pacing.work()
	r.certificates.pump()
}

// ended lets go of what the link held. It runs once, on the loop.
func (r *remote) ended() {
	r.gone = true
	r.announcer.stop()
	r.patience.stopMute()
	r.upload.Remove()
	r.download.Close()
}

// Sent implements transfer.Observer.
func (r *remote) Sent(lane peer.Lane, n int) {
	r.e.ledger.uploaded(r.id, r.path, lane, n)
}

// Promoted implements transfer.Observer: the side that asked counts it.
func (r *remote) Promoted(int) {}

// Served implements transfer.Observer.
func (r *remote) Served() {}

// Rejected implements transfer.Observer.
func (r *remote) Rejected(peer.RejectReason, int) {}

// Canceled implements transfer.Observer.
func (r *remote) Canceled(int) {}
