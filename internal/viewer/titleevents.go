package viewer

import (
	"encoding/hex"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

var (
	_ sessionEvents  = (*title)(nil)
	_ linkEvents     = (*title)(nil)
	_ engineObserver = (*title)(nil)
)

// pushed implements sessionEvents.
func (t *title) pushed(m signal.Message) {
	switch m := m.(type) {
	case *signal.Introduce:
		if m.Swarm == t.swarm {
			t.links.introduce(m.Peers)
		}
	case *signal.Signal:
		if m.Swarm == t.swarm {
			t.links.signal(m)
		}
	case *signal.Keys:
		t.welcomed.VerifyKeys = m.VerifyKeys
		t.inform(m.VerifyKeys, nil)
	case *signal.Revoke:
		t.welcomed.Revocations = append(t.welcomed.Revocations, m.Revocations...)
		t.inform(nil, m.Revocations)
	case *signal.SetPolicy:
		t.welcomed.Policy = m.Policy
		if t.rules != nil && t.name != "" {
			t.applyPolicy()
			t.updateSoon()
		}
	case *signal.SetServers:
		t.welcomed.ICEServers, t.welcomed.Expire = m.ICEServers, m.Expire
		if t.rules != nil && t.name != "" {
			t.applyPolicy()
		}
	case *signal.Error:
		t.notice("tracker-error", m.Code+": "+m.Message)
	}
}

// lost implements sessionEvents: links and engine go on.
func (t *title) lost() {
	t.clear("update", "stats", "soon", "rejoin")
	t.joins++
	t.ahead = false
}

// refused implements sessionEvents.
func (t *title) refused(m *signal.Error) {
	t.notice("refused", "the tracker refused this viewer ("+m.Code+"): "+m.Message+" "+m.Hint)
	if t.engine == nil {
		t.leaveOut(schedule.ByPolicy, "", "")
	}
}

// signalTo implements linkEvents.
func (t *title) signalTo(to, link signal.ID, m signal.Signal) {
	if t.swarm.IsZero() {
		return
	}
	m.Swarm, m.To, m.Link = t.swarm, to, link
	t.session.send(&m, false)
}

// opened implements linkEvents.
func (t *title) opened(a *link) bool {
	if t.engine == nil || t.closed {
		return false
	}
	r := t.engine.addLink(peer.ID(a.peer), a.role, a.conn, a.greeted)
	if r == nil {
		return false
	}
	a.events.attach(r)
	for _, m := range a.said {
		if !r.gone {
			r.session.Control(m)
		}
	}
	a.said = nil
	return true
}

// greeting implements linkEvents.
func (t *title) greeting(link transfer.Link, wanted []signal.ID) (said []signal.Bytes, held []string) {
	if t.engine == nil {
		return nil, nil
	}
	return t.engine.greeting(link, wanted)
}

// linkFailed implements linkEvents.
func (t *title) linkFailed(reason string) {
	t.ledger.linkFailed(reason)
	if blocked := t.links.blocked(); blocked != "" && t.off == "" {
		t.leaveOut(blocked, "links-blocked", "no link to another viewer or a seed opens ("+string(blocked)+")")
	}
}

// linksChanged implements linkEvents.
func (t *title) linksChanged() {
	if t.closed || t.welcomed == nil {
		return
	}
	open := t.links.count(true)
	if open > 0 && t.role() != "off" && t.off != "" {
		t.setOff("")
	}
	if t.links.want() > t.lastWant || open == 0 {
		t.updateSoon()
	}
	t.setLinking()
}

// banned implements engineObserver.
func (t *title) banned(id string) {
	var key signal.ID
	if b, err := hex.DecodeString(id); err == nil && len(b) == len(key) {
		t.links.avoid(signal.ID(b), forever)
	}
}

// adrift implements engineObserver.
func (t *title) adrift() { t.session.hurry() }

// moved is called when this side is known to be in another network.
func (t *title) moved() {
	if t.closed || t.session == nil {
		return
	}
	if t.engine != nil {
		t.engine.moved()
	}
	t.session.hurry()
}

// unheard implements engineObserver.
func (t *title) unheard(id string) {
	if b, err := hex.DecodeString(id); err == nil && len(b) == len(signal.ID{}) {
		t.links.giveWay(signal.ID(b))
	}
}

// awoke implements engineObserver.
func (t *title) awoke() { t.session.awoke() }

// turnedOff implements engineObserver.
func (t *title) turnedOff(reason schedule.Reason) {
	t.off, t.broken = reason, reason
	t.notice("title-off", "peer delivery of this title is off ("+string(reason)+"): the origin contradicts the certificates")
}

// recordFailed implements engineObserver.
func (t *title) recordFailed(err error) { t.notice("record", err.Error()) }

// pull is one segment on its way to the player, by the engine if there is one, straight from the origin otherwise.
type pull struct {
	t      *title
	r      request
	done   func(*Result, error)
	began  time.Time
	over   bool
	inner  *load
	direct func() // cancels
}

// load gets a segment.
func (t *title) load(r request, done func(*Result, error)) *pull {
	p := &pull{t: t, r: r, done: done, began: t.loop.Now()}
	t.noteRange(r)
	// Nothing is waited for before there is an engine, which asks those who have said that they hold it.
	p.begin()
	return p
}

func (p *pull) begin() {
	t := p.t
	if t.engine != nil && !t.closed {
		p.inner = t.engine.load(p.r, p.done)
		return
	}
	p.direct, _ = t.line.fetch(p.r.fetch(), false, func(got Fetched, err error) {
		p.over = true
		if err != nil {
			p.done(nil, err)
			return
		}
		if !got.Unshared {
			p.t.keep(bypassed{p.r.Reference, p.r.bitrate, got.Data})
		}
		p.done(p.count(got), nil)
	})
}

// bypassed is a segment that came before there was an engine.
type bypassed struct {
	ref     Reference
	bitrate int64
	data    []byte
}

// keep has the engine share a segment that came without it, as soon as there is one: without the first segments of the first
// viewers nobody could begin while the origin is down.
func (t *title) keep(b bypassed) {
	switch {
	case t.closed || t.session == nil:
	case t.engine != nil:
		t.engine.adopt(b)
	case len(t.early) < mostUncertified:
		t.early = append(t.early, b)
	}
}

// count counts a segment that came from the origin without an engine.
func (p *pull) count(got Fetched) *Result {
	t, n := p.t, len(got.Data)
	reason := t.off
	if reason == "" {
		reason = schedule.NoHolder
	}
	t.ledger.played(n)
	t.ledger.segment(FromOrigin, reason)
	return &Result{
		Reference: p.r.Reference, Rendition: p.r.rendition, Pieces: [][]byte{got.Data}, Source: FromOrigin, Reason: reason,
		Bytes: map[Source]int64{FromOrigin: int64(n)}, Took: t.loop.Now().Sub(p.began),
	}
}

// abort takes it back; done is not called any more.
func (p *pull) abort() {
	if p.over {
		return
	}
	p.over = true
	switch {
	case p.inner != nil:
		p.t.engine.abort(p.inner)
	case p.direct != nil:
		p.direct()
	}
}

func (t *title) noteRange(r request) {
	last := r.Reference
	if n := min(lookahead, len(r.upcoming)); n > 0 {
		last = r.upcoming[n-1]
	}
	// The tracker knows the timeline of the film, whatever the speed at which it is shown here.
	ms := func(d time.Duration) int64 { return max(0, int64(float64(d.Milliseconds())*t.cfg.Speed)) }
	t.span = &signal.Range{From: ms(r.Start - r.deadline() - behind), To: ms(last.Start + last.Duration)}
	if t.span.To < t.span.From {
		t.span.To = t.span.From
	}
}
