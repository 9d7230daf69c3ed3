package turnd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/turn/v5"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/testkit"
)

// patience is for what comes at once unless something is wrong.
const patience = 10 * time.Second

// policy lets a relay's flows be a server's.
type policy struct{ *relay.Relay }

func (p policy) Open(user string) (Flow, error) {
	f, err := p.Relay.Open(user)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// world is a server on loopback.
type world struct {
	*Server
	t       *testing.T
	relay   *relay.Relay
	secret  access.RelaySecret
	metrics *testkit.Recorder
}

func newWorld(t *testing.T, change func(*Config, *relay.Config)) *world {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	secret, err := access.NewRelaySecret(strings.Repeat("s", 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, secret: secret, metrics: &testkit.Recorder{}}
	rules := relay.Config{Secrets: access.RelaySecrets{secret}, Metrics: w.metrics}
	cfg := Config{Listen: "127.0.0.1:0", ListenTLS: "127.0.0.1:0", TLS: &tls.Config{Certificates: []tls.Certificate{certificate(t)}}}
	if change != nil {
		change(&cfg, &rules)
	}
	if w.relay, err = relay.New(rules); err != nil {
		t.Fatal(err)
	}
	cfg.Policy = policy{w.relay}
	if w.Server, err = Listen(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		w.metrics.Check(t)
	})
	return w
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"turn.test"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// allowLoopback has tests' peers be reached.
func allowLoopback(_ *Config, r *relay.Config) { r.Reach.Allow = peers("127.0.0.0/8", "::1") }

func peers(list ...string) (all []access.Peer) {
	for _, text := range list {
		p, err := access.ParsePeer(text)
		if err != nil {
			panic(err)
		}
		all = append(all, p)
	}
	return all
}

// dial opens a client's socket to the server.
func (w *world) dial(transport string) net.PacketConn {
	w.t.Helper()
	var conn net.PacketConn
	switch transport {
	case "udp":
		socket, err := net.ListenPacket("udp", net.JoinHostPort(w.Addr().(*net.TCPAddr).IP.String(), "0"))
		if err != nil {
			w.t.Fatal(err)
		}
		conn = socket
	case "tcp":
		c, err := net.Dial("tcp", w.Addr().String())
		if err != nil {
			w.t.Fatal(err)
		}
		conn = turn.NewSTUNConn(c)
	case "tls":
		c, err := tls.Dial("tcp", w.TLSAddr().String(), &tls.Config{InsecureSkipVerify: true, ServerName: "turn.test"})
		if err != nil {
			w.t.Fatal(err)
		}
		conn = turn.NewSTUNConn(c)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// client speaks TURN for a holder.
func (w *world) client(transport, holder string) *turn.Client {
	w.t.Helper()
	username, password := w.secret.Mint("demo", holder, time.Now().Add(time.Minute))
	return w.clientAs(transport, username, password)
}

func (w *world) clientAs(transport, username, password string) *turn.Client {
	w.t.Helper()
	return w.clientOver(w.dial(transport), username, password)
}

func (w *world) clientOver(conn net.PacketConn, username, password string) *turn.Client {
	w.t.Helper()
	c, err := turn.NewClient(&turn.ClientConfig{
		STUNServerAddr: w.Addr().String(), TURNServerAddr: w.Addr().String(), Conn: conn,
		Username: username, Password: password, Realm: "leeway", LoggerFactory: silence{},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	if err := c.Listen(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// allocate gives a relayed socket, which the test's end closes.
func (w *world) allocate(transport, holder string) net.PacketConn {
	w.t.Helper()
	conn, err := w.client(transport, holder).Allocate()
	if err != nil {
		w.t.Fatalf("%s: allocate: %v", transport, err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// echo answers every packet until the test ends.
func echo(t *testing.T, addr string) net.Addr {
	t.Helper()
	conn := socketOn(t, addr)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := make([]byte, 2000)
		for {
			n, from, err := conn.ReadFrom(p)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(p[:n], from)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return conn.LocalAddr()
}

// exchange sends from one socket until something has arrived at another, and gives back what.
func exchange(t *testing.T, from net.PacketConn, to net.Addr, at net.PacketConn, text string) (net.Addr, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond) // UDP may lose
		defer tick.Stop()
		for {
			_, _ = from.WriteTo([]byte(text), to)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	defer func() { cancel(); <-done }()
	p := make([]byte, 2000)
	_ = at.SetReadDeadline(time.Now().Add(patience))
	n, source, err := at.ReadFrom(p)
	if err != nil {
		t.Fatalf("nothing from %v arrived: %v", to, err)
	}
	return source, string(p[:n])
}

func addrPort(a net.Addr) netip.AddrPort {
	at, _ := place(a)
	return at
}
