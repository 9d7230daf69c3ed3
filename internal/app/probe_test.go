package app

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wsconn"
)

var probeSocket = wsconn.BulkConfig{Subprotocol: probe.Subprotocol, MaxMessage: probe.MaxMessage, Handshake: 10 * time.Second}

// measured reads an ndt7 test until the server has measured so many bytes, and returns that measurement and the bytes read.
func measured(t *testing.T, b *wsconn.Bulk, bytes int64) (info netstat.TCPInfo, received int64) {
	t.Helper()
	for {
		binary, err := b.Next()
		if err != nil {
			t.Fatal(err)
		}
		if binary {
			n, err := io.Copy(io.Discard, b)
			if err != nil {
				t.Fatal(err)
			}
			received += n
			continue
		}
		var m struct {
			AppInfo struct{ NumBytes int64 }
			TCPInfo *netstat.TCPInfo
		}
		if err := json.NewDecoder(b).Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.AppInfo.NumBytes >= bytes {
			if m.TCPInfo == nil {
				t.Fatal("a measurement without TCP_INFO")
			}
			return *m.TCPInfo, received
		}
	}
}

// TestProbeCommand starts a probe server as an operator does, and tests the line of loopback by ndt7, with TLS and without, and by HTTP.
func TestProbeCommand(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			listen, admin := freeAddress(t), freeAddress(t)
			args := []string{"probe", "serve", "--listen", listen, "--udp", "127.0.0.1:0", "--admin", admin}
			scheme := "://"
			dial := wsconn.DialConfig{}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			if secure {
				cert, key := writePair(t, t.TempDir(), "probe.test")
				args, scheme = append(args, "--tls-cert", cert, "--tls-key", key), "s://"
				dial.TLS = &tls.Config{InsecureSkipVerify: true}
			}
			stop := startService(t, admin, args...)
			down, err := probeSocket.DialBulk(t.Context(), "ws"+scheme+listen+"/ndt/v7/download", dial)
			if err != nil {
				t.Fatal(err)
			}
			info, received := measured(t, down, 4<<20)
			down.Close(false)
			if received == 0 || info.BytesAcked == 0 || info.MinRTT <= 0 || info.MinRTT > 100_000 || info.SndMSS < 500 || info.BytesSent < info.BytesAcked {
				t.Errorf("download: %d bytes, %+v", received, info)
			}
			up, err := probeSocket.DialBulk(t.Context(), "ws"+scheme+listen+"/ndt/v7/upload", dial)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for up.Send(true, make([]byte, 1<<16)) == nil { // until it is closed
				}
			}()
			if info, _ = measured(t, up, 1<<20); info.BytesReceived < 1<<20 {
				t.Errorf("upload: %+v", info)
			}
			up.Close(true)
			r, err := client.Get("http" + scheme + listen + "/probe/v1/download?bytes=1000000")
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r.Body); n != 1_000_000 || err != nil {
				t.Errorf("HTTP: %d bytes, %v", n, err)
			}
			_ = r.Body.Close()
			if page, err := client.Get("http" + scheme + listen + "/"); err != nil || page.StatusCode != 200 || page.Request.URL.Path != "/check" {
				t.Errorf("the page: %v", err)
			} else if n, err := io.Copy(io.Discard, page.Body); n > 128<<10 || err != nil {
				t.Errorf("the page has %d bytes, which is more than it costs; %v", n, err)
			} else {
				_ = page.Body.Close()
			}
			testkit.Eventually(t, "the tests are counted", func() bool {
				_, metrics := fetch(t, "GET", "http://"+admin+"/metrics")
				return strings.Contains(metrics, `leeway_probe_tests_total{outcome="client",test="ndt7-download"} 1`+"\n") &&
					strings.Contains(metrics, `leeway_probe_tests_total{outcome="client",test="ndt7-upload"} 1`+"\n") &&
					strings.Contains(metrics, `leeway_probe_tests_total{outcome="complete",test="http-download"} 1`+"\n")
			})
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProbeAccess: a server that other machines reach states its access; a join token of a site is good for a test.
func TestProbeAccess(t *testing.T) {
	defer goleak.VerifyNone(t)
	if _, errs, code := leeway(t, nil, "probe", "serve", "--listen", ":0", "--admin", "127.0.0.1:0"); code != 2 || !strings.Contains(errs, "--open") {
		t.Errorf("an open server that did not say so: %d %s", code, errs)
	}
	signing, keys := keygen(t)
	listen, admin := freeAddress(t), freeAddress(t)
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, fmt.Sprintf(`sites:
  - {name: free, hosts: [free.example.com], access: public}
  - {name: paid, hosts: [paid.example.com], access: token, token_keys: %q}
`, keys))
	stop := startService(t, admin, "probe", "serve", "--config", file, "--listen", listen, "--udp", "127.0.0.1:0", "--admin", admin)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	good := mint(t, "--key", signing, "--site", "paid", "--life", "1h")
	for token, want := range map[string]int{"": 401, "x.y.z": 403, mint(t, "--key", signing, "--site", "free", "--life", "1h"): 403, good: 200} {
		if code, body := fetch(t, "GET", "http://"+listen+"/probe/v1/small?access_token="+token); code != want {
			t.Errorf("token %.10q: %d %s", token, code, body)
		}
	}
}

// TestAThousandSocketsLeaveTestsAlone: connections that say nothing are bounded by address and in all, and tests of others go on.
func TestAThousandSocketsLeaveTestsAlone(t *testing.T) {
	defer goleak.VerifyNone(t)
	listen, admin := freeAddress(t), freeAddress(t)
	stop := startService(t, admin, "probe", "serve", "--listen", listen, "--udp", "127.0.0.1:0", "--admin", admin)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 1000 {
		c, err := from.Dial("tcp", listen)
		if err != nil {
			continue // reset before the call returned
		}
		defer c.Close()
	}
	b, err := probeSocket.DialBulk(t.Context(), "ws://"+listen+"/ndt/v7/download", wsconn.DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, received := measured(t, b, 1<<20); received == 0 {
		t.Error("nothing was received")
	}
	b.Close(true)
	testkit.Eventually(t, "sockets are refused and counted", func() bool {
		_, metrics := fetch(t, "GET", "http://"+admin+"/metrics")
		return strings.Contains(metrics, fmt.Sprintf(`leeway_probe_refused_total{reason="half-open"} %d`+"\n", 1000-probeConnections/16))
	})
}

// TestUpHasAProbe: `leeway up` measures, and says where.
func TestUpHasAProbe(t *testing.T) {
	r := startUp(t, "--media", testkit.TinyFilm(t))
	_, after, ok := strings.Cut(r.out.String(), "probe    ")
	at, _, _ := strings.Cut(after, " ")
	if code, body := fetch(t, "GET", "http://"+at+"/probe/v1/info"); !ok || code != 200 || !strings.Contains(body, `"version":"`+Version) {
		t.Errorf("%q: %d %s", at, code, body)
	}
	if _, metrics := fetch(t, "GET", r.admin+"/metrics"); !strings.Contains(metrics, `leeway_probe_running_tests{test="ndt7-upload"} 0`) {
		t.Error("up does not count tests")
	}
}
