package rtclink

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

func udp(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func testMux(t *testing.T) *mux {
	t.Helper()
	c := udp(t)
	m, err := newMux(c, []net.Addr{c.LocalAddr()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func (m *mux) testHandle(t *testing.T, ufrag string) *handle {
	t.Helper()
	c, err := m.handle(ufrag, m.addrs[0], func() {}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*handle)
}

func binding(t *testing.T, class stun.MessageClass, user string) []byte {
	t.Helper()
	options := []stun.Setter{stun.TransactionID, stun.NewType(stun.MethodBinding, class)}
	if user != "" {
		options = append(options, stun.NewUsername(user))
	}
	m, err := stun.Build(options...)
	if err != nil {
		t.Fatal(err)
	}
	return m.Raw
}

// heard fails the test unless h gets exactly what was sent to it.
func heard(t *testing.T, h *handle, what []byte) netip.AddrPort {
	t.Helper()
	type got struct {
		b    []byte
		from netip.AddrPort
		err  error
	}
	c := make(chan got, 1)
	go func() {
		b := make([]byte, 2048)
		n, from, err := h.ReadFromAddrPort(b)
		c <- got{b[:n], from, err}
	}()
	g := wait(t, c, "a packet")
	if g.err != nil || !bytes.Equal(g.b, what) {
		t.Fatalf("%q, %v; expected %q", g.b, g.err, what)
	}
	return g.from
}

func (h *handle) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.queue.empty()
}

func TestAnAddressGoesToTheLinkThatProvesIt(t *testing.T) {
	leakCheck(t)
	m := testMux(t)
	old, young := m.testHandle(t, "old"), m.testHandle(t, "young")
	viewer := udp(t)
	to := m.conn.LocalAddr()
	say := func(b []byte) {
		t.Helper()
		if _, err := viewer.WriteTo(b, to); err != nil {
			t.Fatal(err)
		}
	}
	request := binding(t, stun.ClassRequest, "old:viewer")
	say(request)
	from := heard(t, old, request)
	_, _ = old.WriteToAddrPort([]byte("first"), from)
	say([]byte("data"))
	heard(t, old, []byte("data"))

	// Another viewer has the port now. Its request reaches its own agent, and the address stays where it was until
	// that agent has said yes: a forged request moves nothing.
	request = binding(t, stun.ClassRequest, "young:viewer")
	say(request)
	heard(t, young, request)
	_, _ = young.WriteToAddrPort(binding(t, stun.ClassRequest, "viewer:young"), from)
	say([]byte("still the old one's"))
	heard(t, old, []byte("still the old one's"))
	_, _ = young.WriteToAddrPort(binding(t, stun.ClassSuccessResponse, ""), from)
	_, _ = old.WriteToAddrPort([]byte("a keepalive to a peer that is gone"), from)
	say([]byte("the young one's"))
	heard(t, young, []byte("the young one's"))
	if !old.empty() {
		t.Error("the dead link is still fed")
	}

	_ = young.Close()
	if _, err := young.WriteToAddrPort([]byte("x"), from); err == nil {
		t.Error("a closed handle writes")
	}
	m.RemoveConnByUfrag("old")
	if _, _, err := old.ReadFromAddrPort(make([]byte, 100)); err == nil {
		t.Error("a removed port reads")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ports)+len(m.owners) > 0 {
		t.Errorf("%d ports and %d addresses are left", len(m.ports), len(m.owners))
	}
}

// TestAViewerComesBackFromTheSamePort: the first viewer vanishes without a word, and the seed still thinks that it is
// there when the second one takes its port.
func TestAViewerComesBackFromTheSamePort(t *testing.T) {
	leakCheck(t)
	seed, first := listen(t, nil), listen(t, nil)
	a, b := newEnd(), newEnd()
	fed := make(chan []byte, 1)
	b.data = func(m []byte) { fed <- m }
	connect(t, first, seed, a, b)
	settled(t, b.link)
	addr := first.Addr()
	_ = first.socket.conn.Close()
	second := listen(t, func(c *Config) { c.Listen = addr.String() })
	c, d := newEnd(), newEnd()
	got := make(chan []byte, 1)
	d.data = func(m []byte) { got <- bytes.Clone(m) }
	connect(t, second, seed, c, d)
	if !c.link.SendData([]byte("hello again")) {
		t.Fatal("refused")
	}
	if m := wait(t, got, "data of the second viewer"); string(m) != "hello again" {
		t.Errorf("%q", m)
	}
	select {
	case m := <-fed:
		t.Errorf("the dead link was fed %q", m)
	case r := <-b.closed:
		if r == peer.CloseProtocol {
			t.Error("the dead link was fed what it could not read")
		}
	default:
	}
}

// TestPacketsKeepOrderSizeAndAddress sends packets that can be joined, cannot be, and go to several receivers.
func TestPacketsKeepOrderSizeAndAddress(t *testing.T) {
	leakCheck(t)
	from := testMux(t)
	h := from.testHandle(t, "sender")
	receivers := []*mux{testMux(t), testMux(t)}
	var addrs []netip.AddrPort
	var handles []*handle
	for _, r := range receivers {
		in := r.testHandle(t, "receiver")
		addrs = append(addrs, r.conn.LocalAddr().(*net.UDPAddr).AddrPort())
		_, _ = in.WriteToAddrPort([]byte("mine"), from.conn.LocalAddr().(*net.UDPAddr).AddrPort())
		handles = append(handles, in)
	}
	const count = 120 // fits the kernel's default buffer
	var sent [2][]byte
	for i := range uint32(count) {
		size := 1200
		if i%7 == 0 {
			size = 4 + int(i)*5
		}
		b := binary.BigEndian.AppendUint32(nil, i)
		b = append(b, bytes.Repeat([]byte{byte(i)}, size-4)...)
		to := int(i/20) % 2
		sent[to] = append(sent[to], b...)
		if _, err := h.WriteToAddrPort(b, addrs[to]); err != nil {
			t.Fatal(err)
		}
	}
	for to, in := range handles {
		c := make(chan []byte, 1)
		go func() {
			var all []byte
			b := make([]byte, 2048)
			for len(all) < len(sent[to]) {
				n, _, err := in.ReadFromAddrPort(b)
				if err != nil {
					break
				}
				all = append(all, b[:n]...)
			}
			c <- all
		}()
		if got := wait(t, c, "every packet"); !bytes.Equal(got, sent[to]) {
			t.Errorf("receiver %d got %d bytes that are not the %d sent", to, len(got), len(sent[to]))
		}
	}
}

// bareMux has no socket: nothing is sent.
func bareMux() *mux {
	return &mux{ports: map[portKey]*port{}, owners: map[netip.AddrPort]*port{}}
}

func (m *mux) testPort(tb testing.TB, ufrag string) *port {
	tb.Helper()
	c, err := m.handle(ufrag, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, func() {}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return c.(*handle).port
}

func testAddr(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)}), 9)
}

// TestAPortTakesItsAddressesWithIt and no others, whatever was claimed before.
func TestAPortTakesItsAddressesWithIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m, ports := bareMux(), map[string]*port{}
		for range 100 {
			ufrag := string(rune('a' + rng.IntN(6)))
			p := ports[ufrag]
			switch {
			case p == nil:
				ports[ufrag] = m.testPort(t, ufrag)
			case rng.IntN(8) == 0:
				m.RemoveConnByUfrag(ufrag)
				m.claim(p, testAddr(rng.IntN(10)), true) // a port that is gone gets nothing
				delete(ports, ufrag)
			default:
				m.claim(p, testAddr(rng.IntN(10)), rng.IntN(2) == 0)
			}
			owned := map[netip.AddrPort]*port{}
			for _, p := range ports {
				for _, addr := range p.owned {
					if owned[addr] != nil {
						t.Fatalf("%v has two owners", addr)
					}
					owned[addr] = p
				}
			}
			if !maps.Equal(owned, m.owners) {
				t.Fatalf("%v are on record, the ports own %v", m.owners, owned)
			}
		}
	}
}

// TestAPortOwnsFewAddresses: a linked peer asks from as many addresses as it has, and is answered at each.
func TestAPortOwnsFewAddresses(t *testing.T) {
	m := bareMux()
	p, other := m.testPort(t, "a"), m.testPort(t, "b")
	const asked = 1000
	for i := range asked {
		m.claim(p, testAddr(i), true)
	}
	if len(p.owned) != mostOwned || len(m.owners) != mostOwned {
		t.Errorf("%d addresses are the port's and %d are on record", len(p.owned), len(m.owners))
	}
	for i := asked - mostOwned; i < asked; i++ {
		if !p.owns(testAddr(i)) || m.owners[testAddr(i)] != p {
			t.Errorf("the port gave up the address of check %d of %d", i, asked)
		}
	}
	m.claim(p, testAddr(0), false) // a packet goes to an address that was given up
	if !p.owns(testAddr(0)) || m.owners[testAddr(0)] != p {
		t.Error("an address that is in use does not come back")
	}
	m.claim(other, testAddr(0), true)
	if p.owns(testAddr(0)) || m.owners[testAddr(0)] != other || len(m.owners) != mostOwned {
		t.Errorf("another port did not get the address, %d are on record", len(m.owners))
	}
}

// TestAnAgentHearsOfFewAddresses: those of a peer that asks from more are not kept, and those that it has asked from go on.
func TestAnAgentHearsOfFewAddresses(t *testing.T) {
	m := bareMux()
	p := m.testPort(t, "us")
	ask := func(i int) {
		a := arrive(binding(t, stun.ClassRequest, "us:them"))
		a.from = testAddr(i)
		m.deliver(a)
		a.slab.release()
	}
	for i := range 10 * mostOwned {
		ask(i)
	}
	ask(0)
	if n := p.queue.len(); n != mostOwned+1 {
		t.Errorf("the agent hears %d requests", n)
	}
}

func FuzzRequestFor(f *testing.F) {
	m := stun.MustBuild(stun.TransactionID, stun.BindingRequest, stun.NewUsername("us:them"))
	f.Add(m.Raw)
	f.Add(m.Raw[:21])
	f.Fuzz(func(t *testing.T, b []byte) {
		ufrag, ok := requestFor(b)
		if ok && !bytes.Contains(b, append(bytes.Clone(ufrag), ':')) {
			t.Errorf("%q is not in %q", ufrag, b)
		}
		var m stun.Message
		if m.Raw = bytes.Clone(b); m.Decode() != nil || m.Type != stun.BindingRequest || b[0] > 3 { // DTLS begins with more
			return
		}
		if user, err := m.Get(stun.AttrUsername); err == nil {
			want, _, cut := bytes.Cut(user, []byte{':'})
			if ok != cut || !bytes.Equal(ufrag, want) {
				t.Errorf("%q, %v; pion reads %q", ufrag, ok, want)
			}
		}
	})
}
