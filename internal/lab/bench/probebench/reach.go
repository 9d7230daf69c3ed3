package probebench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

const (
	relayPort   = 3478
	relayAdmin  = "127.0.0.1:9467"
	relaySecret = "only-for-this-bench-0123456789abcdef"
)

// place is where a client is, and what a check there is to say.
type place struct {
	name    string
	gateway *netlab.GatewayConfig // nil: none, and IPv6
	ipv4    []string              // any of them is right
	ipv6    []string
	types   []string // candidates that are to be there
	never   string   // one that is not to be there
}

// direct is said where there is no NAT.
var direct = []string{netstat.Untranslated, netstat.EndpointIndependent}

// places are a client without a NAT, behind each kind of NAT, and behind a firewall that lets no UDP through. A browser that
// hides the socket's own address does not know that it is not translated (spec/probe.md, Reachability).
var places = []place{
	{name: "public", ipv4: direct, ipv6: direct, types: []string{"host", "srflx"}},
	{name: "full-cone", gateway: &netlab.GatewayConfig{NAT: netlab.FullCone}, ipv4: []string{netstat.EndpointIndependent}, ipv6: []string{netstat.NoAnswer}, types: []string{"host", "srflx"}},
	{name: "port-restricted", gateway: &netlab.GatewayConfig{NAT: netlab.PortRestricted}, ipv4: []string{netstat.EndpointIndependent}, ipv6: []string{netstat.NoAnswer}, types: []string{"host", "srflx"}},
	{name: "symmetric", gateway: &netlab.GatewayConfig{NAT: netlab.Symmetric}, ipv4: []string{netstat.Dependent}, ipv6: []string{netstat.NoAnswer}, types: []string{"host", "srflx"}},
	{name: "no-udp", gateway: &netlab.GatewayConfig{NAT: netlab.FullCone, BlockUDP: true}, ipv4: []string{netstat.NoAnswer}, ipv6: []string{netstat.NoAnswer}, types: []string{"host"}, never: "srflx"},
}

// wrong says what of a result is not what the place is; empty: nothing.
func (p place) wrong(got *netcheck.Reachability, relayed bool) string {
	switch {
	case got == nil:
		return "nothing is said of reachability"
	case !slices.Contains(p.ipv4, got.IPv4):
		return "IPv4 is " + got.IPv4
	case !slices.Contains(p.ipv6, got.IPv6):
		return "IPv6 is " + got.IPv6
	case relayed && !slices.Contains(got.Candidates, "relay"):
		return "no relay"
	case slices.Contains(got.Candidates, p.never):
		return "there is " + p.never
	}
	for _, t := range p.types {
		if !slices.Contains(got.Candidates, t) {
			return "no " + t
		}
	}
	return ""
}

// reaching is reachability behind each of the lab's NATs: the kind of NAT, and the candidates that come. A page has relayed ones, too,
// with the credentials that the server gives; a terminal asks for none.
func reaching(c checker) bench.Case {
	hosts := make([]*netlab.Host, len(places))
	relays := make([]*netlab.Host, 2)
	layout := func(s *stage, core *netlab.Router) {
		for i := range relays {
			relays[i], _ = s.lab.Attach(fmt.Sprintf("relay-%d", i+1), core, netlab.Path{})
		}
		for i, p := range places {
			if p.gateway == nil {
				hosts[i], _ = s.lab.Attach(p.name, core, netlab.Path{})
				continue
			}
			g := s.lab.Gateway(p.name+"-nat", *p.gateway)
			s.lab.Connect(g, core, netlab.Path{})
			hosts[i] = g.Host(p.name)
		}
	}
	var dir string
	prepare := func(s *stage) { dir = s.nameRelays(relays) }
	return bench.Case{
		Name:    "reach/" + c.name,
		About:   "Reachability without a NAT, behind NATs with endpoint-independent and with address-dependent mapping, and behind a firewall without UDP: places of which all that the check says is right.",
		Needs:   c.needs,
		Figures: []bench.Figure{{Name: "reach_exact", Goal: fmt.Sprintf(">= %d", len(places))}},
		Run: atAnyTime(within(layout, prepare, func(ctx context.Context, r *bench.Run, s *stage) (_ map[string]float64, err error) {
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			for _, h := range relays {
				relay, e := hosted.Start(ctx, h, hosted.Options{
					Name: "a relay", Admin: relayAdmin, Env: []string{"LEEWAY_TURN_SECRETS=" + relaySecret},
					Args: []string{"turn", "--listen", fmt.Sprintf("[::]:%d", relayPort), "--drain", "0s"},
				})
				if e != nil {
					return nil, e
				}
				defer func() { err = errors.Join(err, relay.Close()) }()
			}
			exact := 0.0
			for i, p := range places {
				s.client = hosts[i]
				got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Reach}, duration: netcheck.MinDuration})
				if err != nil {
					return nil, fmt.Errorf("%s: %w", p.name, err)
				}
				wrong := p.wrong(got.Reachability, c.name != terminal.name)
				r.Logf("  %s: %+v %s", p.name, got.Reachability, wrong)
				if wrong == "" {
					exact++
				}
			}
			return map[string]float64{"reach_exact": exact}, nil
		})),
	}
}

// nameRelays has the probe server name relays, and returns the folder of its configuration.
func (s *stage) nameRelays(relays []*netlab.Host) (dir string) {
	text := "probe:\n  ice_servers:\n"
	for _, h := range relays {
		text += "    - secret: " + relaySecret + "\n      urls:\n"
		for _, at := range []netip.Addr{h.Addr(), h.Addr6()} {
			text += fmt.Sprintf("        - \"turn:%s?transport=udp\"\n", netip.AddrPortFrom(at, relayPort))
		}
		text += fmt.Sprintf("        - \"turn:%s?transport=tcp\"\n", netip.AddrPortFrom(h.Addr(), relayPort))
	}
	dir, err := os.MkdirTemp("", "leeway-reach-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "leeway.yaml"), []byte(text), 0o600)
	}
	if err != nil {
		s.unready = err
		return dir
	}
	s.args = []string{"--config", filepath.Join(dir, "leeway.yaml")}
	return dir
}
