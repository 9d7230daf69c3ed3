package wsconn

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
)

// whose answers with the address that a request came from.
var whose = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })

func anyone(netip.Addr) bool { return true }

func ask(t *testing.T, c net.Conn) string {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(b), "\r\n\r\n")
	return body
}

func TestABalancerSaysWhoseAConnectionIs(t *testing.T) {
	for _, secure := range []bool{false, true} {
		address, _ := behind(t, AdmissionConfig{Introduces: anyone}, whose, secure)
		for _, version := range []byte{1, 2} {
			for _, client := range []string{"203.0.113.5:4711", "[2001:db9::7]:4711"} {
				c := connect(t, address)
				if _, err := c.Write(testkit.Introduction(t, version, client)); err != nil {
					t.Fatal(err)
				}
				if secure {
					c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
				}
				if got := ask(t, c); got != client {
					t.Errorf("version %d, TLS %v: a request of %s, want %s", version, secure, got, client)
				}
			}
		}
		c := connect(t, address)
		own := c.LocalAddr().String()
		_, _ = c.Write(testkit.Introduction(t, 2, ""))
		if secure {
			c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		}
		if got := ask(t, c); got != own {
			t.Errorf("the balancer's own connection is %s's, want %s's", got, own)
		}
	}
}

// TestOnlyABalancerSaysWhoseAConnectionIs: where no balancer is known, such words are no request.
func TestOnlyABalancerSaysWhoseAConnectionIs(t *testing.T) {
	knocks := make(chan netip.Addr, 8)
	address, _ := behind(t, AdmissionConfig{
		Introduces: func(a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.1") },
		Knock:      func(a netip.Addr) bool { knocks <- a; return true },
	}, whose, false)
	c := connect(t, address)
	_, _ = c.Write(testkit.Introduction(t, 1, "203.0.113.5:4711"))
	_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	b, _ := io.ReadAll(c)
	if !strings.Contains(string(b), " 400 ") {
		t.Errorf("answered %q", b)
	}
	if got := receive(t, knocks); got != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("it counts as %v's", got)
	}
}

func TestABalancerThatDoesNotSayIsRefused(t *testing.T) {
	address, refused := behind(t, AdmissionConfig{Introduces: anyone, Silence: patience}, whose, false)
	c := connect(t, address)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if !ended(t, c) || receive(t, refused) != "proxy" {
		t.Error("it was let in")
	}
	address, refused = behind(t, AdmissionConfig{Introduces: anyone, Silence: time.Millisecond}, whose, false)
	if c := connect(t, address); !ended(t, c) || receive(t, refused) != "half-open" {
		t.Error("one that says nothing is still there")
	}
}

// TestBudgetsAreOfTheClientsBehindABalancer: before TLS, and not the balancer's.
func TestBudgetsAreOfTheClientsBehindABalancer(t *testing.T) {
	greedy := netip.MustParseAddr("203.0.113.5")
	entered := make(chan netip.Addr, 8)
	address, refused := behind(t, AdmissionConfig{
		Introduces: anyone, MaxPendingPerAddress: 2,
		Knock:   func(a netip.Addr) bool { return a != greedy },
		Entered: func(a netip.Addr) { entered <- a },
	}, whose, false)
	c := connect(t, address)
	_, _ = c.Write(append(testkit.Introduction(t, 2, "203.0.113.5:1"), "GET / HTTP/1.1\r\n"...))
	if !ended(t, c) || receive(t, refused) != "rate" {
		t.Error("an address without budget was let in")
	}
	// Silent ones of one house, whatever networks of it they come from: one of three is refused. Others are not.
	for _, from := range []string{"[2001:db8:1:1::1]:1", "[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1"} {
		_, _ = connect(t, address).Write(testkit.Introduction(t, 2, from))
	}
	if receive(t, refused) != "half-open" {
		t.Error("a third was let in")
	}
	c = connect(t, address)
	_, _ = c.Write(testkit.Introduction(t, 2, "198.51.100.1:1"))
	if got := ask(t, c); got != "198.51.100.1:1" {
		t.Errorf("a request of %s", got)
	}
	if got := receive(t, entered); got != netip.MustParseAddr("198.51.100.1") {
		t.Errorf("%v has come in", got)
	}
}

// TestABalancersTrustedProxyIsOne: a balancer may stand before a proxy that says the rest in its headers.
func TestABalancersTrustedProxyIsOne(t *testing.T) {
	proxy := netip.MustParseAddr("10.0.0.1")
	address, _ := behind(t, AdmissionConfig{
		Introduces: anyone, MaxPendingPerAddress: 1, Trusted: func(a netip.Addr) bool { return a == proxy },
		Knock: func(netip.Addr) bool { return false },
	}, whose, false)
	for range 3 {
		c := connect(t, address)
		_, _ = c.Write(testkit.Introduction(t, 1, "10.0.0.1:99"))
	}
	c := connect(t, address)
	_, _ = c.Write(testkit.Introduction(t, 1, "10.0.0.1:99"))
	if got := ask(t, c); got != "10.0.0.1:99" {
		t.Errorf("a request of %s", got)
	}
}
