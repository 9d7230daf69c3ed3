package viewer

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	attemptsBound = 8 // attempts under way at once
	establishTime = 12 * time.Second
	farewell      = peer.ByeLeaving
	// For so long a peer that fell silent is not linked again, and a further offer of one that has just made one not heard.
	silentTime = time.Minute
	offersTime = 2 * time.Second
	// offersSlack is what an offer may have taken to the other side, whose clock it is.
	offersSlack = 500 * time.Millisecond
	namedTime   = time.Minute                // how long an introduction to a peer counts while there was a link to it
	forever     = 100 * 365 * 24 * time.Hour // a session's life
)

// linkEvents is what links tell the title.
type linkEvents interface {
	signalTo(to, link signal.ID, m signal.Signal)
	opened(*link) bool // false: the link is not wanted any more
	linkFailed(reason string)
	linksChanged()
	// greeting is what goes out with an answer, and the segments that it says are held. The certificates of those that are
	// wanted are a part of it.
	greeting(link transfer.Link, wanted []signal.ID) (said []signal.Bytes, held []string)
}

// links are the links of one swarm: offers to the peers that the tracker introduces, answers to their offers, bounds,
// and a memory of the peers that are not to be linked again.
type links struct {
	loop   Loop
	maker  Links
	events linkEvents
	newID  func() signal.ID
	terms  linkTerms

	entries map[signal.ID]*link // by link
	order   []signal.ID
	avoided remembered // peers that are not linked
	told    remembered // peers that were turned down, and are not told so again
	offers  offerLimit
	named   map[signal.ID]introduced // while there was an open link to it
	early   early
	blame   blame // while no link is open
	stopped bool
}

// linkTerms are what the tracker says about links.
type linkTerms struct {
	self    signal.ID
	role    string // of this viewer
	most    int
	servers []ICEServer
}

func newLinks(loop Loop, maker Links, events linkEvents, newID func() signal.ID) *links {
	return &links{
		loop: loop, maker: maker, events: events, newID: newID, entries: map[signal.ID]*link{}, named: map[signal.ID]introduced{},
		avoided: remembered{loop: loop}, told: remembered{loop: loop}, offers: offerLimit{loop: loop},
	}
}

// count is how many links are open, or on their way to a peer.
func (l *links) count(open bool) int {
	n := 0
	for _, a := range l.entries {
		if (a.state == linkOpen) == open && !a.peer.IsZero() {
			n++
		}
	}
	return n
}

// sourceComing says whether a seed that was introduced may still be linked; or a viewer, if those serve by themselves, and there is
// no link yet.
func (l *links) sourceComing(viewers bool) bool {
	viewers = viewers && l.count(true) == 0
	if l.early.names(viewers) {
		return true
	}
	for _, a := range l.entries {
		if (a.role == schedule.Seed || viewers && !a.peer.IsZero()) && a.state == linkOpening {
			return true
		}
	}
	return false
}

// want is how many further links this viewer would take.
func (l *links) want() int {
	if l.stopped || l.terms.role == "" || l.terms.role == "off" {
		return 0
	}
	return max(0, min(signal.MaxWant, l.terms.most-len(l.entries)))
}

// blocked says why no link opens, when two attempts in a row were blocked in the same way and none is open.
func (l *links) blocked() schedule.Reason {
	if l.count(true) > 0 {
		return ""
	}
	return l.blame.sure()
}

func (l *links) find(id signal.ID) *link {
	for _, key := range l.order {
		if a := l.entries[key]; a.peer == id {
			return a
		}
	}
	return nil
}

func (l *links) add(a *link) {
	l.entries[a.id] = a
	l.order = append(l.order, a.id)
	l.events.linksChanged()
}

func (l *links) forget(a *link) {
	if l.entries[a.id] != a {
		return
	}
	delete(l.entries, a.id)
	delete(l.named, a.peer)
	l.order = slices.DeleteFunc(l.order, func(id signal.ID) bool { return id == a.id })
	l.events.linksChanged()
}

// avoid has a peer not linked for a while. A peer that offers is avoided, too.
func (l *links) avoid(id signal.ID, d time.Duration) { l.avoided.hold(id, d) }

// begin says that links may be made from now on: first to the peers that were named until then, and with what came from them.
func (l *links) begin() {
	if l.early.begun {
		return
	}
	peers, signals := l.early.begin()
	l.introduce(peers)
	for _, m := range signals {
		l.signal(m)
	}
}

// introduce offers a link to each peer that the tracker named.
func (l *links) introduce(peers []signal.Peer) {
	if l.early.name(peers) {
		l.events.linksChanged()
		return
	}
	for _, p := range peers {
		if known := l.find(p.Peer); known != nil && known.state == linkOpen {
			l.named[p.Peer] = introduced{p, l.loop.Now()}
			l.giveWay(p.Peer)
			continue
		}
		if p.Peer == l.terms.self || l.avoided.holds(p.Peer) || l.find(p.Peer) != nil || l.want() == 0 || l.count(false) >= attemptsBound {
			continue
		}
		a := l.newLink(l.newID(), p.Peer, p.Role, true)
		l.add(a)
		a.offer()
	}
}

// introduced is a peer that was named while there was a link to it: one that has fallen silent may not be known for it yet.
type introduced struct {
	signal.Peer
	at time.Time
}

// giveWay has a link that has fallen silent replaced by another, if the tracker has named its peer.
func (l *links) giveWay(id signal.ID) {
	p, named := l.named[id]
	known := l.find(id)
	if !named || l.loop.Now().Sub(p.at) >= namedTime || known == nil || !known.silent() {
		return
	}
	if d := known.rest(); d > 0 {
		l.loop.After(d, func() { l.giveWay(id) })
		return
	}
	known.close(peer.CloseTimeout, nil)
	l.forget(known)
	l.introduce([]signal.Peer{p.Peer})
}

// lost forgets a link that was open, and offers another if the tracker has just named its peer.
func (l *links) lost(a *link, reason peer.CloseReason) {
	p, again := l.named[a.peer]
	l.forget(a)
	if again && (reason == peer.CloseTimeout || reason == peer.CloseFailed) && l.loop.Now().Sub(p.at) < namedTime {
		l.loop.After(a.rest(), func() { l.introduce([]signal.Peer{p.Peer}) })
	}
}

// ready makes up to n offers for whomever the tracker picks, and hands over what could be made.
func (l *links) ready(n int, then func([]signal.Offer)) {
	n = min(n, l.want(), signal.MaxOffers)
	if n <= 0 {
		then(nil)
		return
	}
	var offers []signal.Offer
	left := n
	for range n {
		a := l.newLink(l.newID(), signal.ID{}, "", true)
		l.add(a)
		a.ready(func(o *signal.Offer) {
			if o != nil {
				offers = append(offers, *o)
			}
			if left--; left == 0 {
				then(offers)
			}
		})
	}
}

// offered is told which peer got which ready offer.
func (l *links) offered(list []signal.Offered) {
	for _, o := range list {
		a := l.entries[o.Link]
		switch {
		case a == nil || !a.peer.IsZero():
		case o.Peer == l.terms.self || l.avoided.holds(o.Peer) || l.find(o.Peer) != nil:
			a.close(peer.CloseIdle, nil)
			l.forget(a)
		default:
			a.meet(o.Peer, o.Role)
		}
	}
}

// signal takes a message of a peer about a link.
func (l *links) signal(m *signal.Signal) {
	if l.early.keep(m) {
		return
	}
	a := l.entries[m.Link]
	switch {
	case m.Kind == "offer":
		if a == nil && l.offers.hears() { // the same one again was answered, or is about to be
			l.answer(m)
		}
	case a != nil && a.peer == m.From: // only the peer that the link is with may speak about it
		a.receive(m)
	}
}

func (l *links) answer(m *signal.Signal) {
	refuse := func(reason string) {
		if l.told.holds(m.From) {
			return
		}
		l.told.hold(m.From, offersTime)
		l.events.signalTo(m.From, m.Link, signal.Signal{Kind: "fail", Reason: reason})
	}
	known := l.find(m.From)
	// Both offered: the offer of the lower peer ID stands, on both sides.
	ours := known != nil && known.state == linkOpening && known.offered && slices.Compare(l.terms.self[:], m.From[:]) < 0
	switch {
	case l.avoided.left(m.From) > silentTime:
		refuse("refused")
		return
	case l.stopped || m.From == l.terms.self || l.terms.role == "" || l.terms.role == "off" || ours || l.avoided.holds(m.From): // at another time it may be
		refuse("busy")
		return
	}
	l.avoid(m.From, offersTime)
	if known != nil { // the other side has begun anew, so an old link is dead there
		known.close(peer.CloseClosed, nil)
		l.forget(known)
	}
	plan := peer.Plan{V: m.Plan.V, Data: m.Plan.Data, Message: m.Plan.Message}
	switch {
	case plan.Check() != nil:
		refuse("plan")
	case l.want() == 0:
		refuse("busy")
	default:
		a := l.newLink(m.Link, m.From, m.Role, false)
		l.add(a)
		a.answer(transfer.Description{SDP: m.SDP, Plan: plan}, m)
	}
}

func (l *links) failed(a *link, reason string, cause schedule.Reason) {
	l.forget(a)
	l.blame.add(cause)
	l.events.linkFailed(reason)
}

func (l *links) closeAll(reason peer.CloseReason, why peer.ByeReason) {
	for _, id := range slices.Clone(l.order) {
		a := l.entries[id]
		a.close(reason, bye(why))
		l.forget(a)
	}
	l.blame = blame{}
	l.early.clear()
}

func (l *links) stop() {
	l.stopped = true
	l.closeAll(peer.CloseShutdown, farewell)
}

// linkID is a peer's ID as links have it, of the engine's spelling.
func linkID(id string) (out signal.ID) {
	_, _ = hex.Decode(out[:], []byte(id))
	return out
}
