package netlab

import (
	"net/netip"
	"testing"
	"time"
)

// How mappings and permissions depend on the other side's endpoint, as RFC 4787 calls it.
const (
	independent = "endpoint-independent"
	byAddress   = "address-dependent"
	byPort      = "address and port-dependent"
)

// behavior is what a NAT shows to a host outside, as RFC 5780 finds it out.
type behavior struct {
	mapping, filtering string
	hairpins           bool // by outside addresses, once both have sent there
	local              bool // hosts behind it reach each other on their own network
}

// arrives says whether a datagram gets through, and from where it seems to come. known is the mapping by which x reaches
// the same socket.
func (h home) arrives(from, to socket, at, known netip.AddrPort) (seen netip.AddrPort, ok bool) {
	from.t.Helper()
	number := int(numbers.Add(1))
	from.send(at, number, 100)
	return h.came(to, number, known)
}

// came says whether a datagram that is on its way gets through. The test does not wait for what does not come: it would be there
// before what goes back and forth after it by a way that is known to be open.
func (h home) came(to socket, number int, known netip.AddrPort) (seen netip.AddrPort, ok bool) {
	to.t.Helper()
	for range 3 {
		last := int(numbers.Add(1))
		h.x.send(known, last, 100)
		for at := -1; at != last; {
			got, here := to.receive(10 * time.Second)
			if !here {
				to.t.Fatalf("the way from %v by %v has closed", h.x.addr(), known)
			}
			if at = got.number; at == number {
				seen, ok = got.from, true
			}
		}
		must(to.t, to, h.x, h.x.addr())
	}
	return seen, ok
}

// refusesUnasked checks that nothing gets in to a socket that has sent nothing yet, and returns its mapping towards x.
func (h home) refusesUnasked() netip.AddrPort {
	h.x.t.Helper()
	number := int(numbers.Add(1))
	h.x.send(netip.AddrPortFrom(h.gateway.Addr(), h.inner.addr().Port()), number, 100)
	other := must(h.x.t, h.second, h.x, h.x.addr())
	must(h.x.t, h.x, h.second, other) // by the same way, so what went before has been at the gateway
	first := must(h.x.t, h.inner, h.x, h.x.addr())
	if _, in := h.came(h.inner, number, first); in {
		h.x.t.Error("a datagram got in before anything was sent")
	}
	return first
}

// probe finds out how the gateway of a home behaves.
func (h home) probe() (b behavior) {
	t := h.x.t
	t.Helper()
	first := h.refusesUnasked()
	if from := must(t, h.x, h.inner, first); from != h.x.addr() {
		t.Errorf("the answer came from %v", from)
	}
	b.filtering = byPort
	if _, ok := h.arrives(h.y, h.inner, first, first); ok {
		b.filtering = independent
	} else if _, ok := h.arrives(h.x2, h.inner, first, first); ok {
		b.filtering = byAddress
	}
	port, address := must(t, h.inner, h.x2, h.x2.addr()), must(t, h.inner, h.y, h.y.addr())
	switch first {
	case address:
		b.mapping = independent
	case port:
		b.mapping = byAddress
	default:
		b.mapping = byPort
	}
	second := must(t, h.second, h.x, h.x.addr())
	if second == first {
		t.Errorf("two hosts are seen as %v", second)
	}
	_, _ = h.arrives(h.inner, h.second, second, second)
	_, _ = h.arrives(h.second, h.inner, first, first)
	from, ok := h.arrives(h.inner, h.second, second, second)
	if b.hairpins = ok; ok && from != first {
		t.Errorf("what came by the outside address %v seems to be from %v", first, from)
	}
	_, b.local = h.arrives(h.inner, h.second, h.second.addr(), second)
	return b
}

// Each kind of gateway is what its name says, seen from outside.
func TestBehavior(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  GatewayConfig
		want behavior
	}{
		{"full cone", GatewayConfig{NAT: FullCone}, behavior{independent, independent, false, true}},
		{"full cone, hairpin", GatewayConfig{NAT: FullCone, Hairpin: true}, behavior{independent, independent, true, true}},
		{"port restricted", GatewayConfig{NAT: PortRestricted}, behavior{independent, byPort, false, true}},
		{"port restricted, hairpin", GatewayConfig{NAT: PortRestricted, Hairpin: true}, behavior{independent, byPort, true, true}},
		{"symmetric", GatewayConfig{NAT: Symmetric}, behavior{byPort, byPort, false, true}},
		{"symmetric, hairpin", GatewayConfig{NAT: Symmetric, Hairpin: true}, behavior{byPort, byPort, false, true}},
		{"full cone, hairpin, isolated", GatewayConfig{NAT: FullCone, Hairpin: true, Isolated: true}, behavior{independent, independent, true, false}},
		{"port restricted, isolated", GatewayConfig{NAT: PortRestricted, Isolated: true}, behavior{independent, byPort, false, false}},
		{"port restricted, hairpin, isolated", GatewayConfig{NAT: PortRestricted, Hairpin: true, Isolated: true}, behavior{independent, byPort, true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, c.cfg)
			if got := h.probe(); got != c.want {
				t.Errorf("it is %+v, want %+v", got, c.want)
			}
		})
	}
}
