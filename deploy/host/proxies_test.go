package host

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/app"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// tracker runs everything in one process, and gives the addresses of its tracker and of its admin port.
func tracker(t *testing.T) (at, admin string) {
	ctx, cancel := context.WithCancel(context.Background())
	dir := t.TempDir()
	config := filepath.Join(dir, "leeway.yaml")
	if err := os.WriteFile(config, []byte("tracker: {trusted_proxies: [127.0.0.1/32]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(dir, "site.yaml")
	if err := os.WriteFile(site, []byte("name: films\nhosts: [media.example.com]\npage_origins: [https://www.example.com]\nfetch_base: https://media.example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out testkit.Output
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, []string{
			"up", "--config", config, "--site", site, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--seed-listen", "127.0.0.1:0", "--probe-listen", "127.0.0.1:0", "--data-dir", dir,
		}, app.Env{Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + dir}})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	addresses := regexp.MustCompile(`http://(\S+)/\n\s*admin\s+(\S+)`)
	testkit.Eventually(t, "up", func() bool { return addresses.MatchString(out.String()) })
	m := addresses.FindStringSubmatch(out.String())
	return m[1], m[2]
}

// proxy runs a program that serves until the test ends; files are what it inherits, from descriptor 3 on.
func proxy(t *testing.T, out *testkit.Output, files []*os.File, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", name, out.String())
		}
	})
}

// installed is a proxy's program, which some machines lack.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	return path
}

// haproxy runs the snippet, and waits until it has asked the tracker for its health.
func haproxy(t *testing.T, changed *strings.Replacer, at, admin string) string {
	address, out := balanced(t, changed, at, admin)
	testkit.Eventually(t, "health", func() bool { return strings.Contains(out.String(), "Health check for server") })
	if !strings.Contains(out.String(), "succeeded") {
		t.Fatal("HAProxy takes a healthy tracker for a dead one")
	}
	return address
}

// balanced runs the snippet of HAProxy.
func balanced(t *testing.T, changed *strings.Replacer, at, admin string) (address string, out *testkit.Output) {
	binary := installed(t, "haproxy")
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	handed, err := socket.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer handed.Close()
	_, port, _ := net.SplitHostPort(admin)
	snippet := strings.NewReplacer("127.0.0.1:8080", at, "port 9464", "port "+port).Replace(changed.Replace(text(t, "haproxy.cfg")))
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	err = os.WriteFile(config, []byte("global\n  log stderr format raw local0\ndefaults\n  log global\n  option log-health-checks\n  timeout connect 5s\n"+
		regexp.MustCompile(`bind \S+ ssl crt \S+`).ReplaceAllString(snippet, "bind fd@3")), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	out = &testkit.Output{}
	proxy(t, out, []*os.File{handed}, binary, "-db", "-f", config)
	return "http://" + socket.Addr().String(), out
}

// caddy runs the snippet. It can inherit no socket, so its port is one that systems do not give to those that dial.
func caddy(t *testing.T, changed *strings.Replacer, at string) string {
	binary := installed(t, "caddy")
	address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
	config := filepath.Join(t.TempDir(), "Caddyfile")
	snippet := strings.NewReplacer("tracker.example.com", "http://"+address, "127.0.0.1:8080", at).Replace(changed.Replace(text(t, "Caddyfile")))
	if err := os.WriteFile(config, []byte("{\n\tadmin off\n}\n"+snippet), 0o600); err != nil {
		t.Fatal(err)
	}
	var out testkit.Output
	proxy(t, &out, nil, binary, "run", "--config", config, "--adapter", "caddyfile")
	testkit.Eventually(t, "caddy", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + address
}

// behind has something go through each proxy to a tracker. The viewers of each have addresses of their own.
func behind(t *testing.T, changed *strings.Replacer, through func(t *testing.T, proxy string, viewers netip.Prefix)) {
	at, admin := tracker(t)
	t.Run("each", func(t *testing.T) { // the tracker ends after all of them
		t.Run("nginx", func(t *testing.T) {
			t.Parallel()
			through(t, testkit.Nginx(t, strings.ReplaceAll(changed.Replace(text(t, "nginx.conf")), "127.0.0.1:8080", at)), netip.MustParsePrefix("127.0.1.0/24"))
		})
		t.Run("haproxy", func(t *testing.T) {
			t.Parallel()
			through(t, haproxy(t, changed, at, admin), netip.MustParsePrefix("127.0.2.0/24"))
		})
		t.Run("caddy", func(t *testing.T) {
			t.Parallel()
			through(t, caddy(t, changed, at), netip.MustParsePrefix("127.0.3.0/24"))
		})
	})
}

// TestATrackerBehindProxies: real proxies with the snippets carry a session and plain requests, and the tracker knows each viewer by the
// viewer's own address.
func TestATrackerBehindProxies(t *testing.T) {
	behind(t, strings.NewReplacer(), func(t *testing.T, proxy string, viewers netip.Prefix) {
		welcomed(t, proxy)
		knownByAddress(t, proxy, viewers)
	})
}

// TestTrackersThatAreNotReadyAreAsked where none is ready, as while NATS is away.
func TestTrackersThatAreNotReadyAreAsked(t *testing.T) {
	at, _ := tracker(t)
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}))
	t.Cleanup(admin.Close)
	address, out := balanced(t, strings.NewReplacer("check port", "check inter 100ms port"), at, admin.Listener.Addr().String())
	testkit.Eventually(t, "the tracker is not ready", func() bool { return strings.Contains(out.String(), "/tracker-1 is DOWN") })
	welcomed(t, address)
}

// TestSocketsThatSayNothingStay: viewers may be silent for longer than a proxy waits, because the tracker pings. The snippets' ten minutes
// are a quarter of one here.
func TestSocketsThatSayNothingStay(t *testing.T) {
	if os.Getenv("LEEWAY_FIRSTDAY") == "" {
		t.Skip("make firstday runs this: it takes twenty seconds")
	}
	behind(t, strings.NewReplacer("10m", "15s"), func(t *testing.T, proxy string, _ netip.Prefix) {
		c := welcomed(t, proxy)
		ended, pings, begun := make(chan error, 1), make(chan struct{}, 64), time.Now()
		answer := c.PingHandler()
		c.SetPingHandler(func(data string) error {
			pings <- struct{}{}
			return answer(data)
		})
		_ = c.SetReadDeadline(time.Time{})
		go func() {
			for {
				if _, _, err := c.ReadMessage(); err != nil {
					ended <- err
					return
				}
			}
		}()
		for time.Since(begun) <= 15*time.Second {
			select {
			case <-pings:
			case err := <-ended:
				t.Fatalf("after %v: %v", time.Since(begun), err)
			}
		}
		_ = c.Close()
		<-ended
	})
}

// welcomed has a session begin through a proxy.
func welcomed(t *testing.T, proxy string) *websocket.Conn {
	dialer := websocket.Dialer{Subprotocols: []string{signal.Subprotocol}, HandshakeTimeout: 30 * time.Second}
	c, response, err := dialer.Dial("ws"+strings.TrimPrefix(proxy, "http")+"/", http.Header{"Origin": {"https://www.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = response.Body.Close()
	if err := c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"hello","version":%d,"client":"test"}`, signal.Version)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, raw, err := c.ReadMessage(); err != nil || !bytes.Contains(raw, []byte(`"type":"welcome"`)) {
		t.Errorf("%s, %v", raw, err)
	}
	return c
}

// knownByAddress has one viewer ask until its address has no budget left, under a name of its own each time, and then another one.
func knownByAddress(t *testing.T, proxy string, viewers netip.Prefix) {
	greedy := viewers.Addr().Next()
	for n := 0; asks(t, proxy, greedy, fmt.Sprintf("203.0.113.%d", n%200)) != http.StatusTooManyRequests; n++ {
		if n == 2000 {
			t.Fatalf("the tracker does not know %s by its address", greedy)
		}
	}
	if got := asks(t, proxy, greedy.Next(), "203.0.113.7"); got != http.StatusOK {
		t.Errorf("another address gets %d", got)
	}
}

// asks puts a plain question from an address, and claims another one. It returns the status.
func asks(t *testing.T, proxy string, from netip.Addr, claimed string) int {
	t.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy+"/allowed?origin=https://other.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", claimed)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
