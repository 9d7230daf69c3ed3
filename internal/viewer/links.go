package viewer

import (
	"maps"
	"slices"
	"strings"
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
	offersSlack     = 500 * time.Millisecond
	offersAtOnce    = 64 // are heard, and then offersPerSecond: newcomers to a popular viewer are fewer, and what is beyond is dropped
	offersPerSecond = 16
	namedTime       = time.Minute                // for so long an introduction counts to whom there was a link
	forever         = 100 * 365 * 24 * time.Hour // a session's life
	manyAvoided     = 256
	keptSignals     = 64 // until links may be made
)

// linkEvents is what links tell the title.
type linkEvents interface {
	signalTo(to, link signal.ID, m signal.Signal)
	opened(*attempt) bool // false: nobody wants the link any more
	linkFailed(reason string)
	linksChanged()
	// greeting is what goes out with an answer, and the segments that it says are held. The certificates of those that are
	// wanted are a part of it.
	greeting(link transfer.Link, wanted []signal.ID) (said []signal.Bytes, held []string)
}

// links are the links of one swarm: offers to the peers that the tracker introduces, answers to those who offer, bounds,
// and a memory of who is not to be linked again.
type links struct {
	loop     Loop
	maker    Links
	events   linkEvents
	newID    func() signal.ID
	settings LinkSettings
	self     signal.ID
	role     string // of this viewer
	most     int

	entries map[signal.ID]*attempt // by link
	order   []signal.ID
	avoided map[signal.ID]time.Time  // until when a peer is not linked
	told    map[signal.ID]time.Time  // until when a peer that was turned down is not told so again
	quiet   time.Time                // when as many offers as ever may be heard at once
	named   map[signal.ID]introduced // while there was an open link to it
	begun   bool                     // links may be made
	waiting []signal.Peer            // named until then
	kept    []*signal.Signal         // of them
	stopped bool
	blame   schedule.Reason // what the last failed attempts say about the network, while no link is open
	blamed  int             // times in a row
}

// count is how many links are open, or on their way to somebody.
func (l *links) count(open bool) int {
	n := 0
	for _, a := range l.entries {
		if (a.state == attemptOpen) == open && !a.peer.IsZero() {
			n++
		}
	}
	return n
}

// seedComing says whether a seed that was introduced may still be linked.
func (l *links) seedComing() bool {
	if slices.ContainsFunc(l.waiting, func(p signal.Peer) bool { return p.Role == string(schedule.Seed) }) {
		return true
	}
	for _, a := range l.entries {
		if a.role == schedule.Seed && a.state == attemptOpening {
			return true
		}
	}
	return false
}

// want is how many further links this viewer would take.
func (l *links) want() int {
	if l.stopped || l.role == "" || l.role == "off" {
		return 0
	}
	return max(0, min(signal.MaxWant, l.most-len(l.entries)))
}

// blocked says why no link opens, when two attempts in a row were blocked in the same way and none is open.
func (l *links) blocked() schedule.Reason {
	if l.blamed >= 2 && l.count(true) == 0 {
		return l.blame
	}
	return ""
}

func (l *links) find(id signal.ID) *attempt {
	for _, key := range l.order {
		if a := l.entries[key]; a.peer == id {
			return a
		}
	}
	return nil
}

func (l *links) add(a *attempt) {
	l.entries[a.id] = a
	l.order = append(l.order, a.id)
	l.events.linksChanged()
}

func (l *links) forget(a *attempt) {
	if l.entries[a.id] != a {
		return
	}
	delete(l.entries, a.id)
	delete(l.named, a.peer)
	l.order = slices.DeleteFunc(l.order, func(id signal.ID) bool { return id == a.id })
	l.events.linksChanged()
}

// avoid has a peer not linked for a while. Who offers is avoided, too: of many those are forgotten whose time is over.
func (l *links) avoid(id signal.ID, d time.Duration) {
	l.hold(l.avoided, id, d)
}

func (l *links) hold(list map[signal.ID]time.Time, id signal.ID, d time.Duration) {
	now := l.loop.Now()
	if len(list) >= manyAvoided {
		maps.DeleteFunc(list, func(_ signal.ID, until time.Time) bool { return !until.After(now) })
	}
	if until := now.Add(d); until.After(list[id]) {
		list[id] = until
	}
}

// hears says whether one more offer is heard now.
func (l *links) hears() bool {
	now, next := l.loop.Now(), l.quiet.Add(time.Second/offersPerSecond)
	if next.Before(now) {
		next = now.Add(time.Second / offersPerSecond)
	}
	if next.After(now.Add(time.Second / offersPerSecond * offersAtOnce)) {
		return false
	}
	l.quiet = next
	return true
}

func (l *links) avoids(id signal.ID) bool { return l.avoided[id].After(l.loop.Now()) }

// begin says that links may be made from now on: first to those who were named until then, and what came from them.
func (l *links) begin() {
	if l.begun {
		return
	}
	peers, kept := l.waiting, l.kept
	l.begun, l.waiting, l.kept = true, nil, nil
	l.introduce(peers)
	for _, m := range kept {
		l.signal(m)
	}
}

// introduce offers a link to each peer that the tracker named.
func (l *links) introduce(peers []signal.Peer) {
	if !l.begun {
		l.waiting = append(l.waiting, peers...)
		l.waiting = l.waiting[max(0, len(l.waiting)-signal.MaxWant):]
		l.events.linksChanged()
		return
	}
	for _, p := range peers {
		if known := l.find(p.Peer); known != nil && known.state == attemptOpen {
			l.named[p.Peer] = introduced{p, l.loop.Now()}
			l.giveWay(p.Peer)
			continue
		}
		if p.Peer == l.self || l.avoids(p.Peer) || l.find(p.Peer) != nil || l.want() == 0 || l.count(false) >= attemptsBound {
			continue
		}
		a := l.newAttempt(l.newID(), p.Peer, p.Role, true)
		l.add(a)
		a.offer()
	}
}

// introduced is a peer that was named while there was a link to it: one that has fallen silent may not be known for it yet.
type introduced struct {
	signal.Peer
	at time.Time
}

// giveWay has a link that has fallen silent replaced by another, if the tracker has named who it is to.
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

// lost forgets a link that was open, and offers another to whom the tracker has just named.
func (l *links) lost(a *attempt, reason peer.CloseReason) {
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
		a := l.newAttempt(l.newID(), signal.ID{}, "", true)
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

// offered is told who got which ready offer.
func (l *links) offered(list []signal.Offered) {
	for _, o := range list {
		a := l.entries[o.Link]
		switch {
		case a == nil || !a.peer.IsZero():
		case o.Peer == l.self || l.avoids(o.Peer) || l.find(o.Peer) != nil:
			a.close(peer.CloseIdle, nil)
			l.forget(a)
		default:
			a.meet(o.Peer, o.Role)
		}
	}
}

// signal takes a message of a peer about a link.
func (l *links) signal(m *signal.Signal) {
	if !l.begun {
		if len(l.kept) < keptSignals {
			l.kept = append(l.kept, m)
		}
		return
	}
	a := l.entries[m.Link]
	switch {
	case m.Kind == "offer":
		if a == nil && l.hears() { // the same one again was answered, or is about to be
			l.answer(m)
		}
	case a != nil && a.peer == m.From: // only the peer that the link is with may speak about it
		a.receive(m)
	}
}

func (l *links) answer(m *signal.Signal) {
	refuse := func(reason string) {
		if l.told[m.From].After(l.loop.Now()) {
			return
		}
		l.hold(l.told, m.From, offersTime)
		l.events.signalTo(m.From, m.Link, signal.Signal{Kind: "fail", Reason: reason})
	}
	known := l.find(m.From)
	// Both offered: the offer of the lower peer ID stands, on both sides.
	ours := known != nil && known.state == attemptOpening && known.offered && slices.Compare(l.self[:], m.From[:]) < 0
	switch {
	case l.stopped || m.From == l.self || l.role == "" || l.role == "off" || l.avoided[m.From].Sub(l.loop.Now()) > silentTime:
		refuse("refused")
		return
	case ours || l.avoids(m.From): // at another time it may be
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
		a := l.newAttempt(m.Link, m.From, m.Role, false)
		l.add(a)
		a.answer(transfer.Description{SDP: m.SDP, Plan: plan}, m)
	}
}

func (l *links) failed(a *attempt, reason string, cause schedule.Reason) {
	l.forget(a)
	if cause != "" {
		if cause != l.blame {
			l.blame, l.blamed = cause, 0
		}
		l.blamed++
	}
	l.events.linkFailed(reason)
}

func (l *links) closeAll(reason peer.CloseReason, why peer.ByeReason) {
	for _, id := range slices.Clone(l.order) {
		a := l.entries[id]
		a.close(reason, bye(why))
		l.forget(a)
	}
	l.blame, l.blamed = "", 0
	l.waiting, l.kept = nil, nil
}

func (l *links) stop() {
	l.stopped = true
	l.closeAll(peer.CloseShutdown, farewell)
}

// facts of an attempt, from which its failure is explained.
type facts struct {
	gathered  bool
	reflexive []string // local candidates as a STUN server saw them
	relayed   bool
	remote    bool // a reflexive candidate of the other side was heard of
}

func (f *facts) local(candidate string, end bool) {
	switch {
	case end:
		f.gathered = true
	case strings.Contains(candidate, " typ srflx"):
		f.reflexive = append(f.reflexive, candidate)
	case strings.Contains(candidate, " typ relay"):
		f.relayed = true
	}
}

// diagnose explains why an attempt did not open: a guess, and only a time-out where nothing shows.
func (f *facts) diagnose(servers bool) (fail string, cause schedule.Reason) {
	if servers && f.gathered && len(f.reflexive) == 0 && !f.relayed {
		return "udp-blocked", schedule.UDPBlocked
	}
	// One local port that two servers see as two: the address translation depends on the destination.
	ports := map[string]bool{}
	for _, c := range f.reflexive {
		if _, related, ok := strings.Cut(c, " rport "); ok {
			port, _, _ := strings.Cut(related, " ")
			ports[port] = true
		}
	}
	if len(ports) > 0 && len(ports) < len(f.reflexive) || len(f.reflexive) > 0 && f.remote {
		return "timeout", schedule.SymmetricNAT
	}
	return "timeout", ""
}

// overUDP says whether a list has a STUN or TURN server that is reached by UDP.
func overUDP(servers []ICEServer) bool {
	for _, s := range servers {
		for _, u := range s.URLs {
			if (strings.HasPrefix(u, "stun:") || strings.HasPrefix(u, "turn:")) && !strings.Contains(u, "transport=tcp") {
				return true
			}
		}
	}
	return false
}
