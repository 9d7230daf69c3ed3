package seed

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const maxRequests = 256 // requests that the seed keeps queued for one link

// caller is the viewer at the other end of a link.
type caller struct {
	title   *title
	id      signal.ID // of the link
	tracker signal.ID // where signals for the viewer go
	from    party     // that it is charged to
}

// viewerLink is one link to a viewer. It receives the link's events and the session's messages, and hands them to its parts.
type viewerLink struct {
	caller
	all    *viewerLinks
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	path        atomic.Pointer[transfer.Path]
	opened      atomic.Int64 // when it opened: ms since the Unix epoch
	used        atomic.Int64 // when it last asked for something, or was sent it: ns since the Unix epoch
	unsolicited atomic.Int64 // what it sent unasked, as peer.Unsolicited counts it

	sharing atomic.Pointer[sharing] // of the title's parts; nil: the viewer does not speak them
	untold  map[uint32]bool         // guarded by sharing.mu: pushes of parts that the viewer was not told of, for its budget is spent

	conn       connection
	candidates candidates
	showing    showing
	pieces     pieces
}

var (
	_ transfer.LinkEvents = (*viewerLink)(nil)
	_ transfer.AckEvents  = (*viewerLink)(nil)
	_ transfer.PathEvents = (*viewerLink)(nil)
	_ transfer.Lane       = lane{}
	_ transfer.Handler    = (*viewerLink)(nil)
	_ transfer.Pieces     = (*pieces)(nil)
	_ transfer.Observer   = (*pieces)(nil)
)

func newViewerLink(all *viewerLinks, t *title, id, tracker signal.ID, from party) *viewerLink {
	v := &viewerLink{caller: caller{t, id, tracker, from}, all: all}
	v.ctx, v.cancel = context.WithCancel(all.tasks.ctx)
	v.candidates.send = v.sendCandidate
	v.showing.link, v.pieces.link = v, v
	return v
}

// answer makes the link of an offer. It runs beside the bus.
func (v *viewerLink) answer(offer *bus.Signal) {
	l := v.all
	plan := peer.Plan{V: offer.Plan.V, Data: offer.Plan.Data, Message: offer.Plan.Message}
	if plan.Check() != nil {
		l.drop(v)
		v.fail("plan")
		return
	}
	link, answer, err := l.port.Answer(transfer.Description{SDP: offer.SDP, Plan: plan}, v)
	if err != nil {
		l.log.Debug("an offer was not answered", "error", err)
		l.drop(v)
		v.fail("refused")
		return
	}
	v.title.want(v.from) // the playlists are there when the link is
	hello := peer.Hello{
		MinVersion: 1, MaxVersion: peer.Version, Flags: peer.OnDemand | peer.AcksBackground | peer.SpeaksParts, MaxRequests: maxRequests,
		Peer: l.self, Swarm: v.title.swarm,
	}
	session := transfer.NewSession(link, hello, v.from.session, v, l.now)
	session.Lane = lane{v}
	session.Said = offer.Early
	session.Overrun = func(limit peer.Limit) { l.sink.Add(mOverruns, 1, string(limit)) }
	if !v.conn.answered(link, session) {
		link.Close(peer.CloseShutdown, nil)
		return
	}
	v.candidates.linked(link)
	out := v.message("answer")
	out.SDP, out.Plan = answer.SDP, &signal.Plan{V: answer.Plan.V, Data: answer.Plan.Data, Message: answer.Plan.Message}
	if offer.Early {
		out.Said = transfer.Say(append([]peer.Message{hello}, v.showing.early(offer.Wanted)...)...)
	}
	l.outbox.signal(v.tracker, out)
	v.candidates.flow()
}

func (v *viewerLink) message(kind string) *bus.Signal {
	return &bus.Signal{Signal: signal.Signal{
		Swarm: v.title.swarm, From: v.all.self, To: v.from.session, Role: "seed", Link: v.id, Kind: kind,
	}}
}

// fail tells the viewer that there is no link.
func (v *viewerLink) fail(reason string) {
	m := v.message("fail")
	m.Reason = reason
	v.all.outbox.signal(v.tracker, m)
}

// giveUp ends a link that is on its way. The viewer may try again.
func (v *viewerLink) giveUp() {
	v.end(peer.CloseTimeout, peer.ByeLeaving)
	v.fail("busy")
}

func (v *viewerLink) sendCandidate(c transfer.Candidate) {
	m := v.message("candidate")
	if c.End {
		m.Kind = "end"
	}
	m.Candidate, m.Mid, m.MLine = c.Candidate, c.Mid, int(c.Line)
	v.all.outbox.signal(v.tracker, m)
}

// use notes that the viewer asked for something, or was sent it.
func (v *viewerLink) use() { v.used.Store(v.all.now().UnixNano()) }

func (v *viewerLink) usedAt() time.Time { return time.Unix(0, v.used.Load()) }

// account is that of the link's session in the swarm: a viewer that comes back has no more than before.
func (v *viewerLink) account(links int) *account {
	return v.all.budgets.account(accountID{v.from.session, v.title.swarm}, v.title.highest(), links)
}

// certifies says whether the title has as many viewers as it takes for certificates.
func (v *viewerLink) certifies() bool {
	return v.title.audience() >= v.title.site.rules.Config().Policy.CertifyFrom
}

// end closes the link from our side.
func (v *viewerLink) end(reason peer.CloseReason, bye peer.ByeReason) {
	if session := v.conn.end(); session != nil {
		session.End(reason, bye)
	}
}

func (v *viewerLink) tick() {
	if link, session, open := v.conn.ticks(); open {
		path := link.Path()
		v.path.Store(&path)
		session.Tick()
	}
}

// Candidate implements transfer.LinkEvents.
func (v *viewerLink) Candidate(c transfer.Candidate) { v.candidates.ours(c) }

// Open implements transfer.LinkEvents.
func (v *viewerLink) Open() {
	l := v.all
	if !l.place(v) {
		return
	}
	account := v.account(1)
	if !v.conn.open(account, func(link transfer.Link, session *transfer.Session) *transfer.Upload {
		path := link.Path()
		v.path.Store(&path)
		return l.uploader.Add(transfer.UploadConfig{
			Link: link, Session: session, Pieces: &v.pieces, Observer: &v.pieces, MaxRequests: maxRequests,
			Background: v.title.site.rules.Config().Policy.Prefetch == configured.PrefetchAllow,
			Budget:     l.budgets.ofLink(v.title.site.scope, account),
			Pushed:     v.pushed,
		})
	}) {
		l.budgets.leave(account) // it has ended: a link that was not answered cannot open, for the viewer needs the answer
		return
	}
	v.opened.Store(l.now().UnixMilli())
	l.count()
	l.reach.reached()
	if session, _ := v.conn.parts(); session != nil {
		session.Open()
	}
}

// Control implements transfer.LinkEvents.
func (v *viewerLink) Control(b []byte) {
	if s, _ := v.conn.parts(); s != nil {
		s.Control(b)
	}
}

// Data implements transfer.LinkEvents.
func (v *viewerLink) Data(b []byte) {
	if s, _ := v.conn.parts(); s != nil {
		s.Data(b)
	}
}

// Ack implements transfer.AckEvents.
func (v *viewerLink) Ack(b []byte) {
	if s, _ := v.conn.parts(); s != nil {
		s.Ack(b)
	}
}

// Moved implements transfer.PathEvents.
func (v *viewerLink) Moved() {
	if _, u := v.conn.parts(); u != nil {
		u.Moved()
	}
}

// Drain implements transfer.LinkEvents.
func (v *viewerLink) Drain() {
	if _, u := v.conn.parts(); u != nil {
		u.Drain()
	}
	v.showing.drained()
}

// Closed implements transfer.LinkEvents.
func (v *viewerLink) Closed(reason peer.CloseReason) {
	v.cancel()
	upload, account := v.conn.ended()
	v.all.streams.gone(v)
	if account != nil {
		v.all.budgets.leave(account)
	}
	if upload != nil {
		upload.Remove()
	}
	v.all.sink.Add(mClosed, 1, string(reason))
	v.all.drop(v)
}

// Ready implements transfer.Handler.
func (v *viewerLink) Ready(h peer.Hello) error {
	wire, ok := v.conn.wire().(background.Link)
	if _, upload := v.conn.parts(); ok && upload != nil && h.Flags&peer.AcksBackground != 0 {
		upload.Acknowledged(wire)
	}
	if h.Flags&peer.SpeaksParts != 0 {
		v.all.streams.linked(v)
	}
	return nil
}

// pushed hears of each pushed piece that was sent or given up.
func (v *viewerLink) pushed(bool) {
	if s := v.sharing.Load(); s != nil {
		s.sent(v)
	}
}

// Message implements transfer.Handler.
func (v *viewerLink) Message(m peer.Message) error {
	_, upload := v.conn.parts()
	if s := v.sharing.Load(); s != nil && ofParts(m) {
		s.heard(v, m)
		return nil
	}
	if upload == nil {
		return nil
	}
	switch m := m.(type) {
	case peer.Have:
		v.has(m.Entries)
	case peer.CertificateRequest:
		v.showing.wanted(m.Segments)
	case peer.Request:
		return upload.Request(m)
	case peer.Cancel:
		upload.Cancel(m)
	case peer.Promote:
		upload.Promote(m)
	}
	return nil // certificates and rejects of viewers are nothing to a seed
}

// has counts how late a viewer holds what is new of a live stream. It is believed for nothing else.
func (v *viewerLink) has(entries []peer.HaveEntry) {
	for _, e := range entries {
		if e.State == peer.HoldsComplete {
			v.all.supply.observeHeld(v.title, e.Segment, time.UnixMilli(v.opened.Load()))
		}
	}
}

// Piece implements transfer.Handler. A seed asks viewers for nothing, so all data is unsolicited.
func (v *viewerLink) Piece(m peer.Data) error { return v.unasked(len(m.Payload)) }

// unasked counts n bytes of a message that the viewer was not asked for.
func (v *viewerLink) unasked(n int) error {
	if v.unsolicited.Add(int64(peer.Unsolicited(n))) > peer.MaxUnsolicited {
		return transfer.Overrun(peer.LimitData)
	}
	return nil
}

// lane is the background transport of a link. It satisfies transfer.Lane.
type lane struct{ v *viewerLink }

// BackgroundData implements transfer.Lane: like all data, nothing that a seed asked for.
func (l lane) BackgroundData(b []byte) error { return l.v.Piece(peer.Data{Payload: b}) }

// Ack implements transfer.Lane.
func (l lane) Ack(b []byte) error {
	if _, upload := l.v.conn.parts(); upload != nil {
		return upload.Ack(b)
	}
	return nil
}
