package viewer

import (
	"encoding/hex"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Defaults of an engine.
const (
	defaultStore    = 64 << 20
	capacityFresh   = time.Minute // an estimate that is older is refreshed at the origin
	longestSleep    = 30 * time.Second
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
	Record     io.Writer // gets every decision, if set
}

// engine is peer delivery of one joined title: the schedule decides, this does. The twin of the library's engine.
type engine struct {
	engineHost
	cfg engineConfig

	epoch    time.Time
	store    *store
	segments segments
	ahead    ahead
	peers    map[string]*remote
	bans     map[string]bool
	uploader *transfer.Uploader
	// requester bounds what is asked for in the background, over all links.
	requester *background.Requester
	pumping   atomic.Bool // a call of pump is on its way
	pumpTimer func()
	paced     struct { // at the last report
		sent  int64
		stats ledbat.Stats
	}

	keys      *certificate.KeySet
	revoked   *certificate.Revocations
	offset    time.Duration // of tracker time
	off       schedule.Reason
	linking   bool
	seedComes bool // one that was introduced may still be linked
	stopped   bool
	zeroUs    int64     // when the presentation's time zero is played: what a start is added to for a deadline
	looked    time.Time // when a segment was last asked of the origin for the estimate's sake
	timer     func()
	due       bool
	stopTick  func()
	vigil     vigil
	driftedAt time.Time // when this side was found adrift last

	compared, contradicted, inRow int

	opened int // links over which hellos were exchanged
	closed map[peer.CloseReason]int
}

// engineHost is what an engine needs of the rest, and what it tells the rest.
type engineHost struct {
	loop      Loop
	rules     *site.Site
	self      func() peer.ID
	swarm     peer.ID
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
	e := &engine{engineHost: host, cfg: cfg}
	e.start()
	return e
}

// nowUs is the schedule's clock. It does not begin at zero, so that no moment looks like never.
func (e *engine) nowUs() int64 { return e.usOf(e.loop.Now()) }

func (e *engine) usOf(t time.Time) int64 { return t.Sub(e.epoch).Microseconds() + 1_000_000 }

func (e *engine) start() {
	e.segments = segments{rules: e.rules, byID: map[string]*seg{}}
	e.peers, e.bans = map[string]*remote{}, map[string]bool{}
	e.epoch = e.loop.Now()
	e.uploader = transfer.NewUploader(e.loop.Now)
	e.uploader.MostQueued, e.uploader.Share = mostQueued, queueShare
	sender := background.NewSender(ledbat.Config{}, e.loop.Now)
	sender.Awake, e.uploader.Wake = e.pumpSoon, e.pumpSoon
	e.uploader.Background, e.uploader.Paced = sender, true // a home's uplink carries its own requests, too
	e.line.took = e.fetched
	e.requester = background.NewRequester(ledbat.Config{}, e.loop.Now)
	e.store = newStore(e.cfg.StoreBytes, func(id string) bool {
		s := e.segments.byID[id]
		return s != nil && s.wanted()
	}, e.evicted)
	e.ahead = ahead{kept: map[string]*seg{}, coming: map[int][]*seg{}}
	e.revoked, e.closed = &certificate.Revocations{}, map[peer.CloseReason]int{}
	e.tick()
}

// tick keeps links alive and ends silent ones.
func (e *engine) tick() {
	e.listen()
	for _, r := range e.peersInOrder() {
		r.session.Tick()
	}
	e.stopTick = e.loop.After(tickEvery, e.tick)
}

// pump sends what links and the law of the host let go.
func (e *engine) pump() {
	if e.stopped {
		return
	}
	if e.pumpTimer != nil {
		e.pumpTimer()
		e.pumpTimer = nil
	}
	if wait := e.uploader.Work(); wait < longestSleep {
		e.pumpTimer = e.loop.After(wait, e.pump)
	}
}

// pacing is how sending stands under the law; nil if nothing was sent since the last time.
func (e *engine) pacing() *signal.Pacing {
	sent, _ := e.uploader.Background.Totals()
	if sent == e.paced.sent {
		return nil
	}
	now, was := e.uploader.Background.Stats(), e.paced.stats
	e.paced.sent, e.paced.stats = sent, now
	return &signal.Pacing{
		Queuing: now.Queuing, Base: now.Base, Target: now.Target, Window: now.Window, Rate: now.PacingRate,
		Yields: now.Yields - was.Yields, Slowdowns: now.Slowdowns - was.Slowdowns,
	}
}

// pumpSoon has pump called, from any goroutine.
func (e *engine) pumpSoon() {
	if !e.pumping.Swap(true) {
		e.loop.Post(func() {
			e.pumping.Store(false)
			e.pump()
		})
	}
}

func (e *engine) evicted(id string) {
	e.lose(id)
	e.announce(id)
}

func (e *engine) announce(id string) {
	if e.uploads() {
		for _, r := range e.peersInOrder() {
			r.announce(id)
		}
	}
}

// announcement is what to tell of a segment; ok is false if nothing is held of it.
func (e *engine) announcement(id string) (entry peer.HaveEntry, ok bool) {
	_, _ = hex.Decode(entry.Segment[:], []byte(id))
	held := e.store.get(id)
	if held == nil || !e.uploads() {
		return entry, false
	}
	entry.Pieces = uint16(len(held.pieces))
	if held.complete() {
		entry.State = peer.HoldsComplete
		return entry, true
	}
	s := e.segments.byID[id]
	if held.count == 0 && (s == nil || !s.wanted()) {
		return entry, false
	}
	entry.State, entry.Bitmap = peer.HoldsPartial, slices.Clone(held.bitmap)
	return entry, true
}

// changed coalesces what happens in one turn of the loop into one decision.
func (e *engine) changed() {
	if e.due || e.stopped {
		return
	}
	e.due = true
	e.loop.Post(e.run)
}

func (e *engine) cancelDownloads(s *seg) {
	for _, r := range e.peersInOrder() {
		r.download.Cancel(func(o transfer.Order) bool { return o.Target.Segment == peer.ID(s.key) })
	}
}

// background says whether anything may be asked for before the player does.
func (e *engine) background() bool { return e.cfg.Prefetch != nil && e.cfg.Prefetch().Possible() }

// greeting is what this viewer says first on a link that it answers: who it is, and what it has, as far as an answer takes
// it, and the certificates of what the other side wants. held is which segments that names as held.
func (e *engine) greeting(link transfer.Link, wanted []signal.ID) (said []signal.Bytes, held []string) {
	first := []peer.Message{e.hello(link)}
	var have peer.Have
	size := haveHeader
	for _, id := range e.store.ids() {
		entry, ok := e.announcement(id)
		size += haveEntry + len(entry.Bitmap)
		if size > signal.MaxSaidBytes || len(have.Entries) == maxEntries {
			break
		}
		if ok {
			have.Entries, held = append(have.Entries, entry), append(held, id)
		}
	}
	if len(have.Entries) > 0 {
		first = append(first, have)
	}
	for _, id := range wanted {
		s := e.segments.byID[hex.EncodeToString(id[:])]
		if s == nil || s.cert == nil {
			continue
		}
		if raw := s.cert.Bytes(); len(raw) <= transfer.MostShown {
			first = append(first, peer.Certificate{Segment: peer.ID(id), Raw: raw})
		}
	}
	return transfer.Say(first...), held
}

// Bytes of a have, and of each entry in it without its bitmap; and the most entries.
const (
	haveHeader = 2
	haveEntry  = 19
	maxEntries = 255
)

// hello is this viewer's on a link.
func (e *engine) hello(link transfer.Link) peer.Hello {
	hello := peer.Hello{MinVersion: 1, MaxVersion: peer.Version, MaxRequests: ownMaxRequests, Peer: e.self(), Swarm: e.swarm}
	if !e.uploads() {
		hello.Flags = peer.NoUpload
	}
	if _, acks := link.(background.Link); acks {
		hello.Flags |= peer.AcksBackground
	}
	return hello
}

// addLink takes over a link that has opened. greeted is what was said of it with an answer of ours, if anything was.
func (e *engine) addLink(id peer.ID, role schedule.Role, link transfer.Link, greeted *greeted) *remote {
	key := hex.EncodeToString(id[:])
	if e.stopped || e.bans[key] {
		link.Close(peer.ClosePolicy, bye(peer.ByePolicy))
		return nil
	}
	if old := e.peers[key]; old != nil {
		old.session.End(peer.CloseClosed, peer.ByeReplaced)
		e.linkEnded(old, peer.CloseClosed)
	}
	r := newRemote(e, id, role, link)
	e.peers[key] = r
	if greeted != nil {
		r.session.Said, r.dirty = true, greeted.held
		for _, id := range greeted.held {
			r.announced[id] = true
		}
	}
	r.session.Open()
	return r
}

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
	e.closed[reason]++
	if e.peers[r.id] == r {
		delete(e.peers, r.id)
	}
	if slices.Contains(blameworthy, reason) && !e.stopped {
		e.bans[r.id] = true
		e.ledger.blamed(r.id)
		e.banned(r.id)
	}
	e.certifierGone(r)
	e.changed()
}

// peersInOrder lists the peers by ID: what is done to several is done in one order, so that a run can be repeated.
func (e *engine) peersInOrder() []*remote {
	ids := make([]string, 0, len(e.peers))
	for id := range e.peers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	out := make([]*remote, len(ids))
	for i, id := range ids {
		out[i] = e.peers[id]
	}
	return out
}

func (e *engine) setLinking(first, seed bool) {
	if e.linking != first || e.seedComes != seed {
		e.linking, e.seedComes = first, seed
		e.changed()
	}
}

func (e *engine) setOff(reason schedule.Reason) {
	if e.off != reason {
		e.off = reason
		e.changed()
	}
}

// turnOff ends peer delivery of the title for what was seen in it.
func (e *engine) turnOff(reason schedule.Reason) {
	if e.off == "" {
		e.setOff(reason)
		e.turnedOff(reason)
	}
}

// stop closes links and forgets pieces. What the player waits for still comes, from the origin.
func (e *engine) stop() {
	if e.stopped {
		return
	}
	e.loseAll()
	e.stopped = true
	e.stopTick()
	if e.timer != nil {
		e.timer()
	}
	for _, stop := range []func(){e.pumpTimer, e.ahead.timer} {
		if stop != nil {
			stop()
		}
	}
	for _, s := range e.segments.all() {
		if s.wanted() {
			e.startOrigin(s, schedule.ByPolicy)
		}
	}
	for _, r := range e.peersInOrder() {
		r.session.End(peer.CloseShutdown, peer.ByeLeaving)
		e.linkEnded(r, peer.CloseShutdown)
	}
	for _, id := range e.store.ids() {
		e.store.drop(id)
	}
}
