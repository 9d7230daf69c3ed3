package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/access"
)

const turnSecret = "0123456789abcdef0123456789abcdef"

// writePair writes a certificate of this name, and its key.
func writePair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	return writePairUntil(t, dir, name, time.Now().Add(time.Hour))
}

// writePairUntil writes one that is valid until then.
func writePairUntil(t *testing.T, dir, name string, ends time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: ends, DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})))
	return cert, key
}

// TestTurnCommand starts a relay as an operator does, has a client use it over TLS, and ends it while an allocation is open.
func TestTurnCommand(t *testing.T) {
	defer goleak.VerifyNone(t)
	cert, key := writePair(t, t.TempDir(), "turn.test")
	listen, secure, admin := freeAddress(t), freeAddress(t), freeAddress(t)
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, "turn: {secrets: ["+turnSecret+"], allow: [127.0.0.1]}\n")
	stop := startService(t, admin, "turn", "--config", file, "--listen", listen, "--listen-tls", secure, "--admin", admin,
		"--tls-cert", cert, "--tls-key", key, "--drain", "50ms")

	secret, err := access.NewRelaySecret(turnSecret)
	if err != nil {
		t.Fatal(err)
	}
	username, password := secret.Mint("demo", "holder", time.Now().Add(time.Minute))
	conn, err := tls.Dial("tcp", secure, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	quiet := logging.NewDefaultLoggerFactory()
	quiet.DefaultLogLevel = logging.LogLevelDisabled
	client, err := turn.NewClient(&turn.ClientConfig{
		TURNServerAddr: secure, Conn: turn.NewSTUNConn(conn), Username: username, Password: password, LoggerFactory: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer client.Close()
	if err := client.Listen(); err != nil {
		t.Fatal(err)
	}
	relayed, err := client.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	defer relayed.Close()
	peer, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if _, err := relayed.WriteTo([]byte("hello"), peer.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 100)
	_ = peer.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, from, err := peer.ReadFrom(p); err != nil || string(p[:n]) != "hello" || from.String() != relayed.LocalAddr().String() {
		t.Errorf("%q from %v: %v", p[:n], from, err)
	}
	_, metrics := fetch(t, "GET", "http://"+admin+"/metrics")
	for _, line := range []string{"leeway_turn_allocations 1", `leeway_turn_connections{transport="tls"} 1`, `leeway_turn_allocations_total{outcome="granted"} 1`} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	begin := time.Now()
	if err := stop(); err != nil || time.Since(begin) > 10*time.Second {
		t.Errorf("stopped after %v: %v", time.Since(begin), err)
	}
}

// TestTurnBehindABalancer: the client that it names is the client, and a connection of a balancer without a header is refused.
func TestTurnBehindABalancer(t *testing.T) {
	defer goleak.VerifyNone(t)
	listen, admin := freeAddress(t), freeAddress(t)
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, "turn: {secrets: ["+turnSecret+"], proxy_protocol: [127.0.0.0/8]}\n")
	stop := startService(t, admin, "turn", "--config", file, "--listen", listen, "--admin", admin, "--drain", "0s")
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	for said, want := range map[string]string{"PROXY TCP4 203.0.113.5 192.0.2.80 4711 3478\r\n": "203.0.113.5:4711", "": ""} {
		conn, err := net.Dial("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write(append([]byte(said), stun.MustBuild(stun.TransactionID, stun.BindingRequest).Raw...)); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 1000)
		n, _ := conn.Read(p)
		answer, seen := &stun.Message{Raw: p[:n]}, stun.XORMappedAddress{}
		got := ""
		if answer.Decode() == nil && seen.GetFrom(answer) == nil {
			got = seen.String()
		}
		if got != want {
			t.Errorf("after %q %q is seen, want %q", said, got, want)
		}
	}
	_, metrics := fetch(t, "GET", "http://"+admin+"/metrics")
	if line := `leeway_turn_refused_connections_total{reason="proxy"} 1`; !strings.Contains(metrics, line+"\n") {
		t.Errorf("no %s in the metrics", line)
	}
}

func TestTurnSaysWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no secret":      {nil, "no secret is configured"},
		"no certificate": {[]string{"--tls-cert", "none.pem", "--tls-key", "none.pem"}, "TLS certificate none.pem"},
		"half a pair":    {[]string{"--tls-cert", "none.pem"}, "belong together"},
		"both of a flag": {[]string{"--announce", "203.0.113.1", "--announce", "203.0.113.2"}, "are of one family"},
		"an address":     {[]string{"--announce", "turn.example.com"}, "is no IP address"},
	} {
		var environ []string
		if name == "no certificate" {
			environ = []string{"LEEWAY_TURN_SECRETS=" + turnSecret}
		}
		_, errs, code := leeway(t, environ, append([]string{"turn", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, c.args...)...)
		if code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
}

// TestTurnNamesThePortThatIsTaken, where the one of TLS is, and the other is free.
func TestTurnNamesThePortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cert, key := writePair(t, t.TempDir(), "turn.test")
	_, errs, code := leeway(t, []string{"LEEWAY_TURN_SECRETS=" + turnSecret}, "turn", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--listen-tls", taken.Addr().String(), "--tls-cert", cert, "--tls-key", key)
	if code != 1 || !strings.Contains(errs, "listen on "+taken.Addr().String()) {
		t.Errorf("%d %s", code, errs)
	}
}

func TestSecretsOfAListAreNotPrinted(t *testing.T) {
	out, errs, code := leeway(t, []string{"LEEWAY_TURN_SECRETS=" + turnSecret + "," + strings.Repeat("x", 40)}, "config", "print")
	if code != 0 || strings.Contains(out, turnSecret) || strings.Contains(out, "xxx") || strings.Count(out, redacted) != 2 {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
}

// TestACertificateIsReadAgain when its files change, and stays while they are half written.
func TestACertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, "first.test")
	p, err := openPair(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	p.now = func() time.Time { return now }
	name := func() string {
		t.Helper()
		c, err := p.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return parsed.DNSNames[0]
	}
	later := func() {
		now = now.Add(pairEvery)
		for _, f := range []string{cert, key} { // a file system's clock may be coarse
			if err := os.Chtimes(f, now, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := name(); n != "first.test" {
		t.Errorf("%s at first", n)
	}
	write(t, cert, "half")
	later()
	if n := name(); n != "first.test" {
		t.Errorf("%s while the files are half written", n)
	}
	writePair(t, dir, "second.test")
	later()
	if n := name(); n != "second.test" {
		t.Errorf("%s after the files were renewed", n)
	}
}
