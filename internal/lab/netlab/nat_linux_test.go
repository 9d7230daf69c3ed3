package netlab

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// home is a gateway with two hosts behind it, and two strangers outside.
type home struct {
	gateway       *Gateway
	outside       *Host // where x is
	elsewhere     *Host // where y is
	one, two      *Host
	inner, second socket // of one and two
	x, y          socket // of the strangers
	x2            socket // another port of the first stranger
}

func newHome(t *testing.T, cfg GatewayConfig) home {
	t.Helper()
	lab := newLab(t, Options{})
	core := lab.Router("core")
	x, _ := lab.Attach("x", core, Path{})
	y, _ := lab.Attach("y", core, Path{})
	g := lab.Gateway("home", cfg)
	lab.Connect(g, core, Both(Link{Delay: time.Millisecond}))
	h := home{gateway: g, outside: x, elsewhere: y, one: g.Host("one"), two: g.Host("two")}
	start(t, lab)
	h.inner, h.second = udp(t, h.one), udp(t, h.two)
	h.x, h.y, h.x2 = udp(t, x), udp(t, y), udp(t, x)
	return h
}

// numbers makes every datagram of the tests a different one.
var numbers atomic.Int64

// reaches says whether a datagram gets through, and from where it seems to come. What is expected to get through may
// take its time.
func reaches(from, to socket, at netip.AddrPort, expected bool) (netip.AddrPort, bool) {
	from.t.Helper()
	wait := quiet
	if expected {
		wait = 10 * time.Second
	}
	number := int(numbers.Add(1))
	from.send(at, number, 100)
	for {
		got, ok := to.receive(wait)
		if !ok || got.number == number {
			return got.from, ok
		}
	}
}

func must(t testing.TB, from, to socket, at netip.AddrPort) netip.AddrPort {
	t.Helper()
	seen, ok := reaches(from, to, at, true)
	if !ok {
		t.Fatalf("nothing got from %v to %v by %v", from.addr(), to.addr(), at)
	}
	return seen
}

func mustNot(t *testing.T, what string, from, to socket, at netip.AddrPort) {
	t.Helper()
	if _, ok := reaches(from, to, at, false); ok {
		t.Errorf("%s: a datagram got from %v to %v by %v", what, from.addr(), to.addr(), at)
	}
}

func TestHairpin(t *testing.T) {
	for _, c := range []struct {
		nat           NAT
		hairpin       bool
		first, answer bool // the first datagram gets through; one gets through when the other host has sent, too
	}{
		{FullCone, false, false, false},
		{FullCone, true, true, true},
		{PortRestricted, false, false, false},
		{PortRestricted, true, false, true},
		{Symmetric, false, false, false},
		{Symmetric, true, false, false}, // where each mapping has its own port, no host can know which to send to
	} {
		name := string(c.nat)
		if c.hairpin {
			name += " hairpin"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, GatewayConfig{NAT: c.nat, Hairpin: c.hairpin})
			one, two := must(t, h.inner, h.x, h.x.addr()), must(t, h.second, h.x, h.x.addr())
			must(t, h.inner, h.second, h.second.addr()) // on their own network they always do

			if _, got := reaches(h.inner, h.second, two, c.first); got != c.first {
				t.Errorf("the first datagram gets through: %v, want %v", got, c.first)
			}
			from, got := reaches(h.second, h.inner, one, c.answer)
			if got != c.answer {
				t.Errorf("the answer gets through: %v, want %v", got, c.answer)
			}
			if got && from != two {
				t.Errorf("the answer comes from %v, the mapping is %v", from, two)
			}
			if from, got := reaches(h.inner, h.second, two, c.answer); got != c.answer || got && from != one {
				t.Errorf("then, a datagram from %v gets through: %v, want %v from %v", from, got, c.answer, one)
			}
		})
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	h := newHome(t, GatewayConfig{NAT: Symmetric})
	mapping := must(t, h.inner, h.x, h.x.addr())
	must(t, h.x, h.inner, mapping)
	if err := h.gateway.Forget(); err != nil {
		t.Fatal(err)
	}
	mustNot(t, "a forgotten mapping", h.x, h.inner, mapping)
	if again := must(t, h.inner, h.x, h.x.addr()); again == mapping {
		t.Errorf("a random port was %v twice", again)
	}

	full := newHome(t, GatewayConfig{NAT: FullCone})
	mapping = must(t, full.inner, full.x, full.x.addr())
	must(t, full.y, full.inner, mapping)
	if err := full.gateway.Forget(); err != nil {
		t.Fatal(err)
	}
	mustNot(t, "a forgotten mapping", full.y, full.inner, mapping)
}

func TestMappingsTimeOut(t *testing.T) {
	t.Parallel()
	h := newHome(t, GatewayConfig{NAT: FullCone, UDPTimeout: 3 * time.Second})
	mapping := must(t, h.inner, h.x, h.x.addr())
	must(t, h.y, h.inner, mapping)
	for deadline := time.Now().Add(60 * time.Second); ; {
		// Asking about the mapping must not keep it alive: a stranger asks, from a new port each time, and what comes
		// in does not count.
		stranger := udp(t, h.elsewhere)
		if _, ok := reaches(stranger, h.inner, mapping, false); !ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the mapping does not end")
		}
	}
}

func TestUDPIsBlocked(t *testing.T) {
	t.Parallel()
	for _, nat := range []NAT{NoNAT, PortRestricted} {
		h := newHome(t, GatewayConfig{NAT: nat, BlockUDP: true})
		mustNot(t, "outwards", h.inner, h.x, h.x.addr())
		mustNot(t, "inwards", h.x, h.inner, h.inner.addr())
		must(t, h.inner, h.second, h.second.addr())

		listener, err := h.outside.Listen(t.Context(), "tcp", netip.AddrPortFrom(h.outside.Addr(), 0).String())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if n, _ := transfer(t, h.one, listener, 10*time.Millisecond); n == 0 {
			t.Error("TCP does not get through")
		}
	}
}

func TestNoNATRoutesBothWays(t *testing.T) {
	t.Parallel()
	h := newHome(t, GatewayConfig{})
	if from := must(t, h.x, h.inner, h.inner.addr()); from != h.x.addr() {
		t.Errorf("came from %v, sent by %v", from, h.x.addr())
	}
	if from := must(t, h.inner, h.x, h.x.addr()); from != h.inner.addr() {
		t.Errorf("came from %v, sent by %v", from, h.inner.addr())
	}
	must(t, h.inner, h.second, h.second.addr())
}

func TestAHostMoves(t *testing.T) {
	t.Parallel()
	for _, nat := range []NAT{NoNAT, PortRestricted, FullCone, Symmetric} {
		lab := newLab(t, Options{})
		core := lab.Router("core")
		x, _ := lab.Attach("x", core, Path{})
		home, away := lab.Gateway("home", GatewayConfig{NAT: PortRestricted}), lab.Gateway("away", GatewayConfig{NAT: nat})
		lab.Connect(home, core, Both(Link{Delay: time.Millisecond}))
		lab.Connect(away, core, Both(Link{Delay: time.Millisecond}))
		h, stays := home.Host("h"), away.Host("stays")
		away.Keep(h)
		start(t, lab)
		outside, neighbor := udp(t, x), udp(t, stays)
		conn, err := h.ListenPacket(t.Context(), "udp4", ":0")
		if err != nil {
			t.Fatal(err)
		}
		roaming := stamped(t, conn.(*net.UDPConn))
		before := must(t, roaming, outside, outside.addr())
		must(t, outside, roaming, before)
		if err := h.Move(home); err == nil {
			t.Error("a host moved to where it is")
		}
		old := h.Addr()
		if err := h.Move(away); err != nil {
			t.Fatal(err)
		}
		if h.Addr() == old {
			t.Errorf("%s: its address is still %v", nat, old)
		}
		mustNot(t, "where it was", outside, roaming, before)
		after := must(t, roaming, outside, outside.addr())
		if want := away.Addr(); nat != NoNAT && after.Addr() != want || nat == NoNAT && after.Addr() != h.Addr() || after.Addr() == before.Addr() {
			t.Errorf("%s: it comes from %v, and came from %v", nat, after, before)
		}
		must(t, outside, roaming, after)
		must(t, roaming, neighbor, neighbor.addr())
		if err := h.Move(home); err != nil {
			t.Fatal(err)
		}
		if back := must(t, roaming, outside, outside.addr()); back.Addr() != before.Addr() {
			t.Errorf("%s: back home it comes from %v, and came from %v", nat, back, before)
		}
	}
}
