package natsbus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const patience = 10 * time.Second

func open(t *testing.T, cfg Config) *Bus {
	t.Helper()
	b, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func noLeaks(t *testing.T) {
	t.Helper()
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
}

func receive(t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		return ""
	}
}

// reaches waits until what b sends gets to a's subscriptions: between servers of a cluster, these travel behind their confirmation.
func reaches(t *testing.T, a, b *Bus) {
	t.Helper()
	stop, err := a.Subscribe("test.ready", func(_ string, _ []byte, reply func([]byte) error) { _ = reply(nil) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	waitFor(t, "subscriptions are known to the other's server", func() bool { return ask(b, "test.ready") == nil })
}

// ask sends a request that may have no responder, and does not wait long for one.
func ask(b *Bus, subject string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := b.Request(ctx, subject, nil)
	return err
}

// exercise lets two ends talk in every way that the port has.
func exercise(t *testing.T, a, b *Bus) {
	t.Helper()
	got := make(chan string, 8)
	stop, err := a.Subscribe("test.publish", func(subject string, data []byte, reply func([]byte) error) {
		if reply(nil) == nil {
			t.Error("a message that asks for nothing was answered")
		}
		got <- subject + " " + string(data)
	})
	if err != nil {
		t.Fatal(err)
	}
	unanswer, err := a.Subscribe("test.request", func(_ string, data []byte, reply func([]byte) error) {
		if err := reply(append([]byte("re: "), data...)); err != nil {
			t.Errorf("answering: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	reaches(t, a, b)
	if err := b.Publish("test.publish", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if v := receive(t, got); v != "test.publish one" {
		t.Errorf("got %q", v)
	}
	if err := b.Send("test.publish", []byte("sure")); err != nil {
		t.Fatal(err)
	}
	if v := receive(t, got); v != "test.publish sure" {
		t.Errorf("got %q", v)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if v, err := b.Request(ctx, "test.request", []byte("two")); err != nil || string(v) != "re: two" {
		t.Errorf("answered %q, %v", v, err)
	}
	stop()
	unanswer()
	_ = a.conn.Flush()
	// Once a server knows that there is no responder, it says so at once, not with the deadline.
	waitFor(t, "the server says that no client answers", func() bool { return errors.Is(ask(b, "test.request"), nats.ErrNoResponders) })
}

func TestOneProcess(t *testing.T) {
	noLeaks(t)
	b := open(t, Config{})
	exercise(t, b, b)
	if b.URL() != "" {
		t.Errorf("a server for one process listens on %s", b.URL())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := b.Publish("test.publish", nil); err == nil {
		t.Error("published on a closed bus")
	}
	if err := b.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestTwoProcessesWithAPassword(t *testing.T) {
	noLeaks(t)
	a := open(t, Config{Listen: "127.0.0.1:0", User: "leeway", Password: "secret"})
	b := open(t, Config{URL: a.URL(), User: "leeway", Password: "secret"})
	exercise(t, a, b)
	exercise(t, b, a)
	if _, err := Open(Config{URL: a.URL(), User: "leeway", Password: "guess"}); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with a wrong password: %v", err)
	}
	if _, err := Open(Config{URL: a.URL()}); err == nil {
		t.Error("a replica without a password was let in")
	}
}

func TestTwoProcessesOverTLS(t *testing.T) {
	noLeaks(t)
	cert, key := certificate(t)
	// The server's own certificate is the root that clients' certificates hang from here.
	a := open(t, Config{Listen: "127.0.0.1:0", CertFile: cert, KeyFile: key, CAFile: cert})
	b := open(t, Config{URL: a.URL(), CAFile: cert, CertFile: cert, KeyFile: key})
	exercise(t, a, b)
	if _, err := Open(Config{URL: a.URL(), CAFile: cert}); err == nil {
		t.Error("a client without a certificate was let in")
	}
	if _, err := Open(Config{URL: a.URL(), CertFile: cert, KeyFile: key}); err == nil {
		t.Error("a client trusted a certificate of an unknown authority")
	}
}

// certificate writes a self-signed one for 127.0.0.1.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestMessagesAreCountedByKind(t *testing.T) {
	noLeaks(t)
	var r testkit.Recorder
	b := open(t, Config{Metrics: &r})
	if r.Value(defConnected) != 1 {
		t.Error("a bus that is up says that it is not")
	}
	got := make(chan string, 1)
	id := signal.ID{1}
	if _, err := b.Subscribe(bus.SubjectDeliver(id), func(_ string, data []byte, reply func([]byte) error) {
		_ = reply(nil) // of a message that asks for nothing: there is no answer to be counted
		got <- string(data)
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(bus.SubjectDeliver(id), []byte("x")); err != nil {
		t.Fatal(err)
	}
	receive(t, got)
	if in, out := r.Value(defMessages, "tracker-deliver", "in"), r.Value(defMessages, "tracker-deliver", "out"); in != 1 || out != 1 {
		t.Errorf("counted %v in, %v out", in, out)
	}
	if n := r.Value(defMessages, "answer", "out"); n != 0 {
		t.Errorf("counted %v answers", n)
	}
	_ = b.Close()
	if r.Value(defConnected) != 0 || r.Dropped() != 0 {
		t.Errorf("connected %v after closing, %d dropped", r.Value(defConnected), r.Dropped())
	}
}

// TestBusComesBack ends the server under a client and starts another in its place.
func TestBusComesBack(t *testing.T) {
	noLeaks(t)
	first := open(t, Config{Listen: "127.0.0.1:0"})
	url := first.URL()
	var r testkit.Recorder
	b := open(t, Config{URL: url, Metrics: &r})
	got := make(chan string, 64)
	if _, err := b.Subscribe("test.back", func(_ string, data []byte, _ func([]byte) error) { got <- string(data) }); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	second := open(t, Config{Listen: url[len("nats://"):]})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		select {
		case v := <-got:
			if v != "hello again" {
				t.Errorf("got %q", v)
			}
			// The client tells of its return beside what it receives.
			waitFor(t, "the gauge says so", func() bool { return r.Value(defConnected) == 1 })
			return
		case <-tick.C:
			if err := second.Publish("test.back", []byte("hello again")); err != nil {
				t.Fatal(err)
			}
		case <-end:
			t.Fatal("the subscription did not survive the server")
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	noLeaks(t)
	const away = "no server listens" // the only one that may pass by itself
	for name, cfg := range map[string]Config{
		away:             {URL: "nats://127.0.0.1:1"},
		"wrong password": {URL: restricted(t), User: "some", Password: "other"},
		"no port":        {Listen: "127.0.0.1"},
		"no such file":   {Listen: "127.0.0.1:0", CertFile: "/nonexistent.pem", KeyFile: "/nonexistent.key"},
	} {
		if b, err := Open(cfg); err == nil {
			_ = b.Close()
			t.Errorf("%s: opened", name)
		} else if fmt.Sprint(err)[:8] != "natsbus:" {
			t.Errorf("%s: %v", name, err)
		} else if errors.Is(err, ErrAway) != (name == away) {
			t.Errorf("%s is worth waiting for: %v (%v)", name, errors.Is(err, ErrAway), err)
		}
	}
}
