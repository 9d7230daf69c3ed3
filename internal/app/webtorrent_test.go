package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

const (
	someHash = "3031323334353637383961626364656667686970" // "0123456789abcdefghip"
	someSite = "sites:\n  - name: demo\n    hosts: [video.example.com]\n"
)

// startTracker runs `leeway tracker` with a configuration until the test ends, and returns where it is.
func startTracker(t *testing.T, config string, args ...string) (addr string) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	if err := os.WriteFile(file, []byte(someSite+config), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, admin := freeAddress(t), freeAddress(t)
	stop := startService(t, admin, append([]string{"--config", file, "tracker", "--listen", addr, "--admin", admin, "--data-dir", t.TempDir()}, args...)...)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, leaks)
	})
	return addr
}

// announcing is the answer to a handshake on /announce, and the socket if there is one.
func announcing(t *testing.T, addr, query, origin string) (int, *websocket.Conn) {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	ws, r, err := websocket.DefaultDialer.Dial("ws://"+addr+"/announce"+query, header)
	if r == nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if ws != nil {
		t.Cleanup(func() { _ = ws.Close() })
	}
	return r.StatusCode, ws
}

func TestWebTorrentIsOffByDefault(t *testing.T) {
	addr := startTracker(t, "")
	if code, _ := announcing(t, addr, "", ""); code != http.StatusNotFound {
		t.Errorf("answered with %d", code)
	}
}

func TestWebTorrentIsOnWhenAskedFor(t *testing.T) {
	addr := startTracker(t, "tracker:\n  webtorrent:\n    token: sesame\n    interval: 30s\n", "--webtorrent", someHash)
	for _, c := range []struct {
		query, origin string
		code          int
	}{
		{"", "", http.StatusForbidden},
		{"?token=simsim", "", http.StatusForbidden},
		{"?token=sesame", "https://evil.example.com", http.StatusForbidden},
		{"?token=sesame", "https://video.example.com", http.StatusSwitchingProtocols},
	} {
		if code, _ := announcing(t, addr, c.query, c.origin); code != c.code {
			t.Errorf("%q of %q: answered with %d, want %d", c.query, c.origin, code, c.code)
		}
	}
	_, ws := announcing(t, addr, "?token=sesame", "")
	for hash, want := range map[string]string{"0123456789abcdefghip": `"interval":30,`, "another-film-of-20-b": `"failure reason":"not-allowed: `} {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"action":"announce","info_hash":"`+hash+`","peer_id":"-LW0001-abcdefghijkl"}`)); err != nil {
			t.Fatal(err)
		}
		_, b, err := ws.ReadMessage()
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s, %v, want %s", hash, b, err, want)
		}
	}
}

func TestInfoHashesAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	if err := os.WriteFile(file, []byte(someSite+"tracker:\n  webtorrent:\n    info_hashes: ["+someHash+", 1234]\n    max_swarms: 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := leeway(t, nil, "config", "check", file)
	if code != 2 || !strings.Contains(out, "info_hashes[1]") || strings.Contains(out, "info_hashes[0]") || !strings.Contains(out, "tracker.webtorrent.max_swarms") {
		t.Errorf("exit code %d after %s", code, out)
	}
	out, errs, code := leeway(t, []string{"LEEWAY_TRACKER_WEBTORRENT_INFO_HASHES=" + someHash, "LEEWAY_TRACKER_WEBTORRENT_TOKEN=sesame"}, "config", "print")
	if code != 0 || !strings.Contains(out, someHash) || strings.Contains(out, "sesame") {
		t.Errorf("exit code %d, printed %s%s", code, out, errs)
	}
}
