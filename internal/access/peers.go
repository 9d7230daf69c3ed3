package access

import (
	"fmt"
	"net/netip"
)

// Why a peer is refused (spec/turn.md, "Refused ranges").
const (
	peerLoopback  = "loopback"
	peerLinkLocal = "link-local"
	peerPrivate   = "private"
	peerShared    = "shared"
	peerMulticast = "multicast"
	peerMetadata  = "metadata"
	peerReserved  = "reserved"
)

// PeerClasses are the classes of refused ranges.
var PeerClasses = []string{peerLoopback, peerLinkLocal, peerPrivate, peerShared, peerMulticast, peerMetadata, peerReserved}

// ranges that are refused, with their class; the first that holds an address counts. What is in none and no global
// unicast address is reserved.
var ranges = func() (all []classed) {
	for _, r := range []struct{ prefix, class string }{
		{"169.254.169.254/32", peerMetadata}, {"169.254.170.2/32", peerMetadata}, {"168.63.129.16/32", peerMetadata},
		{"100.100.100.200/32", peerMetadata}, {"192.0.0.192/32", peerMetadata}, {"fd00:ec2::/32", peerMetadata},
		{"127.0.0.0/8", peerLoopback}, {"::1/128", peerLoopback},
		{"169.254.0.0/16", peerLinkLocal}, {"fe80::/10", peerLinkLocal},
		{"10.0.0.0/8", peerPrivate}, {"172.16.0.0/12", peerPrivate}, {"192.168.0.0/16", peerPrivate},
		{"fc00::/7", peerPrivate}, {"fec0::/10", peerPrivate},
		{"100.64.0.0/10", peerShared},
		{"224.0.0.0/4", peerMulticast}, {"ff00::/8", peerMulticast},
		{"0.0.0.0/8", peerReserved}, {"192.0.0.0/24", peerReserved}, {"192.0.2.0/24", peerReserved}, {"192.88.99.0/24", peerReserved},
		{"198.18.0.0/15", peerReserved}, {"198.51.100.0/24", peerReserved}, {"203.0.113.0/24", peerReserved}, {"240.0.0.0/4", peerReserved},
		{"2001::/23", peerReserved}, {"2001:db8::/32", peerReserved}, {"2002::/16", peerReserved}, {"3fff::/20", peerReserved},
	} {
		all = append(all, classed{netip.MustParsePrefix(r.prefix), r.class})
	}
	return all
}()

type classed struct {
	prefix netip.Prefix
	class  string
}

var global6 = netip.MustParsePrefix("2000::/3")

// classOf says why nothing is sent to an address; empty: it may be.
func classOf(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	for _, r := range ranges {
		if r.prefix.Contains(a) {
			return r.class
		}
	}
	if !a.Is4() && !global6.Contains(a) {
		return peerReserved
	}
	return ""
}

// Peer is what may be reached although it lies in a refused range.
type Peer struct {
	Prefix netip.Prefix
	Port   uint16 // 0: any
}

// ParsePeer reads a range, an address, or an address and port.
func ParsePeer(text string) (Peer, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return Peer{Prefix: p.Masked()}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return Peer{Prefix: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())}, nil
	}
	if at, err := netip.ParseAddrPort(text); err == nil && at.Port() != 0 {
		a := at.Addr().Unmap()
		return Peer{netip.PrefixFrom(a, a.BitLen()), at.Port()}, nil
	}
	return Peer{}, fmt.Errorf("%q is no range, address, or address and port (such as 10.1.0.0/16, 10.1.2.3 or 10.1.2.3:4600)", text)
}

// Reach is what packets may be sent to because a stranger names it: no refused range (spec/turn.md), but for what Allow lists.
type Reach struct{ Allow []Peer }

// Refuses is the class of the refused range that an address lies in; empty: something there may be reached.
func (r Reach) Refuses(a netip.Addr) string {
	a = a.Unmap()
	for _, p := range r.Allow {
		if p.Prefix.Contains(a) {
			return ""
		}
	}
	return classOf(a)
}

// Lists says whether a place is reached because Allow lists it.
func (r Reach) Lists(to netip.AddrPort) bool {
	a := to.Addr().Unmap()
	for _, p := range r.Allow {
		if p.Prefix.Contains(a) && (p.Port == 0 || p.Port == to.Port()) {
			return true
		}
	}
	return false
}

// RefusesPort is Refuses for one port.
func (r Reach) RefusesPort(to netip.AddrPort) string {
	if r.Lists(to) {
		return ""
	}
	return classOf(to.Addr())
}
