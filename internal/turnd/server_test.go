package turnd

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/turn/v5"

	"github.com/leeway-video/leeway/internal/lab/turnclient"
	"github.com/leeway-video/leeway/internal/relay"
)

func TestRelays(t *testing.T) {
	for _, transport := range []string{"udp", "tcp", "tls"} {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, allowLoopback)
			conn := w.allocate(transport, "a")
			peer := echo(t, "127.0.0.1:0")
			for range 3 { // indications at first, a channel then
				from, text := exchange(t, conn, peer, conn, strings.Repeat("hello ", 200))
				if addrPort(from) != addrPort(peer) || text != strings.Repeat("hello ", 200) {
					t.Errorf("%q came from %v", text, from)
				}
			}
			if n := w.Allocations(); n != 1 {
				t.Errorf("%d allocations", n)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			w.drained()
		})
	}
}

// drained waits until no allocation is left.
func (w *world) drained() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.Drain(ctx)
	if n := w.Allocations(); n != 0 {
		w.t.Errorf("%d allocations are left", n)
	}
}

// TestRelaysOnAllAddresses: the socket is of both families then, and IPv4 travels in IPv6's clothes.
func TestRelaysOnAllAddresses(t *testing.T) {
	w := newWorld(t, func(c *Config, r *relay.Config) {
		c.Listen, c.ListenTLS, c.Announce = ":0", "", []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		allowLoopback(c, r)
	})
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(w.Addr().(*net.TCPAddr).Port))
	username, password := w.secret.Mint("demo", "a", time.Now().Add(time.Minute))
	conn, err := turnclient.Allocate(at.String(), username, password)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer := echo(t, "127.0.0.1:0")
	for range 3 {
		if from, text := exchange(t, conn, peer, conn, "hello"); addrPort(from) != addrPort(peer) || text != "hello" {
			t.Errorf("%q from %v", text, from)
		}
	}
}

func TestRelaysIPv6(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("no IPv6 here")
	} else {
		_ = l.Close()
	}
	w := newWorld(t, func(c *Config, r *relay.Config) {
		c.Listen, c.ListenTLS = "[::1]:0", ""
		allowLoopback(c, r)
	})
	conn := w.allocate("udp", "a")
	peer := echo(t, "[::1]:0")
	if from, _ := exchange(t, conn, peer, conn, "hello"); addrPort(from) != addrPort(peer) {
		t.Errorf("an answer from %v", from)
	}
}

// TestTwoViewersMeetAtTheRelay: both may only be relayed, so each is the other's peer at a relayed address. The address is
// announced as one that no range refuses or as one that is not this machine's; either way packets stay inside.
func TestTwoViewersMeetAtTheRelay(t *testing.T) {
	for name, announce := range map[string][]netip.Addr{"own address": nil, "translated address": {netip.MustParseAddr("198.51.100.7")}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config, _ *relay.Config) { c.Announce = announce })
			a, b := w.allocate("udp", "a"), w.allocate("tcp", "b")
			if announce != nil && addrPort(a.LocalAddr()).Addr() != announce[0] {
				t.Fatalf("relayed at %v, announced is %v", a.LocalAddr(), announce)
			}
			// b has to have a permission before a's packets come through.
			if _, err := b.WriteTo([]byte("knock"), a.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			from, text := exchange(t, a, b.LocalAddr(), b, "hello")
			if text != "hello" || addrPort(from) != addrPort(a.LocalAddr()) {
				t.Errorf("%q from %v, want hello from %v", text, from, a.LocalAddr())
			}
		})
	}
}

// TestAClientOfUDPAndOneOfTCPMayHaveOneAddress: one port of a viewer's address, or of a NAT, may be in use for both.
func TestAClientOfUDPAndOneOfTCPMayHaveOneAddress(t *testing.T) {
	w := newWorld(t, allowLoopback)
	username, password := w.secret.Mint("demo", "a", time.Now().Add(time.Minute))
	datagrams := w.dial("udp")
	at := datagrams.LocalAddr().(*net.UDPAddr)
	raw, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: at.IP, Port: at.Port}}).Dial("tcp", w.Addr().String())
	if err != nil {
		t.Skipf("the port is in use: %v", err)
	}
	stream := turn.NewSTUNConn(raw)
	defer stream.Close()
	first, second := w.clientOver(datagrams, username, password), w.clientOver(stream, username, password)
	relayed, err := first.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	defer relayed.Close()
	gone, err := second.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	// Answered behind what gave the allocation back.
	if _, err := second.SendBindingRequest(); err != nil || w.Allocations() != 1 {
		t.Fatalf("%d allocations, %v", w.Allocations(), err)
	}
	if err := first.CreatePermission(&net.UDPAddr{IP: net.ParseIP("8.8.8.8"), Port: 80}); err != nil {
		t.Errorf("no permission once the client of TCP has gone: %v", err)
	}
	peer := echo(t, "127.0.0.1:0")
	for range 3 {
		if from, text := exchange(t, relayed, peer, relayed, "hello"); addrPort(from) != addrPort(peer) || text != "hello" {
			t.Errorf("%q came from %v", text, from)
		}
	}
}

// TestNothingElseOfTheRelayIsReached: the relay's own address is permitted for other viewers' relayed addresses, and is no way to
// the services beside it.
func TestNothingElseOfTheRelayIsReached(t *testing.T) {
	w := newWorld(t, nil)
	conn, other := w.allocate("udp", "a"), w.allocate("udp", "b")
	secret, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	for range 20 {
		if _, err := conn.WriteTo([]byte("let me in"), secret.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	// What went after these has arrived, so they would have.
	if _, err := other.WriteTo([]byte("knock"), conn.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	exchange(t, conn, other.LocalAddr(), other, "hello")
	_ = secret.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, from, err := secret.ReadFrom(make([]byte, 100)); err == nil {
		t.Errorf("%d bytes reached a service beside the relay, from %v", n, from)
	}
}

func TestRefusedPeers(t *testing.T) {
	w := newWorld(t, nil)
	c := w.client("udp", "a")
	conn, err := c.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, addr := range []string{"127.0.0.2", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.1.1", "224.0.0.1", "0.0.0.0"} {
		if err := c.CreatePermission(&net.UDPAddr{IP: net.ParseIP(addr), Port: 80}); err == nil {
			t.Errorf("there is a permission for %s", addr)
		}
		if _, err := conn.WriteTo([]byte("x"), &net.UDPAddr{IP: net.ParseIP(addr), Port: 80}); err == nil {
			t.Errorf("something was sent to %s", addr)
		}
	}
	if err := c.CreatePermission(&net.UDPAddr{IP: net.ParseIP("8.8.8.8"), Port: 80}); err != nil { // nothing is sent there
		t.Errorf("no permission for an address of the internet: %v", err)
	}
}

func TestCredentials(t *testing.T) {
	w := newWorld(t, nil)
	good, password := w.secret.Mint("demo", "a", time.Now().Add(time.Minute))
	expired, expiredPassword := w.secret.Mint("demo", "a", time.Now().Add(-time.Second))
	for name, c := range map[string]struct {
		username, password string
		ok                 bool
	}{
		"good": {good, password, true}, "wrong password": {good, password + "x", false}, "of another": {strings.Replace(good, ":a:", ":b:", 1), password, false},
		"expired": {expired, expiredPassword, false}, "malformed": {"somebody", password, false}, "none": {"", "", false},
	} {
		conn, err := w.clientAs("udp", c.username, c.password).Allocate()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

func TestQuotaOfAUser(t *testing.T) {
	w := newWorld(t, func(_ *Config, r *relay.Config) { r.MaxPerUser = 2 })
	w.allocate("udp", "a")
	w.allocate("tls", "a")
	if _, err := w.client("tcp", "a").Allocate(); err == nil || !strings.Contains(err.Error(), "486") {
		t.Errorf("a third allocation: %v", err)
	}
	w.allocate("udp", "b")
}

func TestDrain(t *testing.T) {
	w := newWorld(t, allowLoopback)
	conn := w.allocate("udp", "a")
	peer := echo(t, "127.0.0.1:0")
	exchange(t, conn, peer, conn, "before")
	w.relay.Drain()
	for _, transport := range []string{"udp", "tcp"} {
		if transport == "tcp" {
			c, err := net.Dial("tcp", w.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(patience))
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a relay that drains serves a new connection")
			}
			_ = c.Close()
			continue
		}
		if c, err := w.client(transport, "b").Allocate(); err == nil {
			_ = c.Close()
			t.Error("a relay that drains gives an allocation")
		}
	}
	exchange(t, conn, peer, conn, "after")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Drain(context.Background())
	}()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("draining does not end with the last allocation")
	}
}

// TestCloseEndsEverything while packets flow; newWorld looks for what is left.
func TestCloseEndsEverything(t *testing.T) {
	w := newWorld(t, allowLoopback)
	peer := echo(t, "127.0.0.1:0")
	for _, transport := range []string{"udp", "tcp", "tls"} {
		conn := w.allocate(transport, "a")
		exchange(t, conn, peer, conn, "hello")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if n := w.Allocations(); n != 0 {
		t.Errorf("%d allocations outlive the server", n)
	}
	if _, err := net.Dial("tcp", w.Addr().String()); err == nil {
		t.Error("the server takes connections after its end")
	}
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]Config{
		"no policy":      {Listen: "127.0.0.1:0"},
		"no certificate": {Listen: "127.0.0.1:0", ListenTLS: "127.0.0.1:0", Policy: policy{}},
		"ports":          {Listen: "127.0.0.1:0", PortMin: 2000, PortMax: 1000, Policy: policy{}},
		"no address":     {Listen: "nowhere", Policy: policy{}},
		"two of one family": {
			Listen: "127.0.0.1:0", Policy: policy{},
			Announce: []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")},
		},
	} {
		if s, err := Listen(c); err == nil {
			t.Errorf("%s: nothing is wrong", name)
			_ = s.Close()
		}
	}
}
