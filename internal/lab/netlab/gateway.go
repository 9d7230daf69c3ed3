package netlab

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// NAT is how a gateway translates addresses, in the terms of RFC 4787.
type NAT string

// The kinds of NAT.
const (
	// NoNAT routes: hosts behind the gateway have public addresses.
	NoNAT NAT = ""
	// FullCone has one mapping per inside address and port, and lets in every host that sends to it.
	FullCone NAT = "full-cone"
	// PortRestricted has one mapping per inside address and port, and lets those addresses and ports in to which the
	// mapping has sent.
	PortRestricted NAT = "port-restricted"
	// Symmetric has a mapping of its own, with a random port, for each destination address and port.
	Symmetric NAT = "symmetric"
)

// GatewayConfig says what a gateway does.
type GatewayConfig struct {
	NAT NAT
	// Hairpin lets hosts behind a NAT reach each other's outside addresses, by the rules for outsiders. Behind a symmetric
	// one these let no host in: each of two hosts would have to know a port that the other's NAT makes for it alone.
	Hairpin bool
	// Isolated keeps hosts behind the gateway from reaching each other on their own network, as guest networks and the NATs of
	// carriers do: what is left is the way by the outside.
	Isolated bool
	// BlockUDP drops UDP in both directions. Hosts behind the gateway still reach each other on their own network.
	BlockUDP bool
	// UDPTimeout is how long a mapping or a permission outlives its last packet; 0 is the kernel's 30 s, or 120 s once
	// packets have gone both ways.
	UDPTimeout time.Duration
}

// Ports that a host takes when it has no wish, divided among the hosts behind a NAT: each keeps its ports outside, so
// that the mapping does not depend on the destination, which the kernel's NAT alone would not promise.
const (
	firstPort = 32768
	lastPort  = 60999
	maxInside = 64
)

// Gateway is a router with hosts behind it, as in a home or an office: iptables in a namespace.
type Gateway struct {
	*spot
	lab    *Lab
	cfg    GatewayConfig
	number int // counts gateways from 1
	seats  []seat
}

// seat is a host's place behind a gateway.
type seat struct {
	host *Host
	addr netip.Addr
	free bool // kept for a host that is elsewhere
}

// Gateway adds a gateway. It needs a line, its access link.
func (l *Lab) Gateway(name string, cfg GatewayConfig) *Gateway {
	g := &Gateway{lab: l, cfg: cfg, number: len(l.gateways) + 1, spot: &spot{node: l.node(name, true), name: name, addr: l.nextAddr()}}
	g.settings = [][2]string{{"net.ipv4.ip_forward", "1"}, {"net.ipv4.conf.all.rp_filter", "0"}, {"net.ipv4.conf.default.rp_filter", "0"}}
	switch {
	case cfg.NAT != NoNAT && cfg.NAT != FullCone && cfg.NAT != PortRestricted && cfg.NAT != Symmetric:
		l.fail("%s: no NAT %q", name, cfg.NAT)
	case cfg.Hairpin && cfg.NAT == NoNAT:
		l.fail("%s: hairpinning is about translated addresses, and this gateway translates none", name)
	case cfg.UDPTimeout != 0 && cfg.UDPTimeout < time.Second:
		l.fail("%s: a UDP timeout of %v is shorter than the second in which the kernel counts", name, cfg.UDPTimeout)
	case g.number > 250:
		l.fail("%s: there are more than 250 gateways", name)
	}
	l.gateways = append(l.gateways, g)
	l.spots = append(l.spots, g.spot)
	return g
}

// Name of the gateway.
func (g *Gateway) Name() string { return g.name }

// Addr is the gateway's outside address.
func (g *Gateway) Addr() netip.Addr { return g.addr }

// Host adds a host behind the gateway, on an Ethernet that hosts behind it share.
func (g *Gateway) Host(name string) *Host {
	g.lab.node(name, true) // keeps names apart; the host has no line
	g.lab.nodes = g.lab.nodes[:len(g.lab.nodes)-1]
	h := &Host{lab: g.lab, gateway: g, spot: &spot{name: name}}
	h.addr = g.seat(h, false)
	g.lab.spots = append(g.lab.spots, h.spot)
	return h
}

// Keep has a host of another gateway have a place behind this one, too, to which it may Move.
func (g *Gateway) Keep(h *Host) {
	if h.gateway == nil || h.gateway == g {
		g.lab.fail("%s: keeps a place for %s, which is not behind another gateway", g.name, h.name)
	}
	g.seat(h, true)
}

func (g *Gateway) seat(h *Host, free bool) netip.Addr {
	addr := netip.AddrFrom4([4]byte{192, 168, byte(g.number), byte(len(g.seats) + 2)})
	if g.cfg.NAT == NoNAT {
		addr = g.lab.nextAddr()
		g.routed = append(g.routed, addr)
	}
	if len(g.seats) == maxInside {
		g.lab.fail("%s: more than %d hosts behind a gateway", g.name, maxInside)
	}
	g.seats = append(g.seats, seat{h, addr, free})
	return addr
}

// inside is the gateway's own address and network on the side of its hosts.
func (g *Gateway) inside() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(g.number), 1}), 24)
}

// ports returns the range that belongs to the inside host number i.
func (g *Gateway) ports(i int) (first, last int) {
	each := (lastPort - firstPort + 1) / len(g.seats)
	return firstPort + i*each, firstPort + (i+1)*each - 1
}

// Names of the address sets that say what an inside host has sent: cone has inside address and port, hairpin the other
// inside host too.
const (
	coneSet    = "cone"
	hairpinSet = "hairpin"
	inDevice   = "lan"
)

// rules returns the gateway's rules in the form of iptables-restore.
func (g *Gateway) rules() string {
	filter := []string{":INPUT DROP", ":FORWARD DROP", "-A INPUT -p icmp -j ACCEPT", "-A INPUT -i lo -j ACCEPT"}
	var nat, mangle []string
	if g.cfg.BlockUDP {
		filter = append(filter, fmt.Sprintf("-A FORWARD -i %s -p udp -j DROP", device), fmt.Sprintf("-A FORWARD -o %s -p udp -j DROP", device))
	}
	filter = append(filter,
		"-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
		fmt.Sprintf("-A FORWARD -i %s -o %s -j ACCEPT", inDevice, device))
	switch g.cfg.NAT {
	case NoNAT:
		filter = append(filter, "-A FORWARD -j ACCEPT")
	case Symmetric:
		nat = append(nat, fmt.Sprintf("-A POSTROUTING -o %s -j MASQUERADE --random-fully", device))
	case PortRestricted:
		nat = append(nat, fmt.Sprintf("-A POSTROUTING -o %s -j MASQUERADE", device))
	case FullCone:
		nat = append(nat, fmt.Sprintf("-A POSTROUTING -o %s -j MASQUERADE", device))
		nat = append(nat, g.forwards("-i "+device)...)
		mangle = append(mangle, fmt.Sprintf("-A FORWARD -i %s -p udp -j SET --add-set %s src,src --exist", inDevice, coneSet))
		filter = append(filter, fmt.Sprintf("-A FORWARD -p udp -m set --match-set %s dst,dst -j ACCEPT", coneSet))
	}
	if g.cfg.Hairpin && g.cfg.NAT != Symmetric {
		nat = append(nat, g.forwards("-i "+inDevice)...)
		nat = append(nat, fmt.Sprintf("-A POSTROUTING -o %s -p udp -m conntrack --ctstate DNAT -s %v -j SNAT --to-source %v",
			inDevice, g.inside().Masked(), g.addr))
		if g.cfg.NAT == PortRestricted {
			mangle = append(mangle, fmt.Sprintf("-A FORWARD -i %[1]s -o %[1]s -p udp -j SET --add-set %[2]s src,src,dst --exist", inDevice, hairpinSet))
			filter = append(filter, fmt.Sprintf("-A FORWARD -i %[1]s -o %[1]s -p udp -m set --match-set %[2]s dst,dst,src -j ACCEPT", inDevice, hairpinSet))
		}
	}
	return table("filter", filter) + table("nat", nat) + table("mangle", mangle)
}

// forwards sends what comes for a port of the outside address to the inside host whose port it is.
func (g *Gateway) forwards(from string) []string {
	var lines []string
	for i, s := range g.seats {
		first, last := g.ports(i)
		lines = append(lines, fmt.Sprintf("-A PREROUTING %s -p udp -d %v --dport %d:%d -j DNAT --to-destination %v", from, g.addr, first, last, s.addr))
	}
	return lines
}

func table(name string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "*" + name + "\n" + strings.Join(lines, "\n") + "\nCOMMIT\n"
}
