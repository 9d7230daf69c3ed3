package app

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/testkit"
)

// everyRoute is what the admin port answers.
var everyRoute = []string{
	"GET /metrics", "GET /healthz", "GET /readyz", "POST /purge", "POST /switch", "POST /origin/fault",
	"GET /debug/pprof/", "GET /debug/pprof/heap", "GET /debug/pprof/cmdline", "GET /debug/pprof/profile", "GET /debug/pprof/symbol", "GET /debug/pprof/trace",
}

func gated(g *adminGate) http.Handler {
	a := &admin{
		gate: g, ready: func() error { return nil }, log: slog.New(slog.DiscardHandler),
		metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		send:    func(string, []byte) error { panic("told to all replicas") },
	}
	fault := func(http.ResponseWriter, *http.Request) { panic("the origin fails") }
	return a.handler(map[string]http.HandlerFunc{"POST /origin/fault": fault})
}

// asks is the answer to a request of a page: JSON, by some name of the port, with some credential.
func asks(h http.Handler, route, host, authorization string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(route, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(`{"site":"demo","prefix":"/"}`))
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAReboundNameReachesNothing: a page of a stranger, whose name resolves to this machine by now, sends requests from a browser
// that reaches the port.
func TestAReboundNameReachesNothing(t *testing.T) {
	var count testkit.Recorder
	g, err := openAdminGate(AdminConfig{Token: testToken, Hosts: []string{"seed-0.Example.com"}}, "", "admin.internal:9464", &count, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := gated(g)
	for _, host := range []string{
		"evil.example", "evil.example:9464", "localhost.evil.example:9464", "127.0.0.1.evil.example", "", "seed-0.example.com.evil:80", "[evil]:9464", "127.0.0.1 evil",
		"0x7f000001:9464", "2130706433:9464",
	} {
		for _, route := range everyRoute {
			if w := asks(h, route, host, "Bearer "+testToken); w.Code != http.StatusMisdirectedRequest || !strings.Contains(w.Body.String(), "admin.hosts") {
				t.Errorf("%s by the name %q: %d %s", route, host, w.Code, w.Body)
			}
		}
	}
	if n := count.Value(refusedAdminMetric, "host"); n != float64(10*len(everyRoute)) {
		t.Errorf("%v are counted", n)
	}
	for _, host := range []string{
		"127.0.0.1:9464", "localhost:9464", "LOCALHOST", "10.244.1.7:9464", "[::1]:9464", "[fd00::7]", "seed-0.example.com:9464", "SEED-0.example.com", "admin.internal:9464",
	} {
		if w := asks(h, "GET /readyz", host, ""); w.Code != http.StatusOK {
			t.Errorf("by the name %q: %d %s", host, w.Code, w.Body)
		}
	}
}

func TestWhatChangesSomethingNeedsTheToken(t *testing.T) {
	var count testkit.Recorder
	g, err := openAdminGate(AdminConfig{Token: testToken}, "", "127.0.0.1:9464", &count, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	without, err := openAdminGate(AdminConfig{}, "", "127.0.0.1:9464", &count, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, route := range everyRoute[3:] {
		for _, shown := range []string{"", "Bearer ", "Bearer " + testToken[1:], "Bearer " + testToken + "x", "Basic OjAxMjM=", testToken} {
			for _, h := range []http.Handler{gated(g), gated(without)} {
				refused++
				if w := asks(h, route, "127.0.0.1:9464", shown); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "LEEWAY_ADMIN_TOKEN") {
					t.Errorf("%s with %q: %d %s", route, shown, w.Code, w.Body)
				}
			}
		}
		if w := asks(gated(without), route, "127.0.0.1:9464", "Bearer "+testToken); w.Code != http.StatusUnauthorized {
			t.Errorf("%s of a port without token: %d", route, w.Code)
		}
		refused++
	}
	if n := count.Value(refusedAdminMetric, "token"); n != float64(refused) {
		t.Errorf("%v of %d are counted", n, refused)
	}
	for _, route := range everyRoute[:3] {
		if w := asks(gated(without), route, "127.0.0.1:9464", ""); w.Code != http.StatusOK {
			t.Errorf("%s without a token: %d", route, w.Code)
		}
	}
	r := httptest.NewRequest("GET", "/debug/pprof/cmdline", nil)
	r.Host = "127.0.0.1:9464"
	r.SetBasicAuth("any", testToken)
	w := httptest.NewRecorder()
	if gated(g).ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("as a password: %d", w.Code)
	}
}

func TestTheTokenIsMadeOnceForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	open := func(c AdminConfig) (*adminGate, error) {
		return openAdminGate(c, dir, "127.0.0.1:9464", metric.Discard, slog.New(slog.DiscardHandler))
	}
	first, err := open(AdminConfig{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, tokenFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	token, err := readToken(filepath.Join(dir, tokenFile))
	if err != nil || len(token) < minAdminToken {
		t.Fatalf("%q %v", token, err)
	}
	again, err := open(AdminConfig{})
	if err != nil || string(again.token) != string(first.token) {
		t.Errorf("another at the next start: %v", err)
	}
	if w := asks(gated(again), "GET /debug/pprof/cmdline", "127.0.0.1:9464", "Bearer "+token); w.Code != http.StatusOK {
		t.Errorf("the token opens nothing: %d", w.Code)
	}
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "short\n")
	if _, err := open(AdminConfig{TokenFile: file}); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a short token: %v", err)
	}
	// A pod without a folder of its own starts all the same; one that is told to keep its token somewhere says that it cannot.
	write(t, filepath.Join(dir, "file"), "")
	none, err := openAdminGate(AdminConfig{}, filepath.Join(dir, "file", "below"), "127.0.0.1:9464", metric.Discard, slog.New(slog.DiscardHandler))
	if err != nil || none.token != nil {
		t.Errorf("no folder to write to: %v", err)
	}
	if _, err := open(AdminConfig{TokenFile: filepath.Join(dir, "file", "below")}); err == nil {
		t.Error("a token file that cannot be written is no error")
	}
}

func TestCommandsFindTheToken(t *testing.T) {
	_, _, url := adminPort(t)
	at := strings.TrimPrefix(url, "http://")
	home := t.TempDir()
	do := func(environ []string, args ...string) (string, int) {
		var errs strings.Builder
		err := Run(t.Context(), append([]string{"purge", "demo", "/", "--admin", at}, args...), Env{Stdout: io.Discard, Stderr: &errs, Environ: append(environ, "HOME="+home)})
		if err != nil {
			errs.WriteString(err.Error())
		}
		return errs.String(), cmdline.ExitCode(err)
	}
	if errs, code := do(nil); code != 1 || !strings.Contains(errs, "--admin-token-file") {
		t.Errorf("without a token: %d %s", code, errs)
	}
	file := filepath.Join(t.TempDir(), "token")
	if errs, code := do(nil, "--admin-token-file", file); code != 2 || !strings.Contains(errs, file) {
		t.Errorf("a file that is not there: %d %s", code, errs)
	}
	write(t, file, testToken+"\n")
	foreign := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, foreign, "seed: {fleet: {secret: '${SECRET_OF_SEEDS}'}}\n")
	for name, try := range map[string]func() (string, int){
		"named":       func() (string, int) { return do(nil, "--admin-token-file", file) },
		"by variable": func() (string, int) { return do([]string{"LEEWAY_ADMIN_TOKEN=" + testToken}) },
		"beside a file that only its service can read": func() (string, int) {
			return do([]string{"LEEWAY_ADMIN_TOKEN=" + testToken, "LEEWAY_CONFIG=" + foreign})
		},
		"file by variable": func() (string, int) { return do([]string{"LEEWAY_ADMIN_TOKEN_FILE=" + file}) },
	} {
		if errs, code := try(); code != 0 {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
	// A tracker and a seed on this machine have a token each, and the seed's is this port's.
	for service, token := range map[string]string{"tracker": strings.Repeat("t", 40), "seed": testToken} {
		dir := filepath.Join(home, ".local", "share", "leeway", service)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, tokenFile), token)
	}
	if errs, code := do(nil); code != 0 {
		t.Errorf("in the data folders: %d %s", code, errs)
	}
	http.DefaultClient.CloseIdleConnections()
}
