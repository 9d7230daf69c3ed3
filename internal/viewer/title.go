package viewer

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Times of a membership, the library's.
const (
	linkGrace      = 4 * time.Second // after joining: how long a first link may take
	rejoinAfter    = 5 * time.Second
	behind         = 30 * time.Second // kept behind the playhead in the range told to the tracker
	updateDebounce = 200 * time.Millisecond
)

// title is the membership of one swarm: session, links, engine, statistics. The twin of the library's title.
type title struct {
	loop    Loop
	cfg     *Config
	links   *links
	session *session // nil without a tracker
	engine  *engine  // nil until joined
	ledger  *ledger
	line    *line
	observe func() // has the player count what it has seen until now
	// playhead is the player's.
	playhead func() (position, ready time.Duration)
	notice   func(code, text string)

	openedAt, joinedAt time.Time
	joinBy             time.Time
	welcomed           *signal.Welcome
	rules              *site.Site
	name, key          string
	swarm              signal.ID
	viewers, seeds     int
	off                schedule.Reason
	broken             schedule.Reason // the engine's own judgment, for the life of the title
	closed             bool
	joins              int  // the answer to an old one is nobody's
	ahead              bool // the last join went out ahead of the welcome, by the rules of a site that has none of its own
	span               *signal.Range
	lastWant           int
	statsAt            time.Time
	timers             map[string]func()
	credit             credit
	early              []bypassed
}

func newTitle(cfg *Config, ports Ports, random *rand.Rand, counts *ledger) *title {
	t := &title{
		loop: ports.Loop, cfg: cfg, ledger: counts, line: newLine(ports.Loop, ports.Origin),
		openedAt: ports.Loop.Now(), timers: map[string]func(){},
	}
	t.statsAt, t.joinBy = t.openedAt, t.openedAt.Add(cfg.JoinAfter)
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
	t.session.start()
	return t
}

func (t *title) set(name string, d time.Duration, f func()) {
	t.clear(name)
	t.timers[name] = t.loop.After(d, func() {
		delete(t.timers, name)
		f()
	})
}

func (t *title) clear(names ...string) {
	for _, name := range names {
		if stop := t.timers[name]; stop != nil {
			stop()
			delete(t.timers, name)
		}
	}
}

// role is what this viewer is in its swarm.
func (t *title) role() string {
	if t.welcomed == nil || t.welcomed.Policy.ControlGroup {
		return "off"
	}
	return t.welcomed.Policy.Role
}

func (t *title) setOff(reason schedule.Reason) {
	if reason == "" {
		reason = t.broken
	}
	t.off = reason
	if t.engine != nil {
		t.engine.setOff(reason)
	}
}

// leaveOut says that peer delivery does not come, as things stand.
func (t *title) leaveOut(reason schedule.Reason, code, text string) {
	if t.off != reason {
		t.notice(code, text)
	}
	t.setOff(reason)
}

// welcome implements sessionEvents.
func (t *title) welcome(m *signal.Welcome) {
	t.welcomed = m
	guessedKey, guessedName := t.key, t.name
	var c site.Config
	err := json.Unmarshal(m.Site, &c)
	if err == nil {
		t.rules, err = site.New(c)
	}
	if err == nil {
		t.key, err = t.rules.Key(t.cfg.URL)
	}
	if err == nil {
		t.name, err = t.rules.Title(t.key, t.cfg.Title)
	}
	if err != nil {
		t.joins++ // the guess was wrong: the answer to a join that went out ahead is nobody's
		t.leaveOut(schedule.ByPolicy, "bad-manifest", "the manifest has no name on the tracker's site: "+err.Error())
		return
	}
	if site.HasCredential(t.cfg.URL) && t.cfg.Token == nil && m.Policy.SignedManifests != site.SignedShare {
		t.leaveOut(schedule.NeedsToken, "needs-token", "the manifest's URL carries a credential, and there is no join token")
		return
	}
	t.applyPolicy()
	t.inform(m.VerifyKeys, m.Revocations)
	if t.ahead && t.key == guessedKey && t.name == guessedName {
		return
	}
	if wait := t.joinBy.Sub(t.loop.Now()); wait > 0 && t.joins == 0 {
		// Links come after the picture. The tracker can name peers meanwhile.
		t.set("begin", wait, t.begin)
		t.join()
		return
	}
	t.joinSoon()
}

// joinSoon joins as soon as the picture allows.
func (t *title) joinSoon() {
	t.set("rejoin", max(0, t.joinBy.Sub(t.loop.Now())), func() {
		t.links.begin()
		t.join()
	})
}

// pictured notes that the first picture is there: links need not wait any longer.
func (t *title) pictured() {
	t.joinBy = time.Time{}
	if t.timers["begin"] != nil {
		t.clear("begin")
		t.begin() // at once: what is asked for next may wait for a seed
	}
	if t.timers["rejoin"] != nil && t.joins == 0 {
		t.joinSoon()
	}
}

func (t *title) applyPolicy() {
	m := t.welcomed
	l := t.links
	l.terms = linkTerms{self: m.Session, role: t.role(), most: min(m.Policy.MaxLinks, m.Limits.Links)}
	for _, s := range m.ICEServers {
		urls := s.URLs[:0:0]
		for _, u := range s.URLs {
			if m.Policy.Relay == site.RelayAllow || !strings.HasPrefix(u, "turn") {
				urls = append(urls, u)
			}
		}
		if len(urls) > 0 {
			l.terms.servers = append(l.terms.servers, ICEServer{URLs: urls, Username: s.Username, Credential: s.Credential})
		}
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
func (t *title) inform(keys []signal.VerifyKey, revocations []signal.Revocation) {
	if t.engine == nil {
		return
	}
	t.engine.offset = t.session.offset
	if keys != nil {
		var list []certificate.VerifyKey
		for _, k := range keys {
			if k.Alg == 1 && len(k.KeyID) == len(certificate.KeyID{}) {
				list = append(list, certificate.VerifyKey{KeyID: certificate.KeyID(k.KeyID), Key: k.Key, Sites: []string{t.rules.Name()}})
			}
		}
		set, err := certificate.NewKeySet(list...)
		if err != nil {
			t.notice("bad-keys", err.Error())
		} else {
			t.engine.keys = set
		}
	}
	var list []certificate.Revocation
	for _, r := range revocations {
		v := certificate.Revocation{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: time.UnixMilli(r.MinIssuedAt)}
		if len(r.KeyID) == len(v.KeyID) {
			v.KeyID = certificate.KeyID(r.KeyID)
		}
		list = append(list, v)
	}
	t.engine.revoke(list)
}

// prefetch is what the site and the device say of fetching ahead. What has no end is not played here.
func (t *title) prefetch() schedule.Ahead {
	d := t.cfg.Device
	return schedule.Ahead{
		Allowed: t.welcomed.Policy.Prefetch && !d.NoPrefetch, WasteBytes: t.welcomed.Policy.WasteBytes, Role: t.role(), Off: t.off != "",
		SaveData: d.SaveData, Metered: d.Metered, Battery: d.Battery,
	}
}

func (t *title) join() {
	t.joins++
	attempt, want, offers := t.joins, t.links.want(), t.cfg.ReadyOffers
	if attempt > 1 || t.links.terms.role == "off" || !t.links.early.begun {
		offers = 0 // links that are there go on, and before the picture there are none
	}
	t.ahead = t.ahead && attempt == 1
	t.links.ready(offers, func(ready []signal.Offer) {
		if attempt == t.joins && !t.closed {
			t.joinWith(ready, attempt, want)
		}
	})
}

func (t *title) joinWith(ready []signal.Offer, attempt, want int) {
	path, _, _ := strings.Cut(t.key, "?")
	ahead := t.ahead
	m := signal.Join{Title: t.name, Manifest: path, Role: t.links.terms.role, Want: want, Range: t.span, Offers: ready, Ahead: ahead}
	t.session.join(m, func(answer *signal.Joined, refusal *signal.Error) {
		switch {
		case attempt != t.joins || t.closed:
			if answer != nil && answer.Swarm != t.swarm {
				t.session.send(&signal.Leave{Swarm: answer.Swarm}, false) // of a title that it is not
			}
		case refusal == nil:
			t.joined(answer)
		case refusal.Code == "lost":
		case ahead && t.welcomed != nil:
			t.joinSoon() // by the rules of the welcome
		default:
			t.notice("tracker-error", "the tracker did not let this viewer join ("+refusal.Code+"): "+refusal.Message)
			if refusal.Code != "bad-title" {
				wait := time.Duration(float64(rejoinAfter) * (0.5 + t.session.random.Float64()))
				t.set("rejoin", max(wait, time.Duration(refusal.RetryAfterMs)*time.Millisecond), t.join)
			}
		}
	})
}

func (t *title) joined(m *signal.Joined) {
	t.swarm, t.viewers, t.seeds = m.Swarm, m.Viewers, m.Seeds
	t.links.offered(m.Offered)
	t.set("update", time.Duration(t.welcomed.UpdateEvery)*time.Millisecond, t.update)
	t.set("stats", time.Duration(t.welcomed.StatsInterval)*time.Millisecond, t.statsTick)
	if t.links.early.begun {
		t.expectLinks()
	}
}

// begin is when links may be made, and the engine that they serve.
func (t *title) begin() {
	if t.swarm.IsZero() {
		t.links.begin()
		return
	}
	t.expectLinks()
	t.links.begin()
}

// expectLinks has an engine for the links that are about to come up.
func (t *title) expectLinks() {
	t.joinedAt = t.loop.Now()
	if t.engine == nil {
		t.engine = &engine{
			loop: t.loop, rules: t.rules, swarm: peer.ID(t.swarm), line: t.line, credit: &t.credit, ledger: t.ledger, observer: t,
			self:    func() peer.ID { return peer.ID(t.welcomed.Session) },
			uploads: func() bool { return t.role() != "leech" }, relayOnly: func() bool { return t.role() == "relay-only" },
			cfg: engineConfig{Policy: t.cfg.Policy, StoreBytes: t.cfg.StoreBytes, Record: t.cfg.Record, Prefetch: t.prefetch, Playhead: t.playhead},
		}
		t.engine.start()
		t.inform(t.welcomed.VerifyKeys, t.welcomed.Revocations)
		t.engine.setOff(t.off)
		for _, b := range t.early {
			t.engine.adopt(b)
		}
		t.early = nil
	}
	t.set("linking", linkGrace, t.setLinking)
	t.setLinking()
}

func (t *title) setLinking() {
	if t.engine == nil {
		return
	}
	fresh := t.loop.Now().Sub(t.joinedAt) < linkGrace && t.role() != "off"
	t.engine.setLinking(t.links.count(true) == 0 && (fresh || t.links.count(false) > 0), t.links.seedComing())
}

func (t *title) update() {
	t.set("update", time.Duration(t.welcomed.UpdateEvery)*time.Millisecond, t.update)
	t.lastWant = t.links.want()
	t.session.send(&signal.Update{
		Swarm: t.swarm, Range: t.span, Saturated: t.lastWant == 0, Links: t.links.count(true), Want: t.lastWant,
	}, false)
}

func (t *title) updateSoon() {
	if t.swarm.IsZero() || t.timers["soon"] != nil || t.closed || t.session.state != sessionReady {
		return
	}
	t.set("soon", updateDebounce, t.update)
}

func (t *title) statsTick() {
	t.set("stats", time.Duration(t.welcomed.StatsInterval)*time.Millisecond, t.statsTick)
	t.sendStats(false)
}

// sendStats reports what was counted since the last time.
func (t *title) sendStats(last bool) {
	if t.swarm.IsZero() || t.session == nil || t.session.state != sessionReady {
		return
	}
	t.observe()
	now := t.loop.Now()
	m := t.ledger.take()
	if t.engine != nil {
		m.Pacing = t.engine.pacing()
	}
	m.Swarm, m.Interval = t.swarm, max(1, now.Sub(t.statsAt).Milliseconds())
	t.statsAt = now
	t.session.send(&m, last)
}

// stop leaves the swarm and lets go of everything.
func (t *title) stop() {
	if t.closed {
		return
	}
	if t.engine != nil {
		t.engine.loseAll()
	}
	t.sendStats(true)
	t.closed = true
	t.joins++
	if t.session != nil && !t.swarm.IsZero() {
		t.session.send(&signal.Leave{Swarm: t.swarm}, true)
	}
	t.clear("update", "stats", "soon", "rejoin", "begin", "linking")
	t.links.stop()
	if t.engine != nil {
		t.engine.stop()
	}
	if t.session != nil {
		t.session.stop()
	}
}
