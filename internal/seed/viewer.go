package seed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/segment"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	maxCandidates  = 64  // of one link (spec/tracker-protocol.md)
	maxWorked      = 32  // certificates of one link that are made ready, or fetched, at a time
	maxRequests    = 256 // requests that the seed keeps queued for one link
	maxSentNoted   = 8192
	candidateLimit = signal.MaxCandidate
)

// viewer is one link to a viewer. It receives the link's events and the session's messages.
type viewer struct {
	service *Service
	title   *title
	id      signal.ID // of the link
	peer    signal.ID
	tracker signal.ID // where signals for the viewer go
	from    party     // that it is charged to

	path   atomic.Pointer[transfer.Path]
	used   atomic.Int64    // when it last asked for something, or was sent it: ns since the Unix epoch
	held   atomic.Bool     // certificates are held back until the viewer has read those before
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu          sync.Mutex
	link        transfer.Link           // guarded by mu; nil until answered
	session     *transfer.Session       // guarded by mu; nil until answered
	upload      *transfer.Upload        // guarded by mu; nil until open
	account     *account                // guarded by mu; nil until open
	waiting     []transfer.Candidate    // guarded by mu: theirs, before there is a link
	outgoing    []transfer.Candidate    // guarded by mu: ours, before the answer is out
	answered    bool                    // guarded by mu
	open        bool                    // guarded by mu
	closed      bool                    // guarded by mu
	asked       []segment.ID            // guarded by mu: certificates that it waits for
	worked      int                     // guarded by mu: of them that are made ready
	unsolicited int                     // guarded by mu
	sent        map[segment.ID][32]byte // guarded by mu: content of the certificates that went out
	missing     segment.ID              // guarded by mu: could not be read from disk just now
}

var (
	_ transfer.LinkEvents = (*viewer)(nil)
	_ transfer.AckEvents  = (*viewer)(nil)
	_ transfer.PathEvents = (*viewer)(nil)
	_ transfer.Lane       = lane{}
	_ transfer.Handler    = (*viewer)(nil)
	_ transfer.Pieces     = pieces{}
	_ transfer.Observer   = (*viewer)(nil)
)

// answer makes the link of an offer. It runs beside the bus.
func (v *viewer) answer(offer *bus.Signal) {
	s := v.service
	plan := peer.Plan{V: offer.Plan.V, Data: offer.Plan.Data, Message: offer.Plan.Message}
	if plan.Check() != nil {
		s.drop(v)
		s.signal(v.tracker, v.fail("plan"))
		return
	}
	link, answer, err := s.links.Answer(transfer.Description{SDP: offer.SDP, Plan: plan}, v)
	if err != nil {
		s.cfg.Log.Debug("an offer was not answered", "error", err)
		s.drop(v)
		s.signal(v.tracker, v.fail("refused"))
		return
	}
	v.title.want(v.from) // the playlists are there when the link is
	hello := peer.Hello{
		MinVersion: 1, MaxVersion: peer.Version, Flags: peer.OnDemand | peer.AcksBackground, MaxRequests: maxRequests,
		Peer: peer.ID(s.id), Swarm: v.title.swarm,
	}
	session := transfer.NewSession(link, hello, peer.ID(v.peer), v, s.cfg.Now)
	session.Lane = lane{v}
	session.Said = offer.Early
	session.Overrun = func(l peer.Limit) { s.cfg.Metrics.Add(mOverruns, 1, string(l)) }
	v.mu.Lock()
	v.link, v.session = link, session
	waiting, stop := v.waiting, v.closed
	v.waiting = nil
	v.mu.Unlock()
	if stop {
		link.Close(peer.CloseShutdown, nil)
		return
	}
	for _, c := range waiting {
		_ = link.AddCandidate(c) // a bad candidate is a way that does not work; others may
	}
	out := v.message("answer")
	out.SDP, out.Plan = answer.SDP, &signal.Plan{V: answer.Plan.V, Data: answer.Plan.Data, Message: answer.Plan.Message}
	if offer.Early {
		out.Said = transfer.Say(append([]peer.Message{hello}, v.shown(offer.Wanted)...)...)
	}
	s.signal(v.tracker, out)
	v.mu.Lock()
	v.answered = true
	outgoing := v.outgoing
	v.outgoing = nil
	v.mu.Unlock()
	for _, c := range outgoing {
		v.sendCandidate(c)
	}
}

func (v *viewer) message(kind string) *bus.Signal {
	return &bus.Signal{Signal: signal.Signal{
		Swarm: signal.ID(v.title.swarm), From: v.service.id, To: v.peer, Role: "seed", Link: v.id, Kind: kind,
	}}
}

func (v *viewer) fail(reason string) *bus.Signal {
	m := v.message("fail")
	m.Reason = reason
	return m
}

// Candidate implements transfer.LinkEvents.
func (v *viewer) Candidate(c transfer.Candidate) {
	v.mu.Lock()
	if !v.answered {
		v.outgoing = append(v.outgoing, c)
		v.mu.Unlock()
		return
	}
	v.mu.Unlock()
	v.sendCandidate(c)
}

func (v *viewer) sendCandidate(c transfer.Candidate) {
	m := v.message("candidate")
	if c.End {
		m.Kind = "end"
	} else if len(c.Candidate) > candidateLimit {
		return
	}
	m.Candidate, m.Mid, m.MLine = c.Candidate, c.Mid, int(c.Line)
	v.service.signal(v.tracker, m)
}

// remoteCandidate takes a candidate of the viewer.
func (v *viewer) remoteCandidate(c transfer.Candidate) {
	v.mu.Lock()
	if v.link == nil {
		if len(v.waiting) < maxCandidates {
			v.waiting = append(v.waiting, c)
		}
		v.mu.Unlock()
		return
	}
	link := v.link
	v.mu.Unlock()
	_ = link.AddCandidate(c)
}

// Open implements transfer.LinkEvents.
func (v *viewer) Open() {
	s := v.service
	if !s.place(v) {
		return
	}
	account := s.openAccount(v)
	v.mu.Lock()
	link, session := v.link, v.session
	if link == nil || v.closed { // Answer has not returned yet: cannot be, for the viewer needs the answer
		v.mu.Unlock()
		s.closeAccount(account)
		return
	}
	v.open, v.account = true, account
	path := link.Path()
	v.path.Store(&path)
	v.upload = s.uploader.Add(transfer.UploadConfig{
		Link: link, Session: session, Pieces: pieces{v}, Observer: v, MaxRequests: maxRequests,
		Background: v.title.site.rules.Config().Policy.Prefetch == configured.PrefetchAllow,
		Budget:     &budget{mu: &s.budgets, scopes: []*scope{s.scope, v.title.site.scope, account.sent}, now: s.cfg.Now, sink: s.cfg.Metrics},
	})
	v.mu.Unlock()
	s.countLinks()
	s.outside.reached()
	session.Open()
}

// place gives a link that has opened its place, if need be another's.
func (s *Service) place(v *viewer) bool {
	v.use()
	displaced, why, ok := s.places.opened(v)
	switch {
	case !ok:
		v.end(peer.CloseLimit, peer.ByeOverLimit)
		return false
	case displaced == nil:
		return true
	}
	s.cfg.Metrics.Add(mDisplaced, 1, why)
	if why == displacedIdle {
		displaced.end(peer.CloseIdle, peer.ByeIdle)
	} else {
		displaced.end(peer.CloseLimit, peer.ByeOverLimit)
	}
	return true
}

// use notes that the viewer asked for something, or was sent it.
func (v *viewer) use() { v.used.Store(v.service.cfg.Now().UnixNano()) }

func (v *viewer) usedAt() time.Time { return time.Unix(0, v.used.Load()) }

func (v *viewer) parts() (*transfer.Session, *transfer.Upload) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.session, v.upload
}

func (v *viewer) payer() *account {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.account
}

// Control implements transfer.LinkEvents.
func (v *viewer) Control(b []byte) {
	if s, _ := v.parts(); s != nil {
		s.Control(b)
	}
}

// Data implements transfer.LinkEvents.
func (v *viewer) Data(b []byte) {
	if s, _ := v.parts(); s != nil {
		s.Data(b)
	}
}

// Ack implements transfer.AckEvents.
func (v *viewer) Ack(b []byte) {
	if s, _ := v.parts(); s != nil {
		s.Ack(b)
	}
}

// Moved implements transfer.PathEvents.
func (v *viewer) Moved() {
	if _, u := v.parts(); u != nil {
		u.Moved()
	}
}

// Drain implements transfer.LinkEvents.
func (v *viewer) Drain() {
	if _, u := v.parts(); u != nil {
		u.Drain()
	}
	if v.held.CompareAndSwap(true, false) {
		v.service.work(v.showMore) // beside SCTP, which calls under its locks
	}
}

// Closed implements transfer.LinkEvents.
func (v *viewer) Closed(reason peer.CloseReason) {
	v.cancel()
	v.mu.Lock()
	upload, account := v.upload, v.account
	v.closed, v.open = true, false
	v.mu.Unlock()
	if account != nil {
		v.service.closeAccount(account)
	}
	if upload != nil {
		upload.Remove()
	}
	v.service.cfg.Metrics.Add(mClosed, 1, string(reason))
	v.service.drop(v)
}

// end closes the link from our side.
func (v *viewer) end(reason peer.CloseReason, bye peer.ByeReason) {
	v.mu.Lock()
	v.closed = true
	session := v.session
	v.mu.Unlock()
	if session != nil {
		session.End(reason, bye)
	}
}

// Ready implements transfer.Handler.
func (v *viewer) Ready(h peer.Hello) error {
	v.mu.Lock()
	wire, ok := v.link.(background.Link)
	upload := v.upload
	v.mu.Unlock()
	if ok && upload != nil && h.Flags&peer.AcksBackground != 0 {
		upload.Acknowledged(wire)
	}
	return nil
}

// Message implements transfer.Handler.
func (v *viewer) Message(m peer.Message) error {
	_, upload := v.parts()
	if upload == nil {
		return nil
	}
	switch m := m.(type) {
	case peer.CertificateRequest:
		v.wanted(m.Segments)
	case peer.Request:
		return upload.Request(m)
	case peer.Cancel:
		upload.Cancel(m)
	case peer.Promote:
		upload.Promote(m)
	}
	return nil // haves, certificates and rejects of viewers are nothing to a seed
}
