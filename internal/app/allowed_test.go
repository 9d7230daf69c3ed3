package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/testkit"
)

func TestAllowedSaysWhatAJoinWould(t *testing.T) {
	left := 0
	var refusals []string
	h := allowed(func(o string) bool { return o == "https://www.example.com" }, func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
		func(netip.Addr) bool { left--; return left >= 0 }, func(reason string) { refusals = append(refusals, reason) })
	ask := func(method, origin, header string) (int, string) {
		r := httptest.NewRequest(method, "/allowed?origin="+url.QueryEscape(origin), nil)
		if header != "" {
			r.Header.Set("Origin", header)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("headers: %v", w.Header())
		}
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		origin, header string
		code           int
		begins         string
	}{
		{"https://www.example.com", "", 200, "allowed: "},
		{"", "https://www.example.com", 200, "allowed: "},
		{"https://other.example", "https://www.example.com", 200, "refused: pages of https://other.example may not join"},
		{"", "http://localhost:3000", 200, "refused: pages of http://localhost:3000 "},
		{"", "", 400, "Ask for"}, {"null", "", 400, "Ask for"}, {"https://www.example.com/page", "", 400, "Ask for"}, {"https://a b", "", 400, "Ask for"},
		{"javascript:alert(1)", "", 400, "Ask for"}, {"https://<script>", "", 400, "Ask for"}, {"https://" + strings.Repeat("x", maxAskedOrigin), "", 400, "Ask for"},
	} {
		left = 1
		if code, text := ask("GET", c.origin, c.header); code != c.code || !strings.HasPrefix(text, c.begins) {
			t.Errorf("%+v: %d %s", c, code, text)
		}
	}
	left = 1
	if code, _ := ask("POST", "https://www.example.com", ""); code != http.StatusMethodNotAllowed || left != 1 {
		t.Errorf("POST: %d", code)
	}
	left = 0
	if code, _ := ask("GET", "https://www.example.com", ""); code != http.StatusTooManyRequests || len(refusals) != 1 || refusals[0] != "rate" {
		t.Errorf("an address without a budget: %d %v", code, refusals)
	}
}

func TestUpAnswersAllowed(t *testing.T) {
	r := startUp(t, "--media="+testkit.TinyFilm(t))
	if code, text := fetch(t, "GET", r.page+"/allowed?origin="+r.page); code != 200 || !strings.HasPrefix(text, "allowed: ") {
		t.Errorf("its own page: %d %s", code, text)
	}
	if code, text := fetch(t, "GET", r.page+"/allowed?origin=https://other.example"); code != 200 || !strings.HasPrefix(text, "refused: ") {
		t.Errorf("another page: %d %s", code, text)
	}
}

// TestRequestsOverNewConnectionsAreBounded: one address asks for the script over a new connection each time.
func TestRequestsOverNewConnectionsAreBounded(t *testing.T) {
	defer goleak.VerifyNone(t)
	public, admin, dir := freeAddress(t), freeAddress(t), t.TempDir()
	file := filepath.Join(dir, "leeway.yaml")
	write(t, file, fmt.Sprintf("sites: [{name: demo, hosts: [video.example.com]}]\ntracker: {listen: %q, admin: %q, data_dir: %q, connects_per_second: 1}\nnats: {listen: %q}\n",
		public, admin, filepath.Join(dir, "tracker"), freeAddress(t)))
	stop := startService(t, admin, "tracker", "--config", file)
	client, answered := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, 0
	for ; answered < 2000; answered++ {
		r, err := client.Get("http://" + public + "/leeway.js")
		if err != nil {
			break
		}
		_ = r.Body.Close()
	}
	if answered == 0 || answered == 2000 {
		t.Errorf("%d requests over as many connections were answered", answered)
	}
	testkit.Eventually(t, "the refusal is counted", func() bool {
		_, metrics := fetch(t, "GET", "http://"+admin+"/metrics")
		return strings.Contains(metrics, `leeway_tracker_rejected_total{reason="rate"} 1`+"\n")
	})
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
}
