package turnd

import (
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"

	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/testkit"
)

// behind lets loopback be a balancer.
func behind(c *Config, r *relay.Config) {
	c.Introduces = netip.Addr.IsLoopback
	allowLoopback(c, r)
}

// through opens a connection that begins with these bytes.
func (w *world) through(transport string, said []byte) net.Conn {
	w.t.Helper()
	addr := w.Addr()
	if transport == "tls" {
		addr = w.TLSAddr()
	}
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(said); err != nil {
		w.t.Fatal(err)
	}
	if transport == "tls" {
		return tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "turn.test"})
	}
	return c
}

// mapped is the address that the server sees of a connection's client; empty if it does not answer.
func mapped(t *testing.T, c net.Conn) string {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(stun.MustBuild(stun.TransactionID, stun.BindingRequest).Raw); err != nil {
		return ""
	}
	p := make([]byte, 1000)
	n, _, err := turn.NewSTUNConn(c).ReadFrom(p)
	if err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Error("the connection is neither served nor ended")
		}
		return ""
	}
	answer, seen := &stun.Message{Raw: p[:n]}, stun.XORMappedAddress{}
	if err := answer.Decode(); err != nil {
		t.Fatal(err)
	}
	if err := seen.GetFrom(answer); err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr(seen.IP.String()), uint16(seen.Port)).String()
}

func TestABalancerSaysWhoseAConnectionIs(t *testing.T) {
	w := newWorld(t, behind)
	for _, transport := range []string{"tcp", "tls"} {
		for _, version := range []byte{1, 2} {
			for _, client := range []string{"203.0.113.5:4711", "[2001:db9::7]:4711"} {
				if got := mapped(t, w.through(transport, testkit.Introduction(t, version, client))); got != client {
					t.Errorf("%s, version %d: %q is seen, want %s", transport, version, got, client)
				}
			}
		}
		own := w.through(transport, testkit.Introduction(t, 2, ""))
		if got := mapped(t, own); got != own.LocalAddr().String() {
			t.Errorf("%s: the balancer's own connection is %q's", transport, got)
		}
	}
}

// TestABalancersClientIsRelayed: the allocation is found by the address that the balancer said, to its end.
func TestABalancersClientIsRelayed(t *testing.T) {
	w := newWorld(t, behind)
	peer := echo(t, "127.0.0.1:0")
	for _, transport := range []string{"tcp", "tls"} {
		username, password := w.secret.Mint("demo", transport, time.Now().Add(time.Minute))
		c, err := turn.NewClient(&turn.ClientConfig{
			TURNServerAddr: w.Addr().String(), Conn: turn.NewSTUNConn(w.through(transport, testkit.Introduction(t, 2, "203.0.113.5:4711"))),
			Username: username, Password: password, LoggerFactory: silence{},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if err := c.Listen(); err != nil {
			t.Fatal(err)
		}
		conn, err := c.Allocate()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // indications at first, a channel then
			if from, text := exchange(t, conn, peer, conn, "hello"); addrPort(from) != addrPort(peer) || text != "hello" {
				t.Errorf("%s: %q from %v", transport, text, from)
			}
		}
		w.mu.Lock()
		if w.byClient[clientKey{at: netip.MustParseAddrPort("203.0.113.5:4711")}] == nil {
			t.Errorf("%s: the allocation is not the client's", transport)
		}
		w.mu.Unlock()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		w.drained()
	}
}

// refused is how many connections were refused for a reason.
func (w *world) refused(reason string) float64 {
	w.t.Helper()
	for _, d := range relay.Metrics() {
		if d.Name == "leeway_turn_refused_connections_total" {
			return w.metrics.Value(d, reason)
		}
	}
	w.t.Fatal("refused connections are not counted")
	return 0
}

// TestOnlyABalancerSaysWhoseAConnectionIs: without a configured balancer a PROXY header is neither TURN nor TLS.
func TestOnlyABalancerSaysWhoseAConnectionIs(t *testing.T) {
	w := newWorld(t, func(c *Config, _ *relay.Config) {
		c.Introduces = func(a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.1") }
	})
	for _, transport := range []string{"tcp", "tls"} {
		for _, version := range []byte{1, 2} {
			if got := mapped(t, w.through(transport, testkit.Introduction(t, version, "203.0.113.5:4711"))); got != "" {
				t.Errorf("%s, version %d: served as %s", transport, version, got)
			}
		}
	}
	if n := w.refused("proxy"); n != 0 {
		t.Errorf("%v are counted as a balancer's", n)
	}
}

func TestABalancerThatDoesNotSayIsRefused(t *testing.T) {
	w := newWorld(t, behind)
	request := stun.MustBuild(stun.TransactionID, stun.BindingRequest).Raw
	broken := testkit.Introduction(t, 2, "203.0.113.5:4711")
	broken[13] = 0xff // of no family that there is
	refused := 0
	for name, said := range map[string][]byte{
		"TURN at once": request, "HTTP": []byte("GET / HTTP/1.1\r\n\r\n"), "a line without end": []byte("PROXY TCP4 " + strings.Repeat("1", 200)),
		"no address": []byte("PROXY TCP4 a b 1 2\r\n"), "no family": broken,
	} {
		for _, transport := range []string{"tcp", "tls"} {
			if refused++; mapped(t, w.through(transport, said)) != "" {
				t.Errorf("%s, %s: it was let in", name, transport)
			}
		}
	}
	if n := w.refused("proxy"); n != float64(refused) {
		t.Errorf("%v are counted, want %d", n, refused)
	}
}

func TestABalancerThatSaysNothingIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, func(c *Config, r *relay.Config) {
		behind(c, r)
		c.FirstFrame = time.Millisecond
	})
	for _, said := range [][]byte{nil, []byte("PROXY TCP4 203.0")} {
		if !ended(t, w.through("tcp", said)) {
			t.Errorf("after %q it is still there", said)
		}
	}
}

// TestBudgetsAreOfTheClientsBehindABalancer, and not the balancer's.
func TestBudgetsAreOfTheClientsBehindABalancer(t *testing.T) {
	w := newWorld(t, func(c *Config, r *relay.Config) {
		behind(c, r)
		r.MaxPerAddress = 1
	})
	held := w.through("tcp", testkit.Introduction(t, 2, "[2001:db9::7]:1"))
	if mapped(t, held) == "" {
		t.Fatal("the first is not served")
	}
	if got := mapped(t, w.through("tls", testkit.Introduction(t, 2, "[2001:db9::8]:1"))); got != "" { // of the same /64
		t.Errorf("a second of one network is served, as %s", got)
	}
	for _, other := range []string{"203.0.113.5:1", "203.0.113.6:1", "203.0.113.7:1"} {
		if got := mapped(t, w.through("tcp", testkit.Introduction(t, 1, other))); got != other {
			t.Errorf("%q is seen, want %s", got, other)
		}
	}
	if n := w.refused("address"); n != 1 {
		t.Errorf("%v are counted", n)
	}
}

func TestCloseDoesNotWaitForABalancer(t *testing.T) {
	w := newWorld(t, behind)
	w.through("tls", []byte("PROXY TCP4"))
	w.through("tcp", testkit.Introduction(t, 2, "203.0.113.5:1"))
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
