package netlab

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

// mappingSeconds is how long a mapping outlives its last packet by default, as in the kernel's own tables.
const mappingSeconds = 120

// build makes the inside network and loads the rules.
func (g *Gateway) build() error {
	if err := g.space.Do(func() error {
		if _, err := os.Stat(settingPath(bridgeFilter)); err != nil {
			return nil
		}
		return sysctl(bridgeFilter, "0")
	}); err != nil {
		return err
	}
	if err := g.withLinks(g.bridge); err != nil {
		return err
	}
	for i, s := range g.seats {
		if s.free {
			continue
		}
		if err := g.connect(i); err != nil {
			return fmt.Errorf("%s: %w", s.host.name, err)
		}
	}
	if err := g.sets(); err != nil {
		return err
	}
	restore := exec.Command("iptables-restore")
	restore.Stdin = strings.NewReader(g.rules())
	if err := g.space.Do(func() error {
		out, err := restore.CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables-restore: %w: %s", err, out)
		}
		return nil
	}); err != nil {
		return err
	}
	if g.cfg.UDPTimeout == 0 {
		return nil
	}
	return g.space.Do(func() error { // these settings are there since the rules are
		seconds := strconv.Itoa(int(g.cfg.UDPTimeout.Seconds()))
		if err := sysctl("net.netfilter.nf_conntrack_udp_timeout", seconds); err != nil {
			return err
		}
		return sysctl("net.netfilter.nf_conntrack_udp_timeout_stream", seconds)
	})
}

// bridgeFilter has iptables see what hosts on one Ethernet send each other, which no gateway would. It is there where
// the kernel has that feature.
const bridgeFilter = "net.bridge.bridge-nf-call-iptables"

// bridge makes the Ethernet of the inside hosts.
func (g *Gateway) bridge(l *netlink.Handle) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = inDevice, g.lab.opts.MTU
	link := &netlink.Bridge{LinkAttrs: attrs}
	if err := l.LinkAdd(link); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	if err := l.AddrAdd(link, &netlink.Addr{IPNet: ipNet(g.inside())}); err != nil {
		return fmt.Errorf("bridge: address: %w", err)
	}
	if err := l.LinkSetUp(link); err != nil {
		return fmt.Errorf("bridge: up: %w", err)
	}
	for _, addr := range g.routed {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(netip.PrefixFrom(addr, 32)), Scope: netlink.SCOPE_LINK}
		if err := l.RouteAdd(route); err != nil {
			return fmt.Errorf("bridge: route: %w", err)
		}
	}
	return nil
}

// connect gives a host its place.
func (g *Gateway) connect(i int) error {
	s := g.seats[i]
	if err := g.withLinks(func(l *netlink.Handle) error { return g.plug(l, i, s.host) }); err != nil {
		return err
	}
	if err := s.host.withLinks(func(l *netlink.Handle) error { return g.address(l, s.addr) }); err != nil {
		return err
	}
	return s.host.space.Do(func() error {
		first, last := g.ports(i)
		return sysctl("net.ipv4.ip_local_port_range", fmt.Sprintf("%d %d", first, last))
	})
}

// Move takes a host to the place that another gateway keeps for it: from one network to another, with the cable gone in
// between, as a telephone leaves Wi-Fi. Its device and its address are new; sockets that were bound to no address stay. Addr is
// the new one from then on, and not to be asked for meanwhile.
func (h *Host) Move(to *Gateway) error {
	i := slices.IndexFunc(to.seats, func(s seat) bool { return s.host == h && s.free })
	if i < 0 || h.space == nil {
		return fmt.Errorf("netlab: host %s: %s keeps no place for it, or the lab is not started", h.name, to.name)
	}
	from := h.gateway
	at := slices.IndexFunc(from.seats, func(s seat) bool { return s.host == h })
	err := from.withLinks(func(l *netlink.Handle) error {
		cable, err := l.LinkByName(cableName(at))
		if err != nil {
			return err
		}
		return l.LinkDel(cable)
	})
	if err == nil {
		err = to.connect(i)
	}
	if err != nil {
		return fmt.Errorf("netlab: host %s: move to %s: %w", h.name, to.name, err)
	}
	from.seats[at].free, to.seats[i].free = true, false
	h.gateway, h.addr = to, to.seats[i].addr
	return nil
}

func cableName(i int) string { return fmt.Sprintf("lan%d", i+1) }

// plug connects a host to the Ethernet.
func (g *Gateway) plug(l *netlink.Handle, i int, h *Host) error {
	lan, err := l.LinkByName(inDevice)
	if err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.MasterIndex = cableName(i), g.lab.opts.MTU, lan.Attrs().Index
	cable := &netlink.Veth{LinkAttrs: attrs, PeerName: device, PeerNamespace: netlink.NsFd(h.space.FD()), PeerMTU: uint32(g.lab.opts.MTU)}
	if err := l.LinkAdd(cable); err != nil {
		return fmt.Errorf("cable: %w", err)
	}
	if g.cfg.Isolated {
		if err := l.LinkSetIsolated(cable, true); err != nil {
			return fmt.Errorf("cable: isolate: %w", err)
		}
	}
	return up(l, attrs.Name)
}

// address gives a host its address and the way out.
func (g *Gateway) address(l *netlink.Handle, addr netip.Addr) error {
	link, err := l.LinkByName(device)
	if err != nil {
		return fmt.Errorf("device %s: %w", device, err)
	}
	bits := g.inside().Bits()
	if g.cfg.NAT == NoNAT {
		bits = 32
	}
	if err := l.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(addr, bits))}); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := l.LinkSetUp(link); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	_, everywhere, _ := net.ParseCIDR("0.0.0.0/0")
	way := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: everywhere, Gw: g.inside().Addr().AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	if err := l.RouteAdd(way); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	return nil
}

// sets makes the address sets that the rules name.
func (g *Gateway) sets() error {
	timeout := uint32(mappingSeconds)
	if g.cfg.UDPTimeout > 0 {
		timeout = uint32(g.cfg.UDPTimeout.Seconds())
	}
	return g.space.Do(func() error {
		for name, kind := range map[string]string{coneSet: "hash:ip,port", hairpinSet: "hash:ip,port,ip"} {
			if err := netlink.IpsetCreate(name, kind, netlink.IpsetCreateOptions{Timeout: &timeout}); err != nil {
				return fmt.Errorf("address set %s: %w", name, err)
			}
		}
		return nil
	})
}

// Forget makes the gateway lose all mappings and permissions, as one does that is switched off and on.
func (g *Gateway) Forget() error {
	if g.space == nil {
		return fmt.Errorf("netlab: gateway %s: not started", g.name)
	}
	err := g.space.Do(func() error {
		for _, name := range []string{coneSet, hairpinSet} {
			if err := netlink.IpsetFlush(name); err != nil {
				return err
			}
		}
		return netlink.ConntrackTableFlush(netlink.ConntrackTable)
	})
	if err != nil {
		return fmt.Errorf("netlab: gateway %s: forget: %w", g.name, err)
	}
	return nil
}
