package viewer

import (
	"math/rand/v2"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Times of a membership, the library's.
const (
	linkGrace   = 4 * time.Second // after joining: how long a first link may take
	rejoinAfter = 5 * time.Second
	// linksAhead is how many links a viewer takes before its site's policy is known: the policy's default.
	linksAhead = 8
)

// membershipHost is what a membership needs of its title.
type membershipHost struct {
	titleHost
	line      *line
	span      func() *signal.Range // what the viewer holds and will want next
	sendStats func()
	decided   func() // there is an engine
}

// membership is one title's membership of its swarm: joining and coming back, what the tracker is told and what it says,
// the links, and the engine that they serve.
type membership struct {
	membershipHost
	delivery
	loop    Loop
	cfg     *Config
	session *session // nil without a tracker
	links   *links
	engine  *engine // nil until joined
	credit  credit
	naming  naming
	timers  timers
	swarm   signal.Joined
	times   joinTimes
	joining joining
	updates updates
	closed  bool
}

// joinTimes are the moments of a membership.
type joinTimes struct {
	by time.Time // for so long joining may wait for the picture
	at time.Time // links are expected since then
}

var (
	_ sessionEvents = (*membership)(nil)
	_ linkEvents    = (*membership)(nil)
)

func newMembership(cfg *Config, ports Ports, random *rand.Rand, host membershipHost) *membership {
	t := &membership{
		membershipHost: host, loop: ports.Loop, cfg: cfg, timers: newTimers(ports.Loop),
		naming: naming{url: cfg.URL, title: cfg.Title}, times: joinTimes{by: ports.Loop.Now().Add(cfg.JoinAfter)},
	}
	t.delivery = delivery{device: cfg.Device, notice: host.notice, told: func(reason schedule.Reason) {
		if t.engine != nil {
			t.engine.setOff(reason)
		}
	}}
	t.links = newLinks(ports.Loop, ports.Links, t, func() (id signal.ID) {
		for i := range id {
			id[i] = byte(random.Uint32())
		}
		return id
	})
	if ports.Dialer == nil || cfg.Tracker == "" {
		t.off = schedule.ByPolicy
		return t
	}
	t.session = newSession(sessionOptions{
		loop: ports.Loop, dialer: ports.Dialer, random: random, events: t, url: cfg.Tracker, origin: cfg.Origin,
		hello: signal.Hello{Version: signal.Version, Client: cfg.Client, Site: cfg.Site}, token: cfg.Token,
	})
	t.joining = joining{
		session: t.session, links: t.links, naming: &t.naming, offers: cfg.ReadyOffers, span: host.span,
		swarm: func() signal.ID { return t.swarm.Swarm }, joined: t.joined, refused: t.refusedJoin,
	}
	t.updates = updates{timers: newTimers(ports.Loop), session: t.session, links: t.links, span: host.span, sendStats: host.sendStats}
	return t
}

func (t *membership) start() {
	if t.session != nil {
		t.session.start()
	}
}

// greeted implements sessionEvents. The first join follows the hello at once, where the picture need not be waited for and
// the title can be told without the site's rules. The tracker keeps back what its policy does not allow.
func (t *membership) greeted() {
	if t.cfg.ReadyOffers == 0 || t.joining.count > 0 || t.welcomed != nil || t.times.by.After(t.loop.Now()) || !t.naming.guess() {
		return
	}
	t.joining.ahead = true
	t.links.terms.role, t.links.terms.most = role(&signal.Policy{Role: site.RoleFull}, t.device.Line), linksAhead
	t.links.begin()
	t.joining.join()
}

// welcome implements sessionEvents.
func (t *membership) welcome(m *signal.Welcome) {
	t.welcomed, t.barred = m, true
	guessed := t.naming
	if err := t.naming.read(m.Site); err != nil {
		t.joining.forget() // the guess was wrong: the answer to a join that went out ahead is for nothing
		t.leaveOut(schedule.ByPolicy, "bad-manifest", "the manifest has no name on the tracker's site: "+err.Error())
		return
	}
	if site.HasCredential(t.cfg.URL) && t.cfg.Token == nil && m.Policy.SignedManifests != site.SignedShare {
		t.leaveOut(schedule.NeedsToken, "needs-token", "the manifest's URL carries a credential, and there is no join token")
		return
	}
	t.barred = false
	t.applyPolicy()
	t.inform(m.VerifyKeys, m.Revocations)
	if t.joining.ahead && t.naming.key == guessed.key && t.naming.name == guessed.name {
		return
	}
	if wait := t.times.by.Sub(t.loop.Now()); wait > 0 && t.joining.count == 0 {
		// Links come after the picture. The tracker can name peers meanwhile.
		t.timers.set("begin", wait, t.begin)
		t.joining.join()
		return
	}
	t.joinSoon()
}

// pushed implements sessionEvents.
func (t *membership) pushed(m signal.Message) {
	switch m := m.(type) {
	case *signal.Introduce:
		if m.Swarm == t.swarm.Swarm {
			t.links.introduce(m.Peers)
		}
	case *signal.Signal:
		if m.Swarm == t.swarm.Swarm {
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
		if !t.barred {
			t.applyPolicy()
			t.updates.soon()
		}
	case *signal.SetServers:
		t.welcomed.ICEServers, t.welcomed.Expire = m.ICEServers, m.Expire
		if !t.barred {
			t.applyPolicy()
		}
	case *signal.Error:
		t.notice("tracker-error", m.Code+": "+m.Message)
	}
}

// lost implements sessionEvents: links and engine go on.
func (t *membership) lost() {
	t.updates.stop()
	t.timers.clear("rejoin")
	t.joining.forget()
	t.joining.ahead = false
}

// refused implements sessionEvents.
func (t *membership) refused(m *signal.Error) {
	t.notice("refused", "the tracker refused this viewer ("+m.Code+"): "+m.Message+" "+m.Hint)
	if t.engine == nil {
		t.leaveOut(schedule.ByPolicy, "", "")
	}
}

// signalTo implements linkEvents.
func (t *membership) signalTo(to, link signal.ID, m signal.Signal) {
	if t.swarm.Swarm.IsZero() {
		return
	}
	m.Swarm, m.To, m.Link = t.swarm.Swarm, to, link
	t.session.send(&m)
}

// opened implements linkEvents.
func (t *membership) opened(a *link) bool {
	if t.engine == nil || t.closed {
		return false
	}
	r := t.engine.addLink(a.peer, a.role, a.conn, a.greeted)
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
func (t *membership) greeting(link transfer.Link, wanted []signal.ID) (said []signal.Bytes, held []string) {
	if t.engine == nil {
		return nil, nil
	}
	return t.engine.greeting.first(link, wanted)
}

// linkFailed implements linkEvents.
func (t *membership) linkFailed(reason string) {
	t.ledger.linkFailed(reason)
	if blocked := t.links.blocked(); blocked != "" && t.off == "" {
		t.leaveOut(blocked, "links-blocked", "no link to another viewer or a seed opens ("+string(blocked)+")")
	}
}

// linksChanged implements linkEvents.
func (t *membership) linksChanged() {
	if t.closed || t.welcomed == nil {
		return
	}
	if t.links.count(true) > 0 && t.role() != "off" && t.off != "" {
		t.setOff("")
	}
	t.updates.changed()
	t.setLinking()
}

// joinSoon joins as soon as the picture allows.
func (t *membership) joinSoon() {
	t.timers.set("rejoin", max(0, t.times.by.Sub(t.loop.Now())), func() {
		t.links.begin()
		t.joining.join()
	})
}

// pictured notes that the first picture is there: links need not wait any longer.
func (t *membership) pictured() {
	t.times.by = time.Time{}
	if t.timers.isSet("begin") {
		t.timers.clear("begin")
		t.begin() // at once: what is asked for next may wait for a seed
	}
	if t.timers.isSet("rejoin") && t.joining.count == 0 {
		t.joinSoon()
	}
}

func (t *membership) applyPolicy() {
	m, l := t.welcomed, t.links
	l.terms = t.terms()
	if t.engine != nil {
		t.engine.pacing.cap(m.Policy.UploadKbps)
	}
	switch {
	case t.role() != "off":
		t.setOff(l.blocked())
	case m.Policy.ControlGroup:
		l.closeAll(peer.ClosePolicy, peer.ByePolicy)
		t.leaveOut(schedule.ControlGroup, "control-group", "this viewer is in the control group")
	default:
		l.closeAll(peer.ClosePolicy, peer.ByePolicy)
		t.leaveOut(schedule.ByPolicy, "policy-off", "peer delivery is off for this viewer")
	}
}

// inform tells the engine what the tracker said of keys, revocations and the time.
func (t *membership) inform(keys []signal.VerifyKey, revocations []signal.Revocation) {
	if t.engine == nil {
		return
	}
	t.engine.verification.offset = t.session.offset
	if keys != nil {
		set, err := verifyKeys(t.naming.rules.Name(), keys)
		if err != nil {
			t.notice("bad-keys", err.Error())
		} else {
			t.engine.verification.keys = set
		}
	}
	t.engine.verification.revoke(revocationsOf(revocations))
}

// refusedJoin is told that the tracker did not let this viewer join.
func (t *membership) refusedJoin(refusal *signal.Error, ahead bool) {
	if ahead && t.welcomed != nil {
		t.joinSoon() // by the rules of the welcome
		return
	}
	t.notice("tracker-error", "the tracker did not let this viewer join ("+refusal.Code+"): "+refusal.Message)
	if refusal.Code != "bad-title" {
		wait := time.Duration(float64(rejoinAfter) * (0.5 + t.session.random.Float64()))
		t.timers.set("rejoin", max(wait, time.Duration(refusal.RetryAfterMs)*time.Millisecond), t.joining.join)
	}
}

func (t *membership) joined(m *signal.Joined) {
	t.swarm = *m
	t.links.offered(m.Offered)
	t.updates.begin(m.Swarm, t.welcomed)
	if t.links.early.begun {
		t.expectLinks()
	}
}

// begin is when links may be made, and the engine that they serve.
func (t *membership) begin() {
	if t.swarm.Swarm.IsZero() {
		t.links.begin()
		return
	}
	t.expectLinks()
	t.links.begin()
}

// expectLinks has an engine for the links that are about to come up.
func (t *membership) expectLinks() {
	t.times.at = t.loop.Now()
	if t.engine == nil {
		t.engine = newEngine(t.engineHost(), engineConfig{
			Policy: t.cfg.Policy, StoreBytes: t.cfg.StoreBytes, Record: t.cfg.Record, Prefetch: t.prefetch, Playhead: t.playhead, Parts: t.cfg.LowLatency,
		})
		t.inform(t.welcomed.VerifyKeys, t.welcomed.Revocations)
		t.engine.setOff(t.off)
		t.engine.pacing.cap(t.welcomed.Policy.UploadKbps)
		t.decided()
	}
	t.timers.set("linking", linkGrace, t.setLinking)
	t.setLinking()
}

// engineHost is what the engine needs of the rest.
func (t *membership) engineHost() engineHost {
	return engineHost{
		loop: t.loop, rules: t.naming.rules, swarm: t.swarm.Swarm, line: t.line, credit: &t.credit, ledger: t.ledger,
		self:    func() swarm.ID { return t.welcomed.Session },
		uploads: t.uploads, relayOnly: func() bool { return t.role() == "relay-only" },
		banned:  func(id string) { t.links.avoid(linkID(id), forever) },
		unheard: func(id string) { t.links.giveWay(linkID(id)) },
		adrift:  t.session.hurry, awoke: t.session.awoke, turnedOff: t.turnedOff, notice: t.notice,
	}
}

func (t *membership) setLinking() {
	if t.engine == nil {
		return
	}
	fresh := t.loop.Now().Sub(t.times.at) < linkGrace && t.role() != "off"
	t.engine.setLinking(t.links.count(true) == 0 && (fresh || t.links.count(false) > 0), t.links.sourceComing(packaged(t.welcomed.VerifyKeys)))
}

// moved is called when this side is known to be in another network.
func (t *membership) moved() {
	if t.closed || t.session == nil {
		return
	}
	if t.engine != nil {
		t.engine.silence.moved()
	}
	t.session.hurry()
}

// stop leaves the swarm, and closes links, engine and session.
func (t *membership) stop() {
	t.closed = true
	t.joining.forget()
	if t.session != nil && !t.swarm.Swarm.IsZero() {
		t.session.send(&signal.Leave{Swarm: t.swarm.Swarm})
	}
	t.updates.stop()
	t.timers.clear("rejoin", "begin", "linking")
	t.links.stop()
	if t.engine != nil {
		t.engine.stop()
	}
	if t.session != nil {
		t.session.stop()
	}
}
