package natsbus

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/leeway-video/leeway/internal/lab/natsnode"
)

// addresses are free, and below the ports that systems give to those that dial: a server would find its port taken by one of those.
func addresses(t *testing.T, n int) (all []string) {
	t.Helper()
	for tries := 0; len(all) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(10_000)))
		if err != nil && tries < 100 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all
}

// nodes starts a cluster of NATS servers.
func nodes(t *testing.T, n int, change func(*natsnode.Config)) (all []*natsnode.Node, url string) {
	t.Helper()
	both := addresses(t, 2*n)
	at, routes := both[:n], both[n:]
	var urls []string
	for i := range n {
		cfg := natsnode.Config{Name: "node" + string(rune('a'+i)), Listen: at[i], Cluster: routes[i], Routes: routes}
		if change != nil {
			change(&cfg)
		}
		node, err := natsnode.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Close() })
		all = append(all, node)
		urls = append(urls, "nats://"+at[i])
	}
	for _, node := range all {
		waitFor(t, "the servers find each other", func() bool { return node.Joined(n - 1) })
	}
	return all, strings.Join(urls, ",")
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("never: " + what)
		}
	}
}

// TestAServerOfSeveralIsLost takes away the server that a replica is connected to: it goes on with another, and is heard there.
func TestAServerOfSeveralIsLost(t *testing.T) {
	noLeaks(t)
	cert, key := certificate(t)
	servers, url := nodes(t, 3, func(c *natsnode.Config) { c.User, c.Pass, c.CertFile, c.KeyFile = "leeway", "secret", cert, key })
	a := open(t, Config{URL: url, User: "leeway", Password: "secret", CAFile: cert})
	b := open(t, Config{URL: url, User: "leeway", Password: "secret", CAFile: cert})
	exercise(t, a, b)
	got := make(chan string, 1024)
	if _, err := a.Subscribe("test.after", func(_ string, data []byte, _ func([]byte) error) { got <- string(data) }); err != nil {
		t.Fatal(err)
	}
	connected := a.conn.ConnectedAddr()
	for _, s := range servers {
		if s.Addr() == connected {
			_ = s.Close()
		}
	}
	waitFor(t, "another server is found", func() bool { return a.Connected() && a.conn.ConnectedAddr() != connected })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		_ = b.Publish("test.after", []byte("still here"))
		select {
		case <-got:
			return
		case <-tick.C:
		case <-end:
			t.Fatal("nothing is heard any more")
		}
	}
}

// TestAUserKnownByItsKey: the server has the public half, the replica a file with the seed.
func TestAUserKnownByItsKey(t *testing.T) {
	noLeaks(t)
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Nkeys: []*server.NkeyUser{{Nkey: public}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	a, b := open(t, Config{URL: s.ClientURL(), NKeyFile: file}), open(t, Config{URL: s.ClientURL(), NKeyFile: file})
	exercise(t, a, b)
	if _, err := Open(Config{URL: s.ClientURL()}); err == nil {
		t.Error("a replica without the key was let in")
	}
	if err := os.WriteFile(file, []byte("no seed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{URL: s.ClientURL(), NKeyFile: file}); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "no seed") {
		t.Errorf("a file that holds no key: %v", err)
	}
}

func TestSettingsThatContradictEachOther(t *testing.T) {
	for want, cfg := range map[string]Config{
		"more than one of":  {URL: "nats://x", User: "a", NKeyFile: "b"},
		"without a user":    {URL: "nats://x", Password: "a"},
		"go together":       {URL: "nats://x", CertFile: "a"},
		"name it by url":    {NKeyFile: "a"},
		"credentials_file:": {URL: "nats://x", CredentialsFile: "/nonexistent.creds"},
		"ca_file:":          {URL: "nats://x", CAFile: "/nonexistent.pem"},
	} {
		if b, err := Open(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
			if b != nil {
				_ = b.Close()
			}
		}
	}
}
