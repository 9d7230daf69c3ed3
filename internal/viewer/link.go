package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

type linkState string

const (
	linkOpening linkState = "opening"
	linkOpen    linkState = "open"
	linkClosed  linkState = "closed"
)

// link is one link from its first signal to its close.
type link struct {
	l       *links
	id      signal.ID
	peer    signal.ID
	role    schedule.Role
	offered bool
	began   time.Time
	state   linkState
	conn    transfer.Link // nil until made
	made    OfferedLink   // of ours, until answered
	facts   facts
	trickle trickle
	said    []signal.Bytes // by their answer: the first messages of the link
	greeted *greeted       // what our answer said; nil if it said nothing
	timer   func()
	events  reception
}

// greeted is what an answer has said of what is held: segments.
type greeted struct{ held []string }

func (l *links) newLink(id, to signal.ID, role string, offered bool) *link {
	a := &link{l: l, id: id, peer: to, role: schedule.Role(role), offered: offered, began: l.loop.Now(), state: linkOpening}
	a.trickle = trickle{tell: a.tell, facts: &a.facts}
	a.events.loop, a.events.link = l.loop, a
	a.timer = l.loop.After(establishTime, a.giveUp)
	return a
}

func (a *link) tell(m signal.Signal) { a.l.events.signalTo(a.peer, a.id, m) }

// offer makes and signals the offer.
func (a *link) offer() {
	a.make(func(d transfer.Description) { a.describe(signal.Signal{Kind: "offer", Early: true}, d) }, func() {})
}

// ready makes an offer for whomever the tracker picks. then comes once, without an offer when none could be made.
func (a *link) ready(then func(*signal.Offer)) {
	a.make(func(d transfer.Description) {
		then(&signal.Offer{Link: a.id, SDP: d.SDP, Plan: planOf(d), Early: true})
	}, func() { then(nil) })
}

// meet is called when a ready offer is on its way to a peer: from now on the link has a peer.
func (a *link) meet(id signal.ID, role string) {
	a.peer, a.role = id, schedule.Role(role)
	a.trickle.letOut()
}

// make makes an offer, beside the loop.
func (a *link) make(made func(transfer.Description), failed func()) {
	var conn OfferedLink
	var offer transfer.Description
	var err error
	settings := a.settings()
	a.l.loop.Go(func() { conn, offer, err = a.l.maker.Offer(settings, &a.events) }, func() {
		if err != nil {
			a.fail("refused", "", true)
			failed()
			return
		}
		a.conn, a.made = conn, conn
		if a.state == linkClosed {
			conn.Close(peer.CloseShutdown, nil)
			failed()
			return
		}
		made(offer)
	})
}

func (a *link) settings() LinkSettings {
	s := LinkSettings{Servers: a.l.terms.servers}
	s.RelayOnly = a.l.terms.role == "relay-only" && a.role != schedule.Seed // the taker of a ready offer may be a viewer
	if a.role == schedule.Seed {
		s.Servers = withoutRelays(s.Servers) // the origin costs less than a seed behind a relay
	}
	return s
}

// answer answers an offer, which came with a signal that says what else the answer may say.
func (a *link) answer(offer transfer.Description, asked *signal.Signal) {
	var conn transfer.Link
	var answer transfer.Description
	var err error
	settings := a.settings()
	a.l.loop.Go(func() { conn, answer, err = a.l.maker.Answer(settings, offer, &a.events) }, func() {
		if err != nil {
			a.fail("refused", "", true)
			return
		}
		a.conn = conn
		if a.state == linkClosed {
			conn.Close(peer.CloseShutdown, nil)
			return
		}
		m := signal.Signal{Kind: "answer"}
		if asked.Early {
			var held []string
			if m.Said, held = a.l.events.greeting(conn, asked.Wanted); m.Said != nil {
				a.greeted = &greeted{held}
			}
		}
		a.describe(m, answer)
		a.described()
	})
}

func planOf(d transfer.Description) *signal.Plan {
	return &signal.Plan{V: d.Plan.V, Data: d.Plan.Data, Message: d.Plan.Message}
}

// describe signals an offer or an answer.
func (a *link) describe(m signal.Signal, d transfer.Description) {
	m.SDP, m.Plan = d.SDP, planOf(d)
	a.tell(m)
	a.trickle.letOut()
}

// receive takes a signal about this link. Offers are not for here.
func (a *link) receive(m *signal.Signal) {
	switch m.Kind {
	case "answer":
		a.accept(m)
	case "fail":
		reason, cause := m.Reason, schedule.Reason("")
		if reason == "timeout" { // the other side has heard nothing; this one may know why
			reason, cause = a.diagnose()
		}
		a.fail(reason, cause, false)
	case "candidate", "end":
		a.trickle.remote(m)
	}
}

func (a *link) accept(m *signal.Signal) {
	conn := a.made
	if conn == nil || a.state == linkClosed {
		return // there is nothing of ours to answer, or it has been answered
	}
	a.made, a.said = nil, m.Said
	var err error
	d := transfer.Description{SDP: m.SDP, Plan: peer.Plan{V: m.Plan.V, Data: m.Plan.Data, Message: m.Plan.Message}}
	a.l.loop.Go(func() { err = conn.Accept(d) }, func() {
		if err != nil {
			a.fail("plan", "", true)
			return
		}
		a.described()
	})
}

// described hands the candidates of the other side to the link: its description is in.
func (a *link) described() {
	if a.conn != nil && a.state != linkClosed {
		a.trickle.described(a.conn.AddCandidate)
	}
}

func (a *link) giveUp() {
	fail, cause := a.diagnose()
	a.fail(fail, cause, true)
}

func (a *link) diagnose() (fail string, cause schedule.Reason) {
	fail, cause = a.facts.diagnose(overUDP(a.l.terms.servers))
	if a.made != nil && fail == "timeout" { // the offer was not answered: that says nothing of the way between the two
		return "gone", ""
	}
	return fail, cause
}

// fail ends an attempt that has not opened.
func (a *link) fail(reason string, cause schedule.Reason, tell bool) {
	if a.state != linkOpening {
		return
	}
	if a.peer.IsZero() { // a ready offer that no peer got: no link has failed
		a.close(peer.CloseIdle, nil)
		a.l.forget(a)
		return
	}
	if tell {
		a.tell(signal.Signal{Kind: "fail", Reason: reason})
	}
	a.close(peer.CloseFailed, nil)
	a.l.failed(a, reason, cause)
}

// close ends the link, open or not.
func (a *link) close(reason peer.CloseReason, last []byte) {
	if a.state == linkClosed {
		return
	}
	a.state = linkClosed
	a.timer()
	if a.conn != nil {
		a.conn.Close(reason, last)
	}
	a.over(reason)
}

// over lets go of the peer of an open link.
func (a *link) over(reason peer.CloseReason) {
	a.trickle.stop()
	if r := a.events.remote; r != nil {
		r.e.linkEnded(r, reason)
	}
}

// opened is told that the channels are there.
func (a *link) opened() {
	if a.state != linkOpening || a.conn == nil {
		return
	}
	a.timer()
	a.state = linkOpen
	a.l.blame = blame{}
	if !a.l.events.opened(a) {
		a.state = linkClosed
		a.conn.Close(peer.CloseIdle, bye(peer.ByeIdle))
		a.l.forget(a)
		return
	}
	a.l.events.linksChanged()
}

// closed is told that the link has ended, by either side.
func (a *link) closed(reason peer.CloseReason) {
	switch a.state {
	case linkOpening:
		switch reason {
		case peer.CloseProtocol:
			a.l.avoid(a.peer, forever)
		case peer.CloseClosed: // the other side was reached, and has left: that says nothing of the way between the two
			a.fail("gone", "", true)
		}
		a.giveUp()
	case linkOpen:
		if reason == peer.CloseStalled {
			a.l.avoid(a.peer, silentTime)
		}
		a.state = linkClosed
		a.over(reason)
		a.l.lost(a, reason)
	}
}

// rest is how long the peer would turn another offer down after this one.
func (a *link) rest() time.Duration {
	if !a.offered {
		return 0
	}
	return a.began.Add(offersTime + offersSlack).Sub(a.l.loop.Now())
}

// silent says whether nothing comes on an open link that should.
func (a *link) silent() bool {
	r := a.events.remote
	return a.state == linkOpen && r != nil && r.unheard >= checkFrom && a.events.came.Load() == r.cameBy
}
