package app

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/cmdline"
)

// The headers in which a proxy may name its client. Only one of them is believed: a proxy that writes the one passes on what
// its client wrote into the other.
const (
	headerXForwardedFor = "x-forwarded-for"
	headerForwarded     = "forwarded" // RFC 7239
)

// proxies are the proxies and balancers whose statements about client addresses are believed, and the form of these statements.
type proxies struct {
	trusted    []netip.Prefix // by a header of each request
	introduces []netip.Prefix // by the PROXY protocol
	header     string
	region     string // the header with a viewer's region; empty: there is none
}

// maxRegion bounds the label of a region, bytes.
const maxRegion = 32

func newProxies(c TrackerConfig) (p proxies, err error) {
	p.header, p.region = c.ProxyHeader, c.RegionHeader
	if p.trusted, err = prefixes("tracker.trusted_proxies", c.TrustedProxies); err != nil {
		return p, err
	}
	p.introduces, err = prefixes("tracker.proxy_protocol", c.ProxyProtocol)
	return p, err
}

func (p *proxies) trusts(a netip.Addr) bool     { return within(p.trusted, a) }
func (p *proxies) isBalancer(a netip.Addr) bool { return within(p.introduces, a) }

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// client is the address of the requesting client: the socket's other end, which a balancer may have named. If that is a trusted
// proxy, it is the rightmost address in its header that is not a trusted proxy. Addresses further left were written by the client
// and prove nothing.
func (p *proxies) client(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := plainAddr(at.Addr())
	if !p.trusts(addr) {
		return addr
	}
	hops := p.hops(r.Header)
	for i := len(hops) - 1; i >= 0 && p.trusts(addr); i-- {
		hop, ok := hopAddr(hops[i])
		if !ok {
			break // a proxy that is trusted and writes no address: it is all that is known
		}
		addr = hop
	}
	return addr
}

// regionOf is what a trusted proxy calls the place of its client, in lower case; empty: nothing, or no label. Of several headers the last
// one counts: the proxy wrote it.
func (p *proxies) regionOf(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if p.region == "" || err != nil || !p.trusts(plainAddr(at.Addr())) {
		return ""
	}
	all := r.Header.Values(p.region)
	if len(all) == 0 {
		return ""
	}
	label := strings.ToLower(strings.TrimSpace(all[len(all)-1]))
	if len(label) > maxRegion || strings.ContainsFunc(label, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return ""
	}
	return label
}

// hops are the ends of connections that proxies tell of, the nearest last.
func (p *proxies) hops(h http.Header) (all []string) {
	if p.header != headerForwarded {
		return strings.Split(strings.Join(h.Values(headerXForwardedFor), ","), ",")
	}
	for _, element := range unquotedSplit(strings.Join(h.Values(headerForwarded), ","), ',') {
		hop := ""
		for _, pair := range unquotedSplit(element, ';') {
			if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); strings.EqualFold(name, "for") {
				hop = unquoted(value)
			}
		}
		all = append(all, hop)
	}
	return all
}

// hopAddr reads an address as proxies write it: with a port or without, and in brackets or not.
func hopAddr(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if at, err := netip.ParseAddrPort(text); err == nil {
		return plainAddr(at.Addr()), true
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok {
			return netip.Addr{}, false
		}
	}
	a, err := netip.ParseAddr(text)
	return plainAddr(a), err == nil
}

func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// unquotedSplit cuts a text at a mark wherever that does not stand in a quoted string. It reads from the end, where what a
// trusted proxy wrote stands: a string that the client did not close hides nothing of it.
func unquotedSplit(text string, mark byte) (parts []string) {
	to, quoted := len(text), false
	for i := len(text) - 1; i >= 0; i-- {
		switch {
		case text[i] == '"' && !escaped(text[:i]):
			quoted = !quoted
		case !quoted && text[i] == mark:
			parts, to = append(parts, text[i+1:to]), i
		}
	}
	parts = append(parts, text[:to])
	slices.Reverse(parts)
	return parts
}

// escaped says whether what follows a text stands for itself.
func escaped(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// unquoted is a value without its quotes. No address has a character that could be escaped.
func unquoted(value string) string {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

func prefixes(key string, list []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for i, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, cmdline.Usage(fmt.Errorf("%s[%d]: %q is no range of addresses (write CIDR, such as 10.0.0.0/8)", key, i, text))
		}
		all = append(all, p.Masked())
	}
	return all, nil
}
