package demosite

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScrapedPassesMetricsOn: a Prometheus that knows the file alone reads what the admin port says, and nothing else of it.
func TestScrapedPassesMetricsOn(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer admin.Close()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(admin.URL, "http://"))
	}
	s := &Site{Addr: netip.MustParseAddr("192.0.2.1"), Client: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
	file := filepath.Join(t.TempDir(), "targets.json")
	stop, err := s.Scraped(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []struct{ Targets []string }
	if err := json.Unmarshal(text, &found); err != nil || len(found) != 1 || len(found[0].Targets) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]string{"/metrics": "/metrics", "/purge": "404 page not found\n"} {
		response, err := client.Get("http://" + found[0].Targets[0] + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(body) != want {
			t.Errorf("%s says %q", path, body)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get("http://" + found[0].Targets[0] + "/metrics"); err == nil {
		t.Error("it answers when it is over")
	}
}
