package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/originhttp"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
)

// seedParts is what a seed is put together from.
type seedParts struct {
	config  SeedConfig
	dataDir string
	listen  string
	next    bool // where the port is busy take the next free one
	own     bool // only viewers of this machine are served, at any of its addresses
	sites   []*site.Site
	bus     seed.Bus
	sink    metric.Sink
	log     *slog.Logger
	failed  func(error) // the seed ended by itself
	fleet   *seedFleet  // nil: the seed is alone
}

// runningSeed is a seed on its socket. stop drains it and returns when nothing of it is left.
type runningSeed struct {
	service *seed.Service
	address string       // HOST:PORT
	ready   func() error // says why no viewer is sent to it, or nil
	stop    func()
}

// startSeed opens the UDP socket and starts a seed. The end of ctx ends what it asks others before.
func startSeed(ctx context.Context, p seedParts) (running *runningSeed, err error) {
	host, err := p.listenUDP(ctx)
	if err != nil {
		return nil, err
	}
	sites, closeOrigins, err := p.origins()
	if err != nil {
		_ = host.Close()
		return nil, err
	}
	buffers := host.Buffers()
	service, err := seed.New(seed.Config{
		DataDir: p.dataDir, Sites: sites,
		MemoryBytes: p.config.MemoryBytes, DiskBytes: p.config.DiskBytes,
		MaxLinks: p.config.MaxLinks, MaxTitles: p.config.MaxTitles, IndexBytes: p.config.IndexBytes,
		Rate: p.config.Rate, BytesDaily: p.config.DailyBytes, SessionFactor: p.config.SessionFactor, LookAhead: p.config.LookAhead,
		Outside: p.outside(host), Bell: host, SocketRead: buffers.Read, SocketWrite: buffers.Write,
		Fleet: p.fleet.join(p.sink, p.log), Metrics: p.sink, Log: p.log,
	}, p.bus, host)
	if err != nil {
		closeOrigins()
		_ = host.Close()
		return nil, err
	}
	p.fleet.serve(service, p.log)
	end := runUntilStopped(func(ctx context.Context) {
		if err := service.Run(ctx); err != nil {
			p.failed(err)
		}
	})
	return &runningSeed{service, host.Addr().String(), service.Ready, func() {
		end()
		if err := host.Close(); err != nil {
			p.log.Warn("seed's socket did not close cleanly", "error", err)
		}
		closeOrigins()
	}}, nil
}

// outside is where a tracker is to try whether the seed can be reached. Loopback addresses are never announced to viewers outside, and a
// seed that serves its machine has none.
func (p seedParts) outside(host *rtclink.Host) (all []netip.AddrPort) {
	if !p.config.Probe || p.own {
		return nil
	}
	for _, a := range host.Announced() {
		if !a.Addr().IsLoopback() {
			all = append(all, a)
		}
	}
	return all
}

func (p seedParts) listenUDP(ctx context.Context) (host *rtclink.Host, err error) {
	announce, err := p.announced(ctx)
	if err != nil {
		return nil, err
	}
	allowed, err := reach(p.config.Allow)
	if err != nil {
		return nil, cmdline.Usage(fmt.Errorf("seed.allow: %w", err))
	}
	if p.own || loopback(p.listen) {
		own, err := ownAddresses()
		if err != nil {
			return nil, err
		}
		allowed.Allow = append(allowed.Allow, own...)
	}
	err = tryPorts(p.listen, p.next, func(addr string) (err error) {
		guard := &rtclink.Guard{Reach: allowed, Refused: seed.RefusedCandidates(p.sink), Dropped: seed.DroppedChecks(p.sink)}
		host, err = rtclink.Listen(rtclink.Config{Listen: addr, Announce: announce, Loopback: p.own, Guard: guard, PionRecords: p.config.PionRecords, Log: p.log})
		return err
	})
	if err != nil {
		return nil, listenError("seed", p.listen, err)
	}
	return host, nil
}

// ownAddresses are those of this machine, loopback among them.
func ownAddresses() (all []access.Peer, err error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("seed: list this machine's addresses: %w", err)
	}
	for _, a := range found {
		p, err := netip.ParsePrefix(a.String())
		switch {
		case err != nil:
		case p.Addr().IsLoopback():
			all = append(all, access.Peer{Prefix: p.Masked()}) // 127.0.0.0/8 as a whole
		default:
			all = append(all, access.Peer{Prefix: netip.PrefixFrom(p.Addr(), p.Addr().BitLen())})
		}
	}
	return all, nil
}

// origins makes a client for each site that has a fetch_base; the others are served by no seed.
func (p seedParts) origins() (sites []seed.Site, closeAll func(), err error) {
	private, err := prefixes("seed.private", p.config.Private)
	if err != nil {
		return nil, nil, err
	}
	var clients []*originhttp.Client
	closeAll = func() {
		for _, c := range clients {
			c.Close()
		}
	}
	for _, s := range p.sites {
		base := s.Config().FetchBase
		if base == "" {
			p.log.Warn("no seed serves this site: it has no fetch_base", "site", s.Name())
			continue
		}
		auth, err := fetchAuth(s.Config().FetchAuth)
		if err != nil {
			closeAll()
			return nil, nil, cmdline.Usage(fmt.Errorf("site %q: fetch_auth.%w", s.Name(), err))
		}
		client, err := originhttp.New(originhttp.Config{
			Base: base, Redirects: p.config.Redirects, Private: private, UserAgent: "leeway-seed/" + Version, Auth: auth,
		})
		if err != nil {
			closeAll()
			return nil, nil, cmdline.Usage(fmt.Errorf("site %q: %w", s.Name(), err))
		}
		clients = append(clients, client)
		served := seed.Site{Site: s, Origin: client}
		for _, b := range p.config.SiteBudgets {
			if b.Site == s.Name() {
				served.Rate, served.BytesDaily = b.Rate, b.DailyBytes
			}
		}
		sites = append(sites, served)
	}
	return sites, closeAll, nil
}
