package sdp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Limits of a candidate.
const (
	MaxCandidate  = 512 // bytes of text
	maxCost       = 999
	maxFoundation = 32 // RFC 8839, 5.1
	maxName       = 63 // characters of an mDNS name before .local
)

// Types of candidates (RFC 8839, 5.1).
const (
	Host            = "host"
	ServerReflexive = "srflx"
	PeerReflexive   = "prflx"
	Relayed         = "relay"
)

// Candidate is an address of the other side that may be checked: of component 1, over UDP.
type Candidate struct {
	Foundation string
	Priority   uint32
	Addr       netip.Addr // IPv4 in its own form, without a zone; the zero value: Name says it
	Name       string     // an mDNS name; empty where there is an address
	Port       uint16
	Type       string
	Cost       int // of the network, as WebRTC's browsers state it; 0: none is stated
}

// ParseCandidate reads the value of a candidate attribute, "candidate:…", with or without "a=" before it. False is what is malformed
// and what is never used: other components, TCP, host names that are no mDNS names.
func ParseCandidate(text string) (c Candidate, ok bool) {
	text = strings.TrimPrefix(text, "a=")
	if len(text) > MaxCandidate || !visible(text) {
		return Candidate{}, false
	}
	if text, ok = strings.CutPrefix(text, "candidate:"); !ok {
		return Candidate{}, false
	}
	f := strings.Split(text, " ")
	if len(f) < 8 || f[1] != "1" || !strings.EqualFold(f[2], "udp") || f[6] != "typ" {
		return Candidate{}, false
	}
	priority, known := number(f[3], 1<<32-1)
	port, open := number(f[5], 1<<16-1)
	if !known || !open || port == 0 || !iceText(f[0], 1, maxFoundation) {
		return Candidate{}, false
	}
	c = Candidate{Foundation: strings.Clone(f[0]), Priority: uint32(priority), Port: uint16(port)}
	switch f[7] {
	case Host, ServerReflexive, PeerReflexive, Relayed:
		c.Type = strings.Clone(f[7])
	default:
		return Candidate{}, false
	}
	addr, err := netip.ParseAddr(f[4])
	switch {
	case err != nil:
		c.Name, ok = mdnsName(f[4])
	case addr.Zone() != "":
		ok = false
	default:
		c.Addr = addr.Unmap()
	}
	if !ok {
		return Candidate{}, false
	}
	c.Cost = cost(f[8:])
	return c, true
}

// cost is that of the network, among what follows the type: names and values by turns.
func cost(rest []string) int {
	for ; len(rest) > 1; rest = rest[2:] {
		if rest[0] == "network-cost" {
			if n, ok := number(rest[1], maxCost); ok {
				return int(n)
			}
			break
		}
	}
	return 0
}

// String is the value of the attribute, "candidate:…". What the candidate is based on is left out: it is for diagnosis, and shows an
// address. The cost stays: a browser adds both sides' before it compares pairs, and prefers a relay to what seems to cost more.
func (c Candidate) String() string {
	address, based := c.Name, ""
	if c.Name == "" {
		address = c.Addr.String()
	}
	if c.Type != Host {
		based = " raddr 0.0.0.0 rport 0"
		if c.Addr.Is6() {
			based = " raddr :: rport 0"
		}
	}
	if c.Cost > 0 {
		based += fmt.Sprintf(" network-cost %d", c.Cost)
	}
	return fmt.Sprintf("candidate:%s 1 udp %d %s %d typ %s%s", c.Foundation, c.Priority, address, c.Port, c.Type, based)
}

// mdnsName reads a name that a browser hides an address behind, in lower case.
func mdnsName(s string) (string, bool) {
	s = strings.ToLower(s)
	label, ok := strings.CutSuffix(s, ".local")
	if !ok || label == "" || len(label) > maxName || strings.ContainsFunc(label, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	}) {
		return "", false
	}
	return s, true
}

// number reads a decimal without sign and without leading zeros.
func number(s string, most uint64) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n <= most && (s[0] != '0' || s == "0")
}

// iceText says whether s has least to most characters of ICE (RFC 8839, ice-char).
func iceText(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '/'
	})
}

// visible says whether s has ASCII characters alone that are shown, and spaces.
func visible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
