package natbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// secret is the relay's and the trackers'.
const secret = "only-for-this-bench-0123456789abcdef"

const (
	relayPort  = 3478
	relayAdmin = "127.0.0.1:9465"
	patience   = 20 * time.Second
)

// line is the access of each host: wide enough for anything here, and 10 ms long.
var line = netlab.Link{Rate: 50_000_000, Delay: 5 * time.Millisecond, Queue: 256 << 10}

// stage is a lab with a relay, two sites, of which one names it, and a pair of hosts for each row.
type stage struct {
	lab          *netlab.Lab
	relay        *hosted.Service
	named, plain *demosite.Site
	hidden       *demosite.Site // names it too; viewers meet by it alone. nil where no row asks for it
	sites        map[*demosite.Site]*netlab.Host
	pairs        []pair
}

type pair struct {
	a, b     *netlab.Host
	gateways []*netlab.Gateway
	lines    []*netlab.Line  // of the gateways
	moves    *netlab.Gateway // where the newcomer may move to
}

// build makes the lab and starts the servers.
func build(ctx context.Context, r *bench.Run, list []row) (s *stage, err error) {
	s = &stage{}
	if s.lab, err = netlab.New(netlab.Options{Seed: 1, IPv6: true}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	core := s.lab.Router("core")
	place := func(name string) *netlab.Host {
		h, _ := s.lab.Attach(name, core, netlab.Path{})
		return h
	}
	relay, named, plain, hidden := place("relay"), place("named"), place("plain"), place("hidden")
	for i, w := range list {
		s.pairs = append(s.pairs, w.hosts(s.lab, core, i))
	}
	if err = s.lab.Start(); err != nil {
		return nil, err
	}
	s.relay, err = hosted.Start(ctx, relay, hosted.Options{
		Name: "the relay", Admin: relayAdmin, Env: []string{"LEEWAY_TURN_SECRETS=" + secret},
		Args: []string{"turn", "--listen", fmt.Sprintf("[::]:%d", relayPort), "--allow", "198.18.0.0/15,2001:2::/48", "--drain", "0s"},
	})
	if err != nil {
		return nil, err
	}
	for _, h := range []*netlab.Host{named, plain, hidden} {
		if slices.ContainsFunc(list, func(w row) bool { return w.guarded }) {
			if err = demopage.HavePublic(ctx, h); err != nil {
				return nil, err
			}
		}
	}
	if s.named, err = demosite.Open(ctx, named, demosite.Options{IPv6: true, Config: config(relay, true), Log: r.Log}); err != nil {
		return nil, err
	}
	if s.plain, err = demosite.Open(ctx, plain, demosite.Options{IPv6: true, Config: config(relay, false)}); err != nil {
		return nil, err
	}
	s.sites = map[*demosite.Site]*netlab.Host{s.named: named, s.plain: plain}
	if slices.ContainsFunc(list, func(w row) bool { return w.hidden }) {
		if s.hidden, err = demosite.Open(ctx, hidden, demosite.Options{IPv6: true, Config: config(relay, true) + "up:\n  role: relay-only\n"}); err != nil {
			return nil, err
		}
		s.sites[s.hidden] = hidden
	}
	return s, nil
}

// siteOf is the site of a row's viewers.
func (s *stage) siteOf(w row) *demosite.Site {
	switch {
	case w.hidden:
		return s.hidden
	case w.plain:
		return s.plain
	}
	return s.named
}

// config names the relay, as one that answers STUN alone or in full.
func config(relay *netlab.Host, full bool) string {
	var b bytes.Buffer
	v4, v6 := netip.AddrPortFrom(relay.Addr(), relayPort), netip.AddrPortFrom(relay.Addr6(), relayPort)
	fmt.Fprintf(&b, "tracker:\n  ice_servers:\n    - urls: [\"stun:%s\", \"stun:%s\"]\n", v4, v6)
	if full {
		fmt.Fprintf(&b, "    - urls: [\"turn:%[1]s?transport=udp\", \"turn:%[1]s?transport=tcp\", \"turn:%[2]s?transport=udp\"]\n      secret: %[3]s\n", v4, v6, secret)
	}
	return b.String()
}

// hosts adds a row's hosts to the lab.
func (w row) hosts(lab *netlab.Lab, core *netlab.Router, n int) (p pair) {
	name := func(s string) string { return fmt.Sprintf("r%d-%s", n+1, s) }
	gateway := func(e edge, at string) *netlab.Gateway {
		g := lab.Gateway(name(at), netlab.GatewayConfig{NAT: nats[e], Hairpin: w.hairpin, Isolated: w.isolated, BlockUDP: e == blocked})
		p.lines = append(p.lines, lab.Connect(g, core, netlab.Both(line)))
		p.gateways = append(p.gateways, g)
		return g
	}
	if w.together {
		g := gateway(w.a, "home")
		p.a, p.b = g.Host(name("a")), g.Host(name("b"))
		return p
	}
	one := func(e edge, at string) *netlab.Host {
		if e != public && e != six {
			return gateway(e, at+"-home").Host(name(at))
		}
		h, _ := lab.Attach(name(at), core, netlab.Both(line))
		if e == six {
			h.OnlyIPv6()
		}
		return h
	}
	p.a, p.b = one(w.a, "a"), one(w.b, "b")
	if w.moves != "" {
		p.moves = gateway(w.moves, "b-next")
		p.moves.Keep(p.b)
	}
	return p
}

// close ends what runs and removes the lab.
func (s *stage) close() error {
	var errs []error
	for _, site := range []*demosite.Site{s.named, s.plain, s.hidden} {
		if site != nil {
			errs = append(errs, site.Close())
		}
	}
	if s.relay != nil {
		errs = append(errs, s.relay.Close())
	}
	return errors.Join(append(errs, s.lab.Close())...)
}
