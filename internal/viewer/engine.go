package viewer

import (
	"encoding/hex"
	"io"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Defaults of an engine.
const (
	defaultStore    = 64 << 20
	mostUncertified = 4 // origin responses kept for a certificate to come
	tickEvery       = time.Second
)

// engineConfig says how an engine behaves.
type engineConfig struct {
	Policy   schedule.Policy
	Prefetch func() schedule.Ahead // as the site and the viewer's device have it; nil: nothing is fetched ahead
	// Playhead tells where the player is, and what it has ahead of that.
	Playhead   func() (position, buffered time.Duration)
	StoreBytes int64
	Parts      bool      // it speaks parts of low-latency streams
	Record     io.Writer // gets every decision, if set
}

// engine is peer delivery of one joined title: the schedule decides, this does. The twin of the library's engine.
type engine struct {
	host engineHost
	*shared
	cfg          engineConfig
	pacing       *pacing
	freshness    freshness
	view         view
	ahead        *lookAhead
	verification *verification
	loads        *loads
	executor     executor
	silence      silence
	greeting     greeting
	slowCredit   slowCredit

	coming linksComing
	turn   turn
}

// linksComing says whether a first link may still come up, and one to a seed that was introduced.
type linksComing struct{ first, seed bool }

// engineHost is what an engine needs of the rest, and what it tells the rest.
type engineHost struct {
	loop      Loop
	rules     *site.Site
	self      func() swarm.ID
	swarm     swarm.ID
	uploads   func() bool
	relayOnly func() bool // viewers meet by relays alone
	line      *line
	credit    *credit
	ledger    *ledger

	banned    func(peer string)     // this peer is not to be linked again in this session
	unheard   func(peer string)     // nothing comes from this peer that should
	adrift    func()                // nothing comes from any peer, so this side's own network has changed
	awoke     func()                // this side did not run for a while
	turnedOff func(schedule.Reason) // peer delivery of the title is off, by the engine's own judgment
	notice    func(code, text string)
}

func newEngine(host engineHost, cfg engineConfig) *engine {
	e := &engine{host: host, cfg: cfg, pacing: newPacing(host.loop), turn: turn{loop: host.loop}}
	e.turn.decide = e.decide
	e.shared = &shared{
		loop: host.loop, epoch: host.loop.Now(), ledger: host.ledger, line: host.line, peers: newPeers(),
		segments: &segments{rules: host.rules, byID: map[string]*seg{}}, changed: e.turn.changed,
	}
	e.store = newStore(cfg.StoreBytes, func(id string) bool {
		s := e.segments.byID[id]
		return s != nil && s.wanted()
	}, e.evicted)
	e.line.took = e.pacing.fetched
	e.freshness = freshness{shared: e.shared}
	e.ahead = &lookAhead{
		shared: e.shared, rules: cfg.Prefetch, playhead: cfg.Playhead, dated: e.freshness.dated, requester: e.pacing.requester,
		kept: map[string]*seg{}, coming: map[int][]*seg{},
	}
	signedLists := &lists{shared: e.shared, byURL: map[string]*signed{}}
	e.view = view{
		shared: e.shared, policy: cfg.Policy, self: host.self, relayOnly: host.relayOnly, listed: e.ahead.listed,
		packaged: signedLists.packaged,
	}
	e.verification = &verification{
		shared: e.shared, site: host.rules.Name(), revoked: &certificate.Revocations{}, suspects: map[*remote]*suspect{}, accepted: e.accepted, cameAhead: e.ahead.came,
		withdrawn: e.withdrawn, drop: e.drop, turnOff: e.turnOff, lists: signedLists,
	}
	signedLists.counts, signedLists.came = e.verification.counts, e.verification.listed
	signedLists.wanted = func() bool { return host.uploads() && e.verification.keys.Packagers(e.verification.site) }
	e.loads = &loads{
		shared: e.shared, credit: host.credit, fromOrigin: e.verification.origin, played: e.ahead.played, lost: e.ahead.lose, released: e.announce,
		accepted: func(s *seg, n int, data []byte) { e.accepted(s, n, data, nil, "") }, streams: e.newStreams(),
	}
	e.executor = executor{shared: e.shared, loads: e.loads, ahead: e.ahead, announce: e.announce, wake: e.turn.wake}
	e.greeting = greeting{store: e.store, segments: e.segments, self: host.self, swarm: host.swarm, uploads: host.uploads, parts: cfg.Parts}
	e.silence = silence{shared: e.shared, unheard: host.unheard, adrift: host.adrift, awoke: host.awoke}
	e.slowCredit = newSlowCredit(host.credit, e.loop.Now())
	e.silence.tick()
	return e
}

func (e *engine) newStreams() *streams {
	s := &streams{
		shared: e.shared, self: e.host.self, uploads: e.host.uploads, drop: e.drop, fresh: &e.freshness, tracks: map[int]*followed{},
		capped: e.pacing.uploader.Background.Kbps,
		certs: &partCertificates{
			shared: e.shared, site: e.host.rules.Name(), figures: &e.verification.lists.figures,
			wanted: func() bool { return e.sharing() && e.verification.lists.wanted() },
			verify: func(c *certificate.Certificate) error {
				v := e.verification
				return v.keys.Verify(c, v.site, c.Name, v.now(), v.revoked)
			},
		},
		agrees: e.verification.agreement.agrees, differs: e.verification.contradicted,
	}
	s.chunks = chunkLoads{streams: s, server: e.verification.now, ended: e.verification.ended, keep: e.keep}
	return s
}

func (e *engine) evicted(id string) {
	e.ahead.lose(id)
	e.announce(id)
}

// withdrawn lets go of what is held of a segment.
func (e *engine) withdrawn(s *seg) {
	e.ahead.lose(s.id)
	e.store.drop(s.id)
	e.peers.cancel(s)
	e.announce(s.id) // before the rejects: a peer that refuses what it still announces is a liar
	e.peers.withdraw(s)
}

func (e *engine) announce(id string) {
	if e.host.uploads() {
		e.peers.announce(id, false)
	}
}

// decide has the schedule decide, and does it.
func (e *engine) decide() {
	e.ahead.look()
	in := e.view.input(schedule.Input{
		Linking: e.coming.first, SeedLinking: e.coming.seed, CreditUs: e.host.credit.leftUs(e.loop.Now()), SlowCreditUs: e.slowCredit.leftUs(e.loop.Now()),
	}, e.ahead.running)
	actions := schedule.Decide(in)
	if e.cfg.Record != nil {
		if err := schedule.Record(e.cfg.Record, in, actions); err != nil {
			e.cfg.Record = nil
			e.host.notice("record", err.Error())
		}
	}
	e.executor.execute(in.NowUs, actions)
	all, now := e.segments.all(), e.loop.Now()
	waiting := slices.ContainsFunc(all, func(s *seg) bool { return s.wanted() && s.origin == schedule.OriginIdle })
	e.host.credit.settle(now, waiting)
	e.slowCredit.settle(now, waiting, !slices.ContainsFunc(all, (*seg).wanted))
}

// load begins what the player asks for. done comes once, later, unless it is aborted.
func (e *engine) load(r request, done func(*Result, error)) *load {
	l := &load{request: r, done: done, started: e.loop.Now()}
	e.view.asked(r)
	s, err := e.segments.resolve(r.Reference, r.bitrate)
	if err != nil || e.stopped {
		// Not one of the site's segments, or no swarm any more: plain HTTP.
		if err != nil {
			s = newSeg(r.Reference, r.bitrate)
		}
		l.seg = s
		s.loads = append(s.loads, l)
		e.loads.startOrigin(s, schedule.ByPolicy)
		return l
	}
	e.loads.ask(s, l)
	s.playlist = r.playlist
	e.verification.lists.asked(s)
	if s.wanted() && e.freshness.stale(r.adaptive, r.bitrate, sizeGuess(r.bitrate, r.Reference), func() bool { return e.view.relaxed(s) }) {
		e.loads.startOrigin(s, schedule.ByPolicy)
	}
	e.follow(r)
	e.changed()
	return l
}

// follow notes the segments that come next, and forgets what nothing needs any more.
func (e *engine) follow(r request) {
	var coming []*seg
	for _, ref := range r.upcoming {
		if s, err := e.segments.resolve(ref, r.bitrate); err == nil {
			coming = append(coming, s)
		}
	}
	e.ahead.asked(r, coming)
	var uncertified []*seg
	for _, s := range e.segments.all() {
		if s.uncertified != nil {
			uncertified = append(uncertified, s)
		}
	}
	for _, s := range uncertified[:max(0, len(uncertified)-mostUncertified)] {
		s.uncertified = nil
	}
	next := e.ahead.next()
	e.segments.prune(func(s *seg) bool {
		return s.wanted() || slices.Contains(next, s) || e.store.get(s.id) != nil || s.disputed != nil
	})
}

// accepted stores a piece that passed. from is nil for one of the origin.
func (e *engine) accepted(s *seg, n int, data []byte, from *remote, why string) {
	if from != nil {
		e.line.others(len(data))
		e.host.credit.proven = true
	}
	e.store.open(s.id, s.cert.Length)
	if !e.store.put(s.id, n, data) {
		e.ledger.duplicate(len(data))
		e.changed()
		return
	}
	s.sources[n] = FromOrigin
	if from != nil {
		s.sources[n] = sourceFrom(from.role)
		from.patience.brought()
		e.ledger.received(from.id, from.role, from.path, len(data))
		if from.role == schedule.Seed && s.pieceReason == "" {
			s.pieceReason = schedule.Urgent
			if why == schedule.WhyNear || why == schedule.WhyBackground {
				s.pieceReason = schedule.NoHolder
			}
		}
		e.peers.outdone(s, n)
	}
	whole := e.store.get(s.id).complete()
	if e.host.uploads() {
		e.peers.announce(s.id, whole && e.view.live)
	}
	if whole {
		e.loads.finish(s)
	}
	e.changed()
}

// adopt takes what the origin sent before the engine was there.
func (e *engine) adopt(b bypassed) {
	s, err := e.segments.resolve(b.ref, b.bitrate)
	if err != nil || s.disputed != nil || !e.sharing() || e.store.get(s.id).complete() {
		return
	}
	s.playlist = b.playlist
	e.verification.lists.asked(s)
	e.verification.origin(s, b.data)
	e.changed()
}

func (e *engine) drop(r *remote, reason peer.CloseReason, why peer.ByeReason) {
	r.session.End(reason, why)
	e.linkEnded(r, reason)
}

// addLink takes over a link that has opened. greeted is what was said of it with an answer of ours, if anything was.
func (e *engine) addLink(id swarm.ID, role schedule.Role, link transfer.Link, greeted *greeted) *remote {
	key := hex.EncodeToString(id[:])
	if e.stopped || e.peers.bans[key] {
		link.Close(peer.ClosePolicy, bye(peer.ByePolicy))
		return nil
	}
	if old := e.peers.byID[key]; old != nil {
		old.session.End(peer.CloseClosed, peer.ByeReplaced)
		e.linkEnded(old, peer.CloseClosed)
	}
	r := newRemote(e, id, role, link)
	e.peers.byID[key] = r
	if greeted != nil {
		r.session.Said = true
		r.announcer.said(greeted.held)
	}
	r.session.Open()
	return r
}

// sharesParts says whether peers push parts to this viewer.
func (e *engine) sharesParts() bool { return e.cfg.Parts && e.sharing() }

func bye(reason peer.ByeReason) []byte {
	b, _ := peer.Append(nil, peer.Bye{Reason: reason})
	return b
}

// blameworthy are the ends of a link that only a peer's misbehavior brings about.
var blameworthy = []peer.CloseReason{peer.CloseProtocol, peer.CloseBadPiece, peer.CloseFalse, peer.CloseLimit}

// linkEnded forgets a peer, however its link came to end.
func (e *engine) linkEnded(r *remote, reason peer.CloseReason) {
	if r.gone {
		return
	}
	r.ended()
	e.loads.streams.gone(r)
	e.peers.remove(r, reason)
	if slices.Contains(blameworthy, reason) && !e.stopped {
		e.peers.bans[r.id] = true
		e.ledger.blamed(r.id)
		e.host.banned(r.id)
	}
	e.verification.gone(r)
	e.changed()
}

func (e *engine) setLinking(first, seed bool) {
	if coming := (linksComing{first, seed}); e.coming != coming {
		e.coming = coming
		e.changed()
	}
}

func (e *engine) setOff(reason schedule.Reason) {
	if e.off != reason {
		e.off = reason
		if reason != "" {
			e.rest()
		}
		e.changed()
	}
}

// rest ends what goes on beside the player's requests: streams are left, and no list is loaded.
func (e *engine) rest() {
	e.loads.streams.leaveAll()
	e.verification.lists.stop()
}

// turnOff ends peer delivery of the title for what was seen in it.
func (e *engine) turnOff(reason schedule.Reason) {
	if e.off == "" {
		e.setOff(reason)
		e.host.turnedOff(reason)
	}
}

// stop closes links and forgets pieces. What the player waits for still comes, from the origin.
func (e *engine) stop() {
	if e.stopped {
		return
	}
	e.ahead.loseAll()
	e.stopped = true
	e.rest()
	e.silence.stopTick()
	e.pacing.stop()
	e.ahead.stop()
	e.turn.stop()
	for _, s := range e.segments.all() {
		if s.wanted() {
			e.loads.startOrigin(s, schedule.ByPolicy)
		}
	}
	for _, r := range e.peers.inOrder() {
		r.session.End(peer.CloseShutdown, peer.ByeLeaving)
		e.linkEnded(r, peer.CloseShutdown)
	}
	for _, id := range e.store.ids() {
		e.store.drop(id)
	}
}
