package outagebench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

const (
	siteName = "outage"
	// proxyAt is where a viewer's page finds its tracker, on the viewer's own host: what is behind comes over the line.
	proxyAt = "127.0.0.1:8090"
	// pageAt is where the page is, and what the site knows the film's host by.
	pageAt            = "127.0.0.1:8080"
	busPort, turnPort = 4222, 3478
	queueTime         = 100 * time.Millisecond // of the buffers of access lines, at least
	upRate            = 5_000_000
	// rendition is the best of the film, 1.4 Mbit/s: on the slowest line a second that is lost is not made up for soon.
	rendition = 2
)

// nowhere is an address of the lab's network that nothing has.
var nowhere = netip.MustParseAddr("198.19.255.1")

// stage is the servers and two viewers on lines alike.
type stage struct {
	cell
	lab           *netlab.Lab
	film, tracker *demosite.Site
	dir           string // the site's configuration
	seed          *bench.Process
	peers         []*headless.Viewer
	viewers       [2]*netlab.Host // with Leeway, without
	lines         [2]*netlab.Line
}

// queue of a direction holds a round trip: in a shorter one CUBIC's slow start loses a burst or does not, by chance, and such a line
// carries less than half of its rate.
func (a access) queue(rate int64) int { return max(32<<10, netlab.BDP(rate, max(queueTime, a.rtt))) }

// down is the direction to a viewer.
func (a access) down(rate int64) netlab.Link {
	return netlab.Link{Rate: rate, Delay: a.rtt / 2, Queue: a.queue(a.rate)}
}

func (a access) path() netlab.Path {
	return netlab.Path{Down: a.down(a.rate), Up: netlab.Link{Rate: upRate, Delay: a.rtt / 2, Queue: a.queue(upRate)}}
}

// build makes the lab of a cell and starts all that is there before the viewers.
func (c cell) build(ctx context.Context, r *bench.Run) (s *stage, err error) {
	s = &stage{cell: c}
	if s.lab, err = netlab.New(netlab.Options{Seed: uint64(r.Number) + 1}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s, err = nil, closed(err, s)
		}
	}()
	core := s.lab.Router("core")
	place := func(name string) *netlab.Host {
		h, _ := s.lab.Attach(name, core, netlab.Path{})
		return h
	}
	film, tracker, others := place("film"), place("tracker"), place("others")
	for i, name := range []string{"with", "without"} {
		s.viewers[i], s.lines[i] = s.lab.Attach(name, core, c.line.path())
	}
	if err = s.lab.Start(); err != nil {
		return s, err
	}
	// Its own tracker and seed are for no viewer.
	if s.film, err = demosite.Open(ctx, film, demosite.Options{Log: r.Log}); err != nil {
		return s, err
	}
	if err = s.openTracker(ctx, tracker); err != nil {
		return s, err
	}
	if c.silentSeed {
		if err = s.startSilentSeed(ctx, r, tracker); err != nil {
			return s, err
		}
	}
	if c.slowPeers {
		err = s.startSlowPeers(ctx, others)
	}
	return s, err
}

// openTracker starts tracker and seed of a site whose film is the other host's.
func (s *stage) openTracker(ctx context.Context, host *netlab.Host) (err error) {
	if s.dir, err = os.MkdirTemp("", "leeway-bench-outage-"); err != nil {
		return err
	}
	site := fmt.Sprintf(`name: %s
hosts: [%q, %q]
title: {explicit: [{title: "{}", manifests: ["/*"]}]}
policy: {certify_from: 1, costly_titles: share, control_group_permille: 0}
`, siteName, pageAt, s.film.Public())
	if !s.seedless && !s.silentSeed {
		site += fmt.Sprintf("fetch_base: %q\n", "http://"+s.film.Public())
	}
	file := filepath.Join(s.dir, "site.yaml")
	if err := os.WriteFile(file, []byte(site), 0o600); err != nil {
		return err
	}
	config := fmt.Sprintf("nats:\n  listen: %q\n", netip.AddrPortFrom(host.Addr(), busPort))
	if s.deadTURN {
		config += fmt.Sprintf("tracker:\n  ice_servers:\n    - urls: [\"turn:%s?transport=udp\"]\n      secret: only-for-this-bench-0123456789abcdef\n", netip.AddrPortFrom(nowhere, turnPort))
	}
	settings := []string{"LEEWAY_UP_SITE=" + file}
	if s.slowPeers {
		settings = append(settings, fmt.Sprintf("LEEWAY_SEED_RATE=%d", slowRate))
	}
	s.tracker, err = demosite.Open(ctx, host, demosite.Options{Config: config, Filmless: true, Settings: settings})
	return err
}

// watch has both viewers watch at once.
func (s *stage) watch(ctx context.Context) (with, without watched, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var results [2]watched
	var errs [3]error
	var wg sync.WaitGroup
	starts := [2]*demopage.Start{demopage.NewStart(), demopage.NewStart()}
	for i := range s.viewers {
		wg.Go(func() {
			if results[i], errs[i] = s.one(ctx, i, starts[i]); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", s.viewers[i].Name(), errs[i])
				cancel()
			}
		})
	}
	wg.Go(func() {
		if errs[2] = demopage.Ready(ctx, starts[:]...); errs[2] != nil {
			cancel()
			return
		}
		if errs[2] = s.lab.Mark(); errs[2] != nil {
			cancel()
			return
		}
		for _, start := range starts {
			start.Begin()
		}
	})
	wg.Wait()
	return results[0], results[1], errors.Join(errs[:]...)
}

// one is a viewer: the first has the script.
func (s *stage) one(ctx context.Context, i int, start *demopage.Start) (w watched, err error) {
	host, leeway := s.viewers[i], i == 0 && !s.scriptless
	tracker := ""
	var die func()
	if leeway {
		proxy, at, err := s.startProxy(ctx, host)
		if err != nil {
			return w, err
		}
		if proxy != nil {
			defer proxy.close()
		}
		if tracker = "ws://" + at + "/"; s.behavior == dies {
			die = proxy.close
		}
	}
	p := newPage(host.DialContext, s.film.Public(), s.tracker.Public(), tracker, s.engine)
	text := &bench.Tail{}
	query := fmt.Sprintf("?leeway=off&maxbuffer=60&level=%d&%s", rendition, s.film.Page()) // the page's own tag names its own host
	browser, err := demopage.Open(ctx, host, start.Hold(p), query, text)
	if err != nil {
		return w, err
	}
	defer func() { _ = browser.Close() }() // a profile that is left behind is no reason to lose the run
	watching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-browser.Ended:
			cancel(fmt.Errorf("the browser ended by itself: %v\n%s", err, text))
		case <-watching.Done():
		}
	}()
	w, err = p.watch(watching, s.lines[i], s.line, die)
	if cause := context.Cause(watching); err != nil && cause != nil {
		err = cause
	}
	return w, err
}

// startProxy returns what is in front of the tracker, if anything is, and its address.
func (s *stage) startProxy(ctx context.Context, host *netlab.Host) (*trackerProxy, string, error) {
	switch s.behavior {
	case refuses:
		return nil, proxyAt, nil
	case blackholes:
		return nil, netip.AddrPortFrom(nowhere, 8080).String(), nil
	}
	listener, err := host.Listen(ctx, "tcp", proxyAt)
	if err != nil {
		return nil, "", err
	}
	return startProxy(listener, s.behavior, s.engine, func(ctx context.Context) (net.Conn, error) {
		return host.DialContext(ctx, "tcp", s.tracker.Public())
	}), proxyAt, nil
}

// closed ends a stage after err, in reverse.
func closed(err error, s *stage) error {
	for _, p := range s.peers {
		p.Close()
	}
	if s.seed != nil {
		err = errors.Join(err, s.seed.Stop())
	}
	for _, site := range []*demosite.Site{s.tracker, s.film} {
		if site != nil {
			err = errors.Join(err, site.Close())
		}
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return errors.Join(err, s.lab.Close())
}
