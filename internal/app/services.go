package app

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/cmcd"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/fleet"
	"github.com/leeway-video/leeway/internal/judge"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/webtorrent"
)

var buildInfoMetric = &metric.Def{
	Name: "leeway_build_info", Help: "Always 1", Kind: metric.Gauge,
	Labels: []metric.Label{{Name: "version", Values: []string{Version}}, {Name: "go_version", Values: []string{runtime.Version()}}},
}

// newRegistry is where a process counts: what defs list, what is known of every process, the lines that its log drops, and
// what its admin port refuses.
func newRegistry(log *slog.Logger, sites []string, defs ...*metric.Def) (*promreg.Registry, error) {
	r, err := promreg.New(sites, append([]*metric.Def{buildInfoMetric, droppedLinesMetric, refusedAdminMetric, certificateEndMetric}, defs...)...)
	if err != nil {
		return nil, err
	}
	r.Set(buildInfoMetric, 1, Version, runtime.Version())
	countDroppedLines(log, r)
	return r, r.Process()
}

// What processes can count, by the command that begins them; spec/metrics.md lists all. No process shows metrics of
// other services: a query for the minimum of a seed metric would take the zero of a tracker for a seed.
var counts = map[string][]*metric.Def{
	"tracker": slices.Concat(tracker.Metrics(), judge.Metrics(), webtorrent.Metrics(), natsbus.Metrics()),
	"seed":    slices.Concat(seed.Metrics(), fleet.Metrics(), natsbus.Metrics()),
	"up":      slices.Concat(tracker.Metrics(), judge.Metrics(), webtorrent.Metrics(), seed.Metrics(), fleet.Metrics(), natsbus.Metrics(), probe.Metrics(), origin.Metrics(), outageMetrics()),
	"origin":  origin.Metrics(),
	"turn":    relay.Metrics(),
	"probe":   probe.Metrics(),
}

// services is what runs in one process behind its ports. One tracker, one seed or both: the same code.
type services struct {
	config   *Config
	log      *slog.Logger
	sites    []*site.Site
	names    []string
	registry *promreg.Registry
	bus      *natsbus.Bus

	tracker   trackerPorts
	seedAddr  string           // HOST:PORT of the UDP socket; empty without a seed
	fleet     *seedFleet       // of the seed; nil: it is alone
	slots     map[string]*slot // tracker, seed
	switchers []switcher       // likewise: what knows of switches

	draining atomic.Bool
	checks   []func() error // one a service: why it can take no work
	stops    []func()       // one a service, run side by side
}

// process is what services tell the process that they run in.
type process struct {
	waiting func()      // the bus has to be waited for
	failed  func(error) // something that runs cannot go on: the process ends
}

// openServices checks the sites, makes the registry and joins the bus.
func openServices(ctx context.Context, config *Config, sites []site.Config, name string, log *slog.Logger, p process) (*services, error) {
	s := &services{config: config, log: log, slots: map[string]*slot{}}
	var err error
	if s.sites, err = openSites(sites); err != nil {
		return nil, err
	}
	for _, one := range s.sites {
		s.names = append(s.names, one.Name())
	}
	if s.registry, err = newRegistry(log, s.names, counts[name]...); err != nil {
		return nil, err
	}
	// A site that takes no reports has no figures of them.
	if reported := cmcd.Takers(s.sites); name != "seed" && len(reported) > 0 {
		if err := s.registry.Register(reported, cmcd.Metrics()...); err != nil {
			return nil, err
		}
	}
	if s.bus, err = s.awaitBus(ctx, name, p); err != nil {
		return nil, err
	}
	return s, nil
}

// openSites checks the sites of a configuration.
func openSites(configs []site.Config) (all []*site.Site, err error) {
	for _, c := range configs {
		one, err := site.New(c)
		if err != nil {
			return nil, cmdline.Usage(err)
		}
		all = append(all, one)
	}
	return all, nil
}

// add has a service be asked and stopped with the others.
func (s *services) add(name string, place *slot) {
	s.slots[name] = place
	s.checks = append(s.checks, place.ready)
	s.switchers = append(s.switchers, place)
	s.stops = append(s.stops, place.stop)
}

// startSeed adds a seed with a data folder and a place to listen at. What it serves is the services'.
func (s *services) startSeed(ctx context.Context, p seedParts) error {
	p.config, p.sites, p.bus, p.sink, p.log, p.fleet = s.config.Seed, s.sites, s.bus, s.registry, s.log, s.fleet
	place, err := newSlot(func() (*instance, error) {
		release, err := lockFolder(p.dataDir)
		if err != nil {
			return nil, err
		}
		running, err := startSeed(ctx, p)
		if err != nil {
			release()
			return nil, err
		}
		p.listen, p.next = running.address, false // another one comes up at the same address
		return &instance{switcher: running.service, ready: running.ready, stop: func() {
			running.stop()
			release()
		}}, nil
	})
	if err != nil {
		return err
	}
	s.seedAddr = p.listen
	s.add("seed", place)
	return nil
}

// certified has the process be ready as long as the certificate of its public port is good.
func (s *services) certified(p *pair) {
	p.count(s.registry)
	s.checks = append(s.checks, p.ready)
}

// admin is the admin port of this process, which listens there and keeps its token in a data folder.
func (s *services) admin(listen, dataDir string) (*admin, error) {
	g, err := openAdminGate(s.config.Admin, dataDir, listen, s.registry, s.log)
	if err != nil {
		return nil, err
	}
	return &admin{
		gate: g, metrics: s.registry.Handler(), ready: s.ready, send: s.bus.Send, switched: s.statements,
		sites: s.sites, now: time.Now, log: s.log, delivery: s.tracker.delivery,
	}, nil
}

// ready says why no work can be taken, or nil.
func (s *services) ready() error {
	switch {
	case s.draining.Load():
		return errors.New("draining")
	case !s.bus.Connected():
		return errors.New("the bus is down")
	}
	for _, ready := range s.checks {
		if err := ready(); err != nil {
			return err
		}
	}
	return nil
}

// stop drains all services side by side, then leaves the bus, over which their farewells go.
func (s *services) stop() {
	s.draining.Store(true)
	var wg sync.WaitGroup
	for _, stop := range s.stops {
		wg.Go(stop)
	}
	wg.Wait()
	if err := s.bus.Close(); err != nil {
		s.log.Warn("the bus did not close cleanly", "error", err)
	}
}
