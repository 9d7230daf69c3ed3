package seed

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/courier"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	beatEvery   = 2 * time.Second
	tickEvery   = time.Second
	drainWait   = 3 * time.Second // for farewells and links to end
	originConns = 16              // concurrent requests to one site's origin
)

// Service is one seed. New makes it, Run works it until its context ends.
type Service struct {
	cfg       Config
	bus       Bus
	links     Links
	id        signal.ID
	sites     map[string]*siteState
	store     *store
	loads     *loads
	verifiers *verifiers
	uploader  *transfer.Uploader
	scope     *scope
	budgets   sync.Mutex
	accounts  map[accountID]*account // guarded by budgets
	courier   *courier.Courier[*bus.Signal, *bus.SeedDelivery]
	fleet     *fleet
	asking    chan struct{} // bounds the questions to siblings
	warm      chan struct{} // closed once viewers may come, for all that siblings have to give
	demand    *demand
	catalog   *catalog
	tolls     *tolls
	places    *places
	outside   *reach
	keeping   sync.Mutex // held while revocations are written to disk
	wg        sync.WaitGroup
	ctx       context.Context // of the flights; ends with Run
	stop      context.CancelFunc

	mu         sync.Mutex
	stopping   bool                     // guarded by mu: nothing new begins
	titles     map[peer.ID]*title       // guarded by mu; by swarm
	viewers    map[signal.ID]*viewer    // guarded by mu; by link
	trackers   map[signal.ID]time.Time  // guarded by mu; when they last beat
	signer     *signer                  // guarded by mu
	revoked    *certificate.Revocations // guarded by mu
	switches   cluster.Switches         // guarded by mu
	configured map[string]bool          // guarded by mu: sites that the configuration has off
	newcomers  bool                     // guarded by mu: trackers were heard of that may not know what is revoked
	flights    map[segment.ID]*flight   // guarded by mu: for viewers, wherever a segment comes from
	pulls      map[segment.ID]*flight   // guarded by mu: from the origin
	failures   map[segment.ID]failure   // guarded by mu
	ledger     map[segment.ID]issued    // guarded by mu
}

// siteState is a site with its budget and the bound on its origin's load.
type siteState struct {
	rules   *site.Site
	origin  Origin
	name    string
	scope   *scope
	conns   chan struct{}
	service *Service
}

// New makes a seed: it reads or makes the key and indexes the store. Errors name what to mend.
func New(cfg Config, b Bus, links Links) (*Service, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	signer, err := loadSigner(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, bus: b, links: links, signer: signer, configured: map[string]bool{},
		sites: map[string]*siteState{}, uploader: transfer.NewUploader(cfg.Now), scope: newScope("seed", cfg.Rate, cfg.BytesDaily),
		accounts: map[accountID]*account{}, titles: map[peer.ID]*title{}, viewers: map[signal.ID]*viewer{}, trackers: map[signal.ID]time.Time{},
		verifiers: newVerifiers(), asking: make(chan struct{}, maxAsking), warm: make(chan struct{}), demand: newDemand(),
		revoked: &certificate.Revocations{}, flights: map[segment.ID]*flight{}, pulls: map[segment.ID]*flight{}, failures: map[segment.ID]failure{}, ledger: map[segment.ID]issued{},
	}
	s.uploader.Background = background.NewSender(ledbat.Config{}, cfg.Now)
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.catalog, s.tolls = newCatalog(s, cfg.IndexBytes, cfg.MaxTitles), newTolls(cfg.Now)
	s.places = newPlaces(cfg.MaxLinks, cfg.Now)
	if _, err := rand.Read(s.id[:]); err != nil {
		return nil, fmt.Errorf("seed: make an ID: %w", err)
	}
	s.fleet = newFleet(cfg.Fleet, s.id)
	if cfg.Fleet == nil || cfg.Fleet.WarmUp == nil {
		close(s.warm)
		cfg.Metrics.Set(mWarm, 1)
	}
	s.courier = s.newCourier()
	s.outside = newReach(cfg.Outside, cfg.Bell)
	var names []string
	for _, c := range cfg.Sites {
		name := c.Site.Name()
		names = append(names, name)
		s.configured[name] = c.Site.Config().Off
		s.sites[name] = &siteState{
			rules: c.Site, origin: c.Origin, name: name, service: s, scope: newScope("site", c.Rate, c.BytesDaily), conns: make(chan struct{}, originConns),
		}
	}
	if err := s.loadRevoked(); err != nil {
		return nil, err
	}
	if s.revoked.Withdraws(&certificate.Certificate{KeyID: signer.id}) {
		if signer, err = makeSigner(cfg.DataDir); err != nil {
			return nil, err
		}
		s.signer = signer
	}
	if err := s.verifiers.own(certificate.VerifyKey{KeyID: signer.id, Key: signer.point, Sites: names}); err != nil {
		return nil, fmt.Errorf("seed: signing key: %w", err)
	}
	cfg.Log.Info("seed signs", "key", signer.id.String()) // what leeway purge --key asks for
	d, err := openDisk(filepath.Join(cfg.DataDir, "segments"), cfg.DiskBytes, s.judge, cfg.Metrics, cfg.Log)
	if err != nil {
		return nil, err
	}
	s.store = newStore(d, cfg.MemoryBytes, cfg.Metrics)
	s.loads = newLoads(s.store.get, s.work, max(1, runtime.GOMAXPROCS(0)/2))
	cfg.Metrics.Set(mSocket, float64(cfg.SocketRead), "read")
	cfg.Metrics.Set(mSocket, float64(cfg.SocketWrite), "write")
	return s, nil
}

// judge says what becomes of a certificate of the store. An expired one still says which validator the bytes had: they may
// turn out unchanged. One from the future says that this machine does not know the time yet.
func (s *Service) judge(c *certificate.Certificate) keeping {
	switch s.verifiers.verify(c, c.Site, c.Name, s.cfg.Now()) {
	case certificate.Valid, certificate.Expired, certificate.FromTheFuture:
		if !s.withdraws(c) {
			return good
		}
	case certificate.UnknownKey:
		return unknown
	}
	return bad
}

// ID is the seed's peer ID, new at each start.
func (s *Service) ID() signal.ID { return s.id }

func (s *Service) withdraws(c *certificate.Certificate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revoked.Withdraws(c)
}

// fetch asks the origin, counts, and bounds how much is asked at a time.
func (st *siteState) fetch(ctx context.Context, f Fetch) (*Fetched, error) {
	select {
	case st.conns <- struct{}{}:
	case <-ctx.Done():
		return nil, &FetchError{Outcome: OutcomeTimeout, Path: f.Path, Cause: ctx.Err()}
	}
	defer func() { <-st.conns }()
	got, err := st.origin.Get(ctx, f)
	outcome, m := OutcomeOK, st.service.cfg.Metrics
	if err != nil {
		outcome = outcomeOf(err)
	} else {
		m.Add(mOriginBytes, float64(len(got.Data)), st.name)
	}
	m.Add(mOriginRequests, 1, st.name, string(outcome))
	return got, err
}

// work runs f beside the caller, or returns false when the seed is about to end. What each link may have under way bounds it:
// in a bound for all links together, a few could keep the others waiting.
func (s *Service) work(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.wg.Go(f)
	return true
}

// Run serves until ctx ends, then drains: trackers are told, viewers get a farewell, and Run returns when nothing of the
// seed runs any more. It is called once.
func (s *Service) Run(ctx context.Context) error {
	defer s.stop()
	var undo []func()
	defer func() {
		for _, f := range undo {
			f()
		}
	}()
	for subject, f := range map[string]func([]byte){
		bus.SubjectSeedDeliver(s.id): s.deliver, bus.SubjectRevoke: s.onRevoke, bus.SubjectTrackerBeat: s.onTrackerBeat,
		bus.SubjectSeedBeat:  s.onSeedBeat,
		bus.SubjectAck(s.id): s.onAck,
	} {
		cancel, err := s.bus.Subscribe(subject, func(_ string, data []byte, _ func([]byte) error) { f(data) })
		if err != nil {
			return fmt.Errorf("seed: subscribe to %s: %w", subject, err)
		}
		undo = append(undo, cancel)
	}
	uploads, stopUploads := context.WithCancel(context.Background())
	var uploading sync.WaitGroup
	uploading.Go(func() { s.uploader.Run(uploads) })
	uploading.Go(func() { s.courier.Run(uploads) })
	s.wg.Go(func() { s.learnRevocations(ctx) })
	s.wg.Go(func() { s.awaitReached(ctx) })
	s.beat(false)
	if s.cfg.Fleet != nil && s.cfg.Fleet.WarmUp != nil {
		s.wg.Go(func() { s.warmUp(ctx) })
	}
	beats, ticks := time.NewTicker(beatEvery), time.NewTicker(tickEvery)
	defer beats.Stop()
	defer ticks.Stop()
	var last measured
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-beats.C:
			s.beat(false)
		case <-ticks.C:
			s.tick()
			s.measure(&last)
		}
	}
	s.drain()
	stopUploads()
	uploading.Wait()
	s.beat(true)
	return nil
}

// drain ends all that goes on.
func (s *Service) drain() {
	s.mu.Lock()
	s.stopping = true
	viewers := make([]*viewer, 0, len(s.viewers))
	for _, v := range s.viewers {
		viewers = append(viewers, v)
	}
	s.mu.Unlock()
	s.fleet.drain()
	s.beat(false)
	for _, v := range viewers {
		v.end(peer.CloseShutdown, peer.ByeDraining)
	}
	awaitLinks(viewers)
	s.linger()
	s.stop()
	s.wg.Wait()
}

// awaitLinks waits until links have ended, for a while: the host that owns them ends what is left.
func awaitLinks(viewers []*viewer) {
	deadline := time.NewTimer(drainWait)
	defer deadline.Stop()
	for _, v := range viewers {
		v.mu.Lock()
		link := v.link
		v.mu.Unlock()
		if link == nil {
			continue
		}
		select {
		case <-link.Done():
		case <-deadline.C:
			return
		}
	}
}

// linger stays for siblings while there are any: they are asked now for what this seed holds, or has on its way.
func (s *Service) linger() {
	if s.cfg.Fleet == nil || s.cfg.Fleet.Linger == 0 || s.fleet.others() == 0 {
		return
	}
	timer := time.NewTimer(s.cfg.Fleet.Linger)
	defer timer.Stop()
	<-timer.C
}

// tick keeps links alive and forgets titles that nobody wants.
func (s *Service) tick() {
	now := s.cfg.Now()
	s.mu.Lock()
	used, named := map[*title]bool{}, map[manifestID]bool{}
	viewers := make([]*viewer, 0, len(s.viewers))
	for _, v := range s.viewers {
		used[v.title] = true
		viewers = append(viewers, v)
	}
	for id, f := range s.failures {
		if now.After(f.until) {
			delete(s.failures, id)
		}
	}
	s.revoked.Forget(now)
	for id, at := range s.trackers {
		if now.Sub(at) > 5*beatEvery {
			delete(s.trackers, id)
		}
	}
	for swarm, t := range s.titles {
		if !used[t] && t.stale(now) {
			delete(s.titles, swarm)
			continue
		}
		manifest, next := t.manifests()
		named[manifestID{t.site.name, manifest}] = true
		named[manifestID{t.site.name, next}] = true
	}
	titles := len(s.titles)
	s.mu.Unlock()
	s.obey(now)
	s.sayAgain()
	s.courier.Maintain()
	s.cfg.Metrics.Set(mTitles, float64(titles))
	s.cfg.Metrics.Set(mFleet, float64(s.fleet.expire(now)))
	s.forgetAccounts(now)
	s.catalog.forget(named)
	s.tolls.forget()
	for _, v := range s.places.late() {
		v.giveUp()
	}
	s.countLinks()
	for _, v := range viewers {
		v.tick()
	}
}

func (v *viewer) tick() {
	v.mu.Lock()
	session, link, open := v.session, v.link, v.open
	v.mu.Unlock()
	if open {
		path := link.Path()
		v.path.Store(&path)
		session.Tick()
	}
}

// drop forgets a link.
func (s *Service) drop(v *viewer) {
	v.cancel()
	s.places.leave(v)
	s.mu.Lock()
	if s.viewers[v.id] == v {
		delete(s.viewers, v.id)
	}
	s.mu.Unlock()
	s.countLinks()
}

func (s *Service) countLinks() {
	open, half := s.places.counts()
	s.cfg.Metrics.Set(mLinks, float64(open))
	s.cfg.Metrics.Set(mHalfOpen, float64(half))
}
