package viewer

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const maxCandidates = 64 // of one link (spec/tracker-protocol.md)

type attemptState string

const (
	attemptOpening attemptState = "opening"
	attemptOpen    attemptState = "open"
	attemptClosed  attemptState = "closed"
)

// attempt is one link from its first signal to its close. It receives the link's events, which come from other
// goroutines and are posted; data alone goes to the peer's download at once.
type attempt struct {
	l       *links
	id      signal.ID
	peer    signal.ID
	role    schedule.Role
	offered bool
	began   time.Time
	state   attemptState
	link    transfer.Link   // nil until made
	made    OfferedLink     // of ours, until answered
	early   []signal.Signal // candidates that came before the description
	ours    []transfer.Candidate
	told    bool // our description has been signaled: candidates may follow
	open    bool // their description is in: candidates may be added
	heard   int  // candidates
	facts   facts
	said    []signal.Bytes // by their answer: the first messages of the link
	greeted *greeted       // what our answer said; nil if it said nothing
	timer   func()
	remote  *remote                          // of an open link; the loop's
	session atomic.Pointer[transfer.Session] // takes data and acks of an open link
	came    atomic.Int64                     // messages of an open link
}

// greeted is what an answer has said of what is held: segments.
type greeted struct{ held []string }

var (
	_ transfer.LinkEvents = (*attempt)(nil)
	_ transfer.AckEvents  = (*attempt)(nil)
	_ transfer.PathEvents = (*attempt)(nil)
)

func (l *links) newAttempt(id, to signal.ID, role string, offered bool) *attempt {
	a := &attempt{l: l, id: id, peer: to, role: schedule.Role(role), offered: offered, began: l.loop.Now(), state: attemptOpening}
	a.timer = l.loop.After(establishTime, a.giveUp)
	return a
}

func (a *attempt) tell(m signal.Signal) { a.l.events.signalTo(a.peer, a.id, m) }

// offer makes and signals the offer.
func (a *attempt) offer() {
	a.make(func(d transfer.Description) { a.describe(signal.Signal{Kind: "offer", Early: true}, d) }, func() {})
}

// ready makes an offer for whomever the tracker picks. then comes once, without an offer when none could be made.
func (a *attempt) ready(then func(*signal.Offer)) {
	a.make(func(d transfer.Description) {
		then(&signal.Offer{Link: a.id, SDP: d.SDP, Plan: planOf(d), Early: true})
	}, func() { then(nil) })
}

// meet is called when a ready offer is on its way to somebody: from now on the attempt has a peer.
func (a *attempt) meet(id signal.ID, role string) {
	a.peer, a.role = id, schedule.Role(role)
	a.told = true
	a.catchUpOurs()
}

// make makes an offer, beside the loop.
func (a *attempt) make(made func(transfer.Description), failed func()) {
	var link OfferedLink
	var offer transfer.Description
	var err error
	settings := a.settings()
	a.l.loop.Go(func() { link, offer, err = a.l.maker.Offer(settings, a) }, func() {
		if err != nil {
			a.fail("refused", "", true)
			failed()
			return
		}
		a.link, a.made = link, link
		if a.state == attemptClosed {
			link.Close(peer.CloseShutdown, nil)
			failed()
			return
		}
		made(offer)
	})
}

func (a *attempt) settings() LinkSettings {
	s := a.l.settings
	s.RelayOnly = a.l.role == "relay-only" && a.role != schedule.Seed // who takes a ready offer may be a viewer
	if a.role == schedule.Seed {
		s.Servers = withoutRelays(s.Servers) // the origin costs less than a seed behind a relay
	}
	return s
}

// answer answers an offer, which came with a signal that says what else the answer may say.
func (a *attempt) answer(offer transfer.Description, asked *signal.Signal) {
	var link transfer.Link
	var answer transfer.Description
	var err error
	settings := a.settings()
	a.l.loop.Go(func() { link, answer, err = a.l.maker.Answer(settings, offer, a) }, func() {
		if err != nil {
			a.fail("refused", "", true)
			return
		}
		a.link = link
		if a.state == attemptClosed {
			link.Close(peer.CloseShutdown, nil)
			return
		}
		m := signal.Signal{Kind: "answer"}
		if asked.Early {
			var held []string
			if m.Said, held = a.l.events.greeting(link, asked.Wanted); m.Said != nil {
				a.greeted = &greeted{held}
			}
		}
		a.describe(m, answer)
		a.catchUp()
	})
}

func planOf(d transfer.Description) *signal.Plan {
	return &signal.Plan{V: d.Plan.V, Data: d.Plan.Data, Message: d.Plan.Message}
}

// describe signals an offer or an answer.
func (a *attempt) describe(m signal.Signal, d transfer.Description) {
	m.SDP, m.Plan = d.SDP, planOf(d)
	a.tell(m)
	a.told = true
	a.catchUpOurs()
}

// catchUpOurs signals the candidates that came before they could be.
func (a *attempt) catchUpOurs() {
	for _, c := range a.ours {
		a.tellCandidate(c)
	}
	a.ours = nil
}

func (a *attempt) tellCandidate(c transfer.Candidate) {
	switch {
	case c.End:
		a.tell(signal.Signal{Kind: "end"})
	case len(c.Candidate) <= signal.MaxCandidate:
		a.tell(signal.Signal{Kind: "candidate", Candidate: c.Candidate, Mid: c.Mid, MLine: int(c.Line)})
	}
}

// receive takes a signal about this link. Offers are not for here.
func (a *attempt) receive(m *signal.Signal) {
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
		if a.heard++; a.heard <= maxCandidates+1 {
			a.early = append(a.early, *m)
			if a.open {
				a.catchUp()
			}
		}
	}
}

func (a *attempt) accept(m *signal.Signal) {
	link := a.made
	if link == nil || a.state == attemptClosed {
		return // there is nothing of ours to answer, or it has been answered
	}
	a.made, a.said = nil, m.Said
	var err error
	d := transfer.Description{SDP: m.SDP, Plan: peer.Plan{V: m.Plan.V, Data: m.Plan.Data, Message: m.Plan.Message}}
	a.l.loop.Go(func() { err = link.Accept(d) }, func() {
		if err != nil {
			a.fail("plan", "", true)
			return
		}
		a.catchUp()
	})
}

// catchUp hands candidates to the link. One that it does not take is one path fewer.
func (a *attempt) catchUp() {
	a.open = true
	for _, m := range a.early {
		if a.link == nil || a.state == attemptClosed {
			break
		}
		c := transfer.Candidate{Candidate: m.Candidate, Mid: m.Mid, Line: uint16(m.MLine), End: m.Kind == "end"}
		a.facts.remote = a.facts.remote || bytes.Contains([]byte(m.Candidate), []byte(" typ srflx"))
		_ = a.link.AddCandidate(c)
	}
	a.early = nil
}

func (a *attempt) giveUp() {
	fail, cause := a.diagnose()
	a.fail(fail, cause, true)
}

func (a *attempt) diagnose() (fail string, cause schedule.Reason) {
	fail, cause = a.facts.diagnose(overUDP(a.l.settings.Servers))
	if a.made != nil && fail == "timeout" { // nobody answered the offer: that says nothing of the way between the two
		return "gone", ""
	}
	return fail, cause
}

// fail ends an attempt that has not opened.
func (a *attempt) fail(reason string, cause schedule.Reason, tell bool) {
	if a.state != attemptOpening {
		return
	}
	if a.peer.IsZero() { // a ready offer that found nobody: no link has failed
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
func (a *attempt) close(reason peer.CloseReason, last []byte) {
	if a.state == attemptClosed {
		return
	}
	a.state = attemptClosed
	a.timer()
	if a.link != nil {
		a.link.Close(reason, last)
	}
	a.over(reason)
}

// over lets go of the peer of an open link.
func (a *attempt) over(reason peer.CloseReason) {
	if a.remote != nil {
		a.remote.e.linkEnded(a.remote, reason)
	}
}

// Candidate implements transfer.LinkEvents.
func (a *attempt) Candidate(c transfer.Candidate) {
	a.l.loop.Post(func() {
		a.facts.local(c.Candidate, c.End)
		if a.told {
			a.tellCandidate(c)
		} else {
			a.ours = append(a.ours, c)
		}
	})
}

// Open implements transfer.LinkEvents.
func (a *attempt) Open() {
	a.l.loop.Post(func() {
		if a.state != attemptOpening || a.link == nil {
			return
		}
		a.timer()
		a.state = attemptOpen
		a.l.blame, a.l.blamed = "", 0
		if !a.l.events.opened(a) {
			a.state = attemptClosed
			a.link.Close(peer.CloseIdle, bye(peer.ByeIdle))
			a.l.forget(a)
			return
		}
		a.l.events.linksChanged()
	})
}

// attach joins an open link to its peer.
func (a *attempt) attach(r *remote) {
	a.remote, r.came = r, &a.came
	a.session.Store(r.session)
}

// Control implements transfer.LinkEvents.
func (a *attempt) Control(message []byte) {
	b := bytes.Clone(message)
	a.came.Add(1)
	a.l.loop.Post(func() {
		if a.remote != nil && !a.remote.gone {
			a.remote.session.Control(b)
		}
	})
}

// Data implements transfer.LinkEvents, in the goroutine that reads the link.
func (a *attempt) Data(message []byte) {
	a.came.Add(1)
	if s := a.session.Load(); s != nil {
		s.Data(message)
	}
}

// Ack implements transfer.AckEvents, in the goroutine that reads the link.
func (a *attempt) Ack(message []byte) {
	a.came.Add(1)
	if s := a.session.Load(); s != nil {
		s.Ack(message)
	}
}

// Moved implements transfer.PathEvents.
func (a *attempt) Moved() {
	a.l.loop.Post(func() {
		if r := a.remote; r != nil && !r.gone {
			r.path = r.link.Path()
			r.upload.Moved()
		}
	})
}

// Drain implements transfer.LinkEvents.
func (a *attempt) Drain() {
	a.l.loop.Post(func() {
		if r := a.remote; r != nil && !r.gone {
			r.upload.Drain()
			r.e.pump()
			r.e.showMore(r)
		}
	})
}

// Closed implements transfer.LinkEvents.
func (a *attempt) Closed(reason peer.CloseReason) {
	a.l.loop.Post(func() {
		switch a.state {
		case attemptOpening:
			if reason == peer.CloseProtocol {
				a.l.avoid(a.peer, forever)
			}
			a.giveUp()
		case attemptOpen:
			if reason == peer.CloseStalled {
				a.l.avoid(a.peer, silentTime)
			}
			a.state = attemptClosed
			a.over(reason)
			a.l.lost(a, reason)
		}
	})
}

// rest is how long the peer would turn another offer down after this one.
func (a *attempt) rest() time.Duration {
	if !a.offered {
		return 0
	}
	return a.began.Add(offersTime + offersSlack).Sub(a.l.loop.Now())
}

// silent says whether nothing comes on an open link that should.
func (a *attempt) silent() bool {
	return a.state == attemptOpen && a.remote != nil && a.remote.unheard >= checkFrom && a.came.Load() == a.remote.cameBy
}
