package app

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
)

// testToken is the admin ports' of these tests.
const testToken = "0123456789012345678901234567890123456789"

func testGate(t *testing.T) *adminGate {
	t.Helper()
	g, err := openAdminGate(AdminConfig{Token: testToken, Hosts: []string{"seed-0.Example.com"}}, "", "127.0.0.1:9464", metric.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// adminPort serves the admin port of a process that knows of no switch yet, and keeps what it said last.
func adminPort(t *testing.T) (a *admin, sent *bus.RevokeMessage, url string) {
	t.Helper()
	sent = &bus.RevokeMessage{}
	var switches cluster.Switches
	sites, err := openSites([]site.Config{{Name: "demo", Hosts: []string{"video.example.com"}, Key: site.KeyRule{IgnorePath: []string{"tok=*"}, IgnoreQuery: []string{"t"}}}})
	if err != nil {
		t.Fatal(err)
	}
	a = &admin{
		gate: testGate(t), metrics: http.NotFoundHandler(), ready: func() error { return nil }, sites: sites,
		now: func() time.Time { return time.UnixMilli(1234) }, log: slog.New(slog.DiscardHandler),
		send: func(subject string, data []byte) error {
			if subject != bus.SubjectRevoke {
				t.Errorf("subject %s", subject)
			}
			*sent = bus.RevokeMessage{}
			return bus.Decode(data, sent)
		},
		switched: func(site string, off bool, until time.Time) []bus.Switch {
			return bus.Switches(switches.Say(site, off, cluster.ByOperator, until, time.UnixMilli(1234)))
		},
	}
	return a, sent, serveAdmin(t, a)
}

// serveAdmin serves an admin port, and returns its URL.
func serveAdmin(t *testing.T, a *admin) string {
	t.Helper()
	s := httptest.NewServer(a.handler(nil))
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s.URL
}

// command runs one against an admin port.
func command(t *testing.T, url string, args ...string) (out, errs string, code int) {
	t.Helper()
	return leeway(t, []string{"LEEWAY_ADMIN_TOKEN=" + testToken}, append(args, "--admin", strings.TrimPrefix(url, "http://"))...)
}

// TestAPurgedPathIsAsNamesHaveIt: another spelling of it would withdraw nothing, and nothing would say so.
func TestAPurgedPathIsAsNamesHaveIt(t *testing.T) {
	_, sent, url := adminPort(t)
	for path, want := range map[string]string{
		"/": "/", "/media/bb": "/media/bb", "/media/my film/": "/media/my%20film/", "/media/Käse/": "/media/K%C3%A4se/", "/media/k%c3%a4se/%7Ea": "/media/k%C3%A4se/~a",
		"/media/../film/": "/film/", "/tok=1/film/": "/film/", "/film/a.mp4?t=1": "/film/a.mp4", "/film/a.mp4#0-": "/film/a.mp4#0-",
	} {
		out, errs, code := command(t, url, "purge", "demo", path)
		if code != 0 || out != "purged demo "+want+"\n" || sent.Revocations[0].Prefix != want {
			t.Errorf("%s: %d %q %q, sent %+v", path, code, out, errs, sent.Revocations)
		}
	}
	for _, path := range []string{"/" + strings.Repeat("a", 1024), `/a\b`} {
		if _, errs, code := command(t, url, "purge", "demo", path); code != 1 || !strings.Contains(errs, "begins no name") {
			t.Errorf("%s: %d %q", path, code, errs)
		}
	}
}

func TestAdminPurge(t *testing.T) {
	a, sent, url := adminPort(t)
	out, errs, code := command(t, url, "purge", "demo", "/media/x/")
	if code != 0 || out != "purged demo /media/x/\n" {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	if len(sent.Revocations) != 1 || sent.Revocations[0].Prefix != "/media/x/" || sent.Revocations[0].MinIssuedAt != 1234 {
		t.Errorf("sent %+v", sent)
	}
	out, errs, code = command(t, url, "purge", "demo", "/media/x/", "--for", "24h")
	if code != 0 || out != "purged demo /media/x/, down until 1970-01-02T00:00:01Z\n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if least := sent.Revocations[0].MinIssuedAt; least != 1234+(24*time.Hour+certificate.MaxSkew).Milliseconds() {
		t.Errorf("a tombstone of %d", least)
	}
	out, errs, code = command(t, url, "purge", "--key", "0de41a437d6378b6")
	if code != 0 || out != "revoked key 0de41a437d6378b6\n" || len(sent.Revocations[0].KeyID) != 8 || sent.Revocations[0].Site != "" {
		t.Errorf("%d %q %q, sent %+v", code, out, errs, sent)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, `did you mean "demo"`, []string{"demmo", "/"}},
		{1, "slash", []string{"demo", "media"}},
		{1, "31 days", []string{"demo", "/", "--for", "745h"}},
		{1, "no key ID", []string{"--key", "0de4"}},
		{2, "--key ID alone", []string{"demo", "/", "--key", "0de41a437d6378b6"}},
		{2, "--key ID alone", []string{"demo"}},
		{2, "a second or more", []string{"demo", "/", "--for", "1ms"}},
	} {
		if _, errs, code := command(t, url, append([]string{"purge"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("purge %v: %d %q", c.args, code, errs)
		}
	}
	a.send = func(string, []byte) error { return errors.New("down") }
	if _, errs, code := command(t, url, "purge", "demo", "/"); code != 1 || !strings.Contains(errs, "bus is down") {
		t.Errorf("no bus: %d %q", code, errs)
	}
	for _, path := range []string{"/purge", "/switch"} {
		request, err := http.NewRequest(http.MethodPost, url+path, strings.NewReader(`{"site":"demo","prefix":"/"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+testToken)
		r, err := http.DefaultClient.Do(request)
		if err != nil || r.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("a form from a page: %v %v", r, err)
		}
		_ = r.Body.Close()
	}
}

func TestAdminSwitch(t *testing.T) {
	_, sent, url := adminPort(t)
	out, errs, code := command(t, url, "switch", "demo", "off")
	if code != 0 || out != "peer delivery of demo is off\n" {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	if len(sent.Switches) != 1 || sent.Switches[0] != (bus.Switch{Site: "demo", Reason: cluster.ByOperator, Off: true, At: 1234}) {
		t.Errorf("sent %+v", sent)
	}
	out, _, code = command(t, url, "switch", "demo", "off", "--for", "2h")
	if code != 0 || out != "peer delivery of demo is off until 1970-01-01T02:00:01Z\n" || sent.Switches[0].Until != 1234+7_200_000 {
		t.Errorf("%d %q, sent %+v", code, out, sent)
	}
	out, _, code = command(t, url, "switch", "demo", "on")
	if code != 0 || out != "peer delivery of demo is on\n" || len(sent.Switches) != len(cluster.SwitchReasons) || sent.Switches[0].Off {
		t.Errorf("%d %q, sent %+v", code, out, sent)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, `did you mean "demo"`, []string{"demmo", "off"}},
		{2, "must be one of", []string{"demo", "maybe"}},
		{2, "with off", []string{"demo", "on", "--for", "1h"}},
	} {
		if _, errs, code := command(t, url, append([]string{"switch"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("switch %v: %d %q", c.args, code, errs)
		}
	}
}

// TestASwitchForCenturies: of a time that no duration holds, the end would be another one, before 1970 perhaps.
func TestASwitchForCenturies(t *testing.T) {
	_, sent, url := adminPort(t)
	request, err := http.NewRequest(http.MethodPost, url+"/switch", strings.NewReader(`{"site":"demo","off":true,"for_ms":10000000000000}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testToken)
	request.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusBadRequest || len(sent.Switches) > 0 {
		t.Errorf("%s, sent %+v", r.Status, sent.Switches)
	}
}

func TestAdminHealth(t *testing.T) {
	var notReady error
	a := &admin{gate: testGate(t), metrics: http.NotFoundHandler(), ready: func() error { return notReady }, now: time.Now, log: slog.New(slog.DiscardHandler)}
	get := func(path string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "10.244.1.7:9464" // as the kubelet and Prometheus ask a pod
		a.handler(nil).ServeHTTP(w, r)
		return w.Code
	}
	if get("/healthz") != 200 || get("/readyz") != 200 || get("/debug/pprof/") != 401 {
		t.Error("a healthy process does not say so")
	}
	notReady = errors.New("draining")
	if get("/healthz") != 200 || get("/readyz") != 503 {
		t.Error("a draining process is healthy and not ready")
	}
}
