package seed

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	beatEvery = 2 * time.Second
	tickEvery = time.Second
)

// Service is one seed. New makes it of its parts, Run works it until its context ends; in between it passes on what the bus says.
type Service struct {
	cfg       Config
	id        signal.ID
	bus       Bus
	tasks     *tasks
	sites     map[string]*siteState
	trackers  *trackers
	outbox    *outbox
	takedowns *takedowns
	issuer    *issuer
	budgets   *budgets
	titles    *titles
	supply    *supply
	links     *viewerLinks
	reach     *reach
}

// New makes a seed: it reads or makes the key and indexes the store. Errors name what to mend.
func New(cfg Config, b Bus, links Links) (*Service, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, bus: b, tasks: newTasks(), sites: map[string]*siteState{}, trackers: newTrackers(), reach: newReach(cfg.Outside, cfg.Bell)}
	if _, err := rand.Read(s.id[:]); err != nil {
		return nil, fmt.Errorf("seed: make an ID: %w", err)
	}
	var names, packaged []string
	off := map[string]bool{}
	for _, c := range cfg.Sites {
		name := c.Site.Name()
		names = append(names, name)
		off[name] = c.Site.Config().Off
		if len(c.Site.Packagers()) > 0 {
			packaged = append(packaged, name)
		}
		s.sites[name] = newSiteState(c, cfg.Metrics)
		if err := s.sites[name].certifiedBy(c.Site.Packagers()); err != nil {
			return nil, fmt.Errorf("seed: packagers of site %q: %w", name, err)
		}
	}
	var err error
	if s.takedowns, err = openTakedowns(cfg.DataDir, off, packaged, cfg.Log, cfg.Now); err != nil {
		return nil, err
	}
	if s.issuer, err = openIssuer(cfg.DataDir, names, s.takedowns, newVerifiers(), cfg.Metrics, cfg.Log, cfg.Now); err != nil {
		return nil, err
	}
	s.outbox = newOutbox(s.id, b, s.trackers, func(m *bus.Signal) { s.links.undelivered(m) }, cfg.Metrics, cfg.Log, cfg.Now)
	s.budgets = newBudgets(newScope("seed", cfg.Rate, cfg.BytesDaily), cfg.SessionFactor, cfg.Metrics, cfg.Now)
	s.titles = newTitles(s.sites, newCatalog(s.tasks, cfg.IndexBytes, cfg.MaxTitles, cfg.Metrics, cfg.Log, cfg.Now), cfg.MaxTitles)
	d, err := openDisk(filepath.Join(cfg.DataDir, "segments"), cfg.DiskBytes, s.issuer.judge, cfg.Metrics, cfg.Log)
	if err != nil {
		return nil, err
	}
	s.supply = &supply{
		shelf: newShelf(newStore(d, cfg.MemoryBytes, cfg.Metrics), s.tasks, s.budgets, cfg.Metrics), fetches: newFetches(s.tasks, cfg.Now),
		fleet: cfg.Fleet, issuer: s.issuer, budgets: s.budgets, lookAhead: cfg.LookAhead,
		withhold: func(id ...segment.ID) { s.links.withhold(id...) }, sink: cfg.Metrics, log: cfg.Log, now: cfg.Now,
	}
	uploader := transfer.NewUploader(cfg.Now)
	uploader.Background = background.NewSender(ledbat.Config{}, cfg.Now)
	s.links = &viewerLinks{
		self: s.id, port: links, outbox: s.outbox, tasks: s.tasks, supply: s.supply, budgets: s.budgets, uploader: uploader,
		places: newPlaces(cfg.MaxLinks, cfg.Now), reach: s.reach,
		streams: newStreams(s.id, s.supply, s.tasks, cfg.Metrics, cfg.Log, cfg.Now), sink: cfg.Metrics, log: cfg.Log, now: cfg.Now, all: map[signal.ID]*viewerLink{},
	}
	cfg.Fleet.Join(s, cfg.DiskBytes)
	if cfg.Fleet.Warm() {
		cfg.Metrics.Set(mWarm, 1)
	}
	cfg.Metrics.Set(mSocket, float64(cfg.SocketRead), "read")
	cfg.Metrics.Set(mSocket, float64(cfg.SocketWrite), "write")
	return s, nil
}

// ID is the seed's peer ID, new at each start.
func (s *Service) ID() signal.ID { return s.id }

// Configure says whether the configuration has peer delivery of a site off, for this process alone.
func (s *Service) Configure(site string, off bool) { s.takedowns.configure(site, off) }

// Packagers replaces the keys of a site's packagers. What they sign outlives what seeds sign, so purges are kept for longer.
func (s *Service) Packagers(site string, keys []certificate.VerifyKey) {
	st := s.sites[site]
	if st == nil {
		return
	}
	if len(keys) > 0 {
		s.takedowns.packages(site)
	}
	if err := st.certifiedBy(keys); err != nil {
		s.cfg.Log.Warn("keys of packagers cannot be used; those from before stay", "site", site, "error", err)
	}
}

// Statements switch a site when all replicas have heard them (cluster.Switches.Say).
func (s *Service) Statements(site string, off bool, reason string, until time.Time) []bus.Switch {
	return s.takedowns.statements(site, off, reason, until)
}

// Run serves until ctx ends, then drains: trackers are told, viewers get a farewell, and Run returns when nothing of the
// seed runs any more. It is called once.
func (s *Service) Run(ctx context.Context) error {
	defer s.tasks.stop()
	var undo []func()
	defer func() {
		for _, f := range undo {
			f()
		}
	}()
	for subject, f := range s.subscriptions() {
		cancel, err := s.bus.Subscribe(subject, func(_ string, data []byte, _ func([]byte) error) { f(data) })
		if err != nil {
			return fmt.Errorf("seed: subscribe to %s: %w", subject, err)
		}
		undo = append(undo, cancel)
	}
	uploads, stopUploads := context.WithCancel(context.Background())
	var uploading sync.WaitGroup
	uploading.Go(func() { s.links.uploader.Run(uploads) })
	uploading.Go(func() { s.outbox.streams.Run(uploads) })
	s.tasks.begin(func() { s.learnRevocations(ctx) })
	s.tasks.begin(func() { s.awaitReached(ctx) })
	s.beat(false)
	if !s.cfg.Fleet.Warm() {
		s.tasks.begin(func() { s.warmUp(ctx) })
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
			last.take(s.links.uploader.Background, s.cfg.Metrics)
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
	s.tasks.end()
	s.cfg.Fleet.Drain()
	s.beat(false)
	s.links.drain()
	s.cfg.Fleet.Linger()
	s.tasks.wait()
}

// tick has each part do what time brings.
func (s *Service) tick() {
	now, m := s.cfg.Now(), s.cfg.Metrics
	s.supply.fetches.expire()
	s.takedowns.forget()
	if s.takedowns.unkept.Load() || !s.issuer.signs() {
		s.tasks.begin(func() { // what a full disk has prevented; beside the ticks, since a disk may hang
			s.takedowns.keepAgain()
			if s.issuer.rotate() {
				s.beat(false)
			}
		})
	}
	s.trackers.expire(now)
	titles, manifests := s.titles.forget(now)
	m.Set(mTitles, float64(titles))
	for site, swarms := range s.titles.resting() {
		m.Set(mResting, float64(len(swarms)), site)
	}
	s.titles.catalog.forget(manifests)
	s.sayAgain()
	s.outbox.streams.Maintain()
	m.Set(mFleet, float64(s.cfg.Fleet.Expire()))
	s.budgets.forget()
	s.links.tick()
}
