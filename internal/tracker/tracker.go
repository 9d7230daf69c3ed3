package tracker

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/courier"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

const (
	// requestTimeout bounds a request to another replica, which is made twice before it counts as silent.
	requestTimeout = 700 * time.Millisecond
	// learnTimeout bounds the question for what a replica has to know at its start.
	learnTimeout = 2 * time.Second
	// turns is in how many parts of a beat sessions are looked after: not all of them speak at the same moment.
	turns = 8
)

// Tracker is one replica.
type Tracker struct {
	cfg      Config
	id       signal.ID
	started  time.Time
	bus      Bus
	tickets  *ticketer
	swarmKey []byte
	addrKey  []byte
	sites    map[string]*configured.Site

	roster  *roster
	home    *home
	courier *courier.Courier[parcel, *bus.Delivery]
	guests  guests
	prober  *prober
	revoked revocations
	trials  *trials
	learned *learned
	trust   atomic.Int64 // counts changes of keys and revocations, before sessions are told

	switches switches

	subjects   subjects
	subjectKey []byte // of hashes: what a backend calls its viewers stays off the bus

	draining atomic.Bool
	handing  atomic.Bool  // viewers over, to other trackers
	turning  atomic.Int64 // sockets that are being told that there is no room
	cancel   context.CancelFunc
	wg       sync.WaitGroup // the ticker and every served session
	subs     []func()
	// keptUntil is when this tracker stops to take revocations from seeds; zero: it found another tracker. Set before onKept is called.
	keptUntil time.Time

	mu        sync.Mutex
	sessions  map[signal.ID]*session    // guarded by mu
	sockets   int                       // guarded by mu: being served, those without a session yet among them
	addresses map[netip.Prefix]*address // guarded by mu: by network, and in IPv6 by the wider one too; emptied of the idle by the ticker

	torrentSockets map[*torrentSession]struct{} // guarded by mu; part of sockets
	closed         bool                         // guarded by mu

	hashes          map[webtorrent.ID]struct{} // that may be announced; nil: any
	torrents        torrents
	torrentCounts   torrentCounts
	torrentsExpired time.Time // only the ticker
}

// address is what comes from one network: an address, or a /64 in IPv6 and beside it the /48 around that. Guarded by Tracker.mu.
type address struct {
	connects budget
	sockets  int
	share    int      // of budgets: how many times what one address may
	wide     *address // around it; nil in IPv4, and for one that is wide itself
}

// New starts a tracker on a bus. Close ends it.
func New(cfg Config, b Bus) (*Tracker, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	tickets, err := newTicketer(cfg.derive("tickets"))
	if err != nil {
		return nil, err
	}
	t := &Tracker{
		cfg: cfg, id: newID(), started: cfg.Now(), bus: b, tickets: tickets,
		swarmKey: cfg.derive("swarms"), addrKey: cfg.derive("addresses"), subjectKey: cfg.derive("subjects"),
		sites: map[string]*configured.Site{}, sessions: map[signal.ID]*session{}, addresses: map[netip.Prefix]*address{},
		torrentSockets: map[*torrentSession]struct{}{}, hashes: map[webtorrent.ID]struct{}{},
	}
	for _, s := range cfg.Sites {
		t.sites[s.Name()] = s
		t.Configure(s.Name(), s.Config().Off)
	}
	for _, h := range cfg.WebTorrent.InfoHashes {
		t.hashes[h] = struct{}{}
	}
	t.roster = newRoster(t.id, cfg)
	t.learned = newLearned(cfg)
	t.home = newHome(t)
	t.prober = newProber(cfg.Probe)
	t.trials = newTrials(cfg.Sites)
	t.subjects.sessions = map[signal.ID]map[signal.ID]entry{}
	t.courier = newCourier(t)
	t.guests.own, t.guests.guest, t.guests.stale = map[uint64]*torrentSession{}, map[guestKey]*torrentSession{}, map[signal.ID]time.Time{}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	if err := t.subscribe(ctx); err != nil {
		cancel()
		t.unsubscribe()
		return nil, err
	}
	t.wg.Go(func() { t.courier.Run(ctx) })
	t.wg.Go(func() { t.tick(ctx) })
	return t, nil
}

// ID names this replica.
func (t *Tracker) ID() signal.ID { return t.id }

// Ready says whether new viewers are welcome, and if not why.
func (t *Tracker) Ready() error {
	if t.draining.Load() {
		return errors.New("tracker: draining")
	}
	return nil
}

func (t *Tracker) subscribe(ctx context.Context) error {
	for _, on := range []struct {
		subject string
		f       func([]byte, func([]byte) error)
	}{
		{bus.SubjectHome(t.id), t.home.onRequest},
		{bus.SubjectDeliver(t.id), t.onDelivery},
		{bus.SubjectAck(t.id), t.onAck},
		{bus.SubjectSeedSignal(t.id), t.onSeedSignal},
		{bus.SubjectSeedAck(t.id), t.onSeedAck},
		{bus.SubjectProbe(t.id), t.onProbe},
		{bus.SubjectRevoke, t.onRevoke},
		// Revocations are learnt once new ones are heard, or one that comes in between is lost; and before others are told of
		// them, who would take nothing for an answer.
		{bus.SubjectRevokeList, t.onRevokeList},
		{bus.SubjectRevokeKept, t.onKept},
		{bus.SubjectSeedBeat, t.onSeedBeat},
		{bus.SubjectTrial, t.onTrial},
		// The last: a beat heard is answered, and whoever hears that sends members home.
		{bus.SubjectTrackerBeat, t.onTrackerBeat},
	} {
		if on.subject == bus.SubjectRevokeList {
			t.learnRevocations(ctx)
		}
		stop, err := t.bus.Subscribe(on.subject, func(_ string, data []byte, reply func([]byte) error) { on.f(data, reply) })
		if err != nil {
			return err
		}
		t.subs = append(t.subs, stop)
	}
	return nil
}

func (t *Tracker) unsubscribe() {
	for _, stop := range t.subs {
		stop()
	}
	t.subs = nil
}

// tick beats, and does what is due: expiring members, naming titles to seeds, registering sessions with new homes.
func (t *Tracker) tick(ctx context.Context) {
	every := time.NewTicker(t.cfg.BeatEvery / turns)
	defer every.Stop()
	t.beat(false)
	up := t.bus.Connected()
	for turn := 1; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		was := up
		if up = t.bus.Connected(); up && !was || turn%turns == 0 {
			t.beat(false) // at once when the bus is back: others have taken this tracker for dead
		}
		if turn%turns == 0 {
			t.maintain()
		}
		now := t.cfg.Now()
		for _, s := range t.sessionsOf(turn % turns) {
			s.maintain(now)
		}
	}
}

// maintain does what time brings, once a beat.
func (t *Tracker) maintain() {
	now := t.cfg.Now()
	t.roster.expire(now)
	t.home.maintain(now)
	t.subjects.expire(now.Add(-3 * t.cfg.UpdateInterval))
	t.courier.Maintain()
	t.learned.forget(now)
	t.maintainTorrents(now)
	t.maintainTrials(now)
	t.shed()
	t.cfg.Metrics.Set(defTrackers, float64(t.roster.live()))
	t.repeat(now)
	t.settle(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	for a, of := range t.addresses {
		if of.sockets == 0 && t.connects(of, now) >= t.mostConnects(of) {
			delete(t.addresses, a)
		}
	}
}

func (t *Tracker) beat(gone bool) {
	t.mu.Lock()
	n := len(t.sessions)
	t.mu.Unlock()
	t.publish(bus.SubjectTrackerBeat, &bus.TrackerBeat{
		Tracker: t.id, StartedMs: t.started.UnixMilli(), Sessions: n, Draining: t.draining.Load(), Gone: gone,
	})
}

// homeOf is the tracker that a swarm, or a part of one, has its home at: this one while there is no bus to another.
func (t *Tracker) homeOf(key signal.ID) signal.ID {
	if !t.bus.Connected() {
		return t.id
	}
	return t.roster.homeOf(key)
}

// publish sends a message. What cannot be sent is logged, for everything on the bus is said again or asked again; while the bus
// is lost nothing is, for it would be said when it is not true any more.
func (t *Tracker) publish(subject string, m bus.Message) {
	if !t.bus.Connected() {
		return
	}
	b, err := bus.Encode(m)
	if err == nil {
		err = t.bus.Publish(subject, b)
	}
	if err != nil {
		t.cfg.Log.Warn("bus message not sent", "kind", bus.Kind(subject), "error", err)
	}
}

// Close drains and returns when nothing of the tracker runs any more.
func (t *Tracker) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.Drain()
	t.beat(true)
	t.cancel()
	t.unsubscribe()
	t.wg.Wait()
	return nil
}

func (t *Tracker) snapshot() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*session, 0, len(t.sessions))
	for _, s := range t.sessions {
		all = append(all, s)
	}
	return all
}

// sessionsOf are those that have the n-th of turns.
func (t *Tracker) sessionsOf(n int) []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*session, 0, len(t.sessions)/turns)
	for id, s := range t.sessions {
		if int(id[0])%turns == n {
			all = append(all, s)
		}
	}
	return all
}

func (t *Tracker) torrentSnapshot() []*torrentSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.torrentSockets))
}

func (t *Tracker) session(id signal.ID) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessions[id]
}

// admit says whether one more socket may come from an address, and if not under which reason it is counted. What it let in
// ends with leave.
func (t *Tracker) admit(a netip.Addr) (of *address, reason string) {
	now := t.cfg.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.draining.Load() || t.sockets >= t.cfg.MaxSessions {
		return nil, "total"
	}
	if of = t.addressOf(a, now); of == nil {
		return nil, "total"
	}
	if !t.begins(of, now) {
		return nil, "rate"
	}
	for n := of; n != nil; n = n.wide {
		if n.sockets >= n.share*t.cfg.MaxPerAddress {
			return nil, "rate"
		}
	}
	for n := of; n != nil; n = n.wide {
		n.sockets++
	}
	t.sockets++
	t.wg.Add(1)
	return of, ""
}

func (t *Tracker) leave(of *address) {
	t.mu.Lock()
	for n := of; n != nil; n = n.wide {
		n.sockets--
	}
	t.sockets--
	t.mu.Unlock()
	t.wg.Done()
}

// AllowsOrigin says whether any site takes pages of this origin; which one is settled by hello.
func (t *Tracker) AllowsOrigin(origin string) bool {
	return slices.ContainsFunc(t.cfg.Sites, func(s *configured.Site) bool { return s.AllowsOrigin(origin) })
}

// Rejected counts a handshake that was refused before there was a session: reason is origin, version or token.
func (t *Tracker) Rejected(reason string) { t.cfg.Metrics.Add(defRejected, 1, reason) }

// swarmID is computable by trackers only, so that nobody can ask for a swarm without naming its title.
func (t *Tracker) swarmID(site, title string) signal.ID {
	return keyed(t.swarmKey, site, title)
}

// keyed is an ID of something that a site has, which nobody computes without the key.
func keyed(key []byte, site, name string) signal.ID {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(site))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return signal.ID(h.Sum(nil)[:16])
}

// hashed is an address, or its subnet of so many bits, as replicas may know it.
func (t *Tracker) hashed(a netip.Addr, bits4, bits6 int) string {
	if !a.IsValid() {
		return ""
	}
	bits := bits6
	if a.Is4() {
		bits = bits4
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	h := hmac.New(sha256.New, t.addrKey)
	h.Write([]byte(p.String()))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

func newID() signal.ID {
	var id signal.ID
	_, _ = rand.Read(id[:]) // never fails
	return id
}
