package doctor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/doctor"
	"github.com/leeway-video/leeway/internal/jwtauth"
)

var quiet = log.New(io.Discard, "", 0)

// set is a tracker and a seed on one NATS server, with a site for each thing that can be wrong.
type set struct {
	tracker, admin, nats      string
	good, paid, denied, other *film
	signed, tokened, off      *film
	unserved                  *film
	signing, foreignKey       string // files of keys that sign join tokens
	file                      string // the configuration
}

func newSet(t *testing.T) *set {
	t.Helper()
	dir := t.TempDir()
	s := &set{nats: freePort(t), admin: freePort(t), signing: filepath.Join(dir, "signing.jwk"), foreignKey: filepath.Join(dir, "other.jwk")}
	keys := filepath.Join(dir, "keys.json")
	for file, into := range map[string]string{s.signing: keys, s.foreignKey: filepath.Join(dir, "other.json")} {
		if _, errs, code := leeway(t, "token", "keygen", file, "--keys", into, "--id", "one"); code != 0 {
			t.Fatal(errs)
		}
	}
	var n atomic.Int64
	next := func() string { return strconv.FormatInt(n.Add(1), 10) }
	s.good, s.paid, s.off, s.unserved, s.other = newFilm(t, nil), newFilm(t, nil), newFilm(t, nil), newFilm(t, nil), newFilm(t, nil)
	s.denied = newFilm(t, func(f *film) {
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			refused := strings.HasPrefix(r.UserAgent(), "leeway-seed")
			if refused {
				http.Error(w, "no", http.StatusForbidden)
			}
			return refused
		}
	})
	s.signed = newFilm(t, func(f *film) { f.query = func() string { return "?token=" + next() + "&u=" + next() } })
	s.tokened = newFilm(t, func(f *film) { f.folder = func() string { return next() + "/" } })
	public, seedAdmin := freePort(t), freePort(t)
	s.tracker = "ws://" + public + "/"
	sections := map[string]any{
		"sites": []any{
			s.good.site("good", nil), s.paid.site("paid", map[string]any{"access": "token", "token_keys": keys}), s.denied.site("denied", nil),
			s.signed.site("signed", nil), s.tokened.site("tokened", nil), s.off.site("off", map[string]any{"off": true}),
			s.unserved.site("unserved", map[string]any{"fetch_base": nil}),
		},
		"tracker": map[string]any{"listen": public, "admin": s.admin, "data_dir": filepath.Join(dir, "tracker")},
		"seed":    map[string]any{"listen": "127.0.0.1:0", "admin": seedAdmin, "data_dir": filepath.Join(dir, "seed")},
		"nats":    map[string]any{"listen": s.nats, "user": "u", "password": "p"},
	}
	service(t, s.admin, "tracker", "--config", written(t, sections))
	sections["nats"] = map[string]any{"url": "nats://" + s.nats, "user": "u", "password": "p"}
	s.file = written(t, sections)
	service(t, seedAdmin, "seed", "--config", s.file)
	return s
}

// mint makes a join token of the site paid.
func (s *set) mint(t *testing.T, key string, more ...string) string {
	t.Helper()
	out, errs, code := leeway(t, append([]string{"token", "mint", "--key", key, "--site", "paid"}, more...)...)
	if code != 0 {
		t.Fatal(errs)
	}
	return strings.TrimSpace(out)
}

// ended is a token that was good an hour ago.
func (s *set) ended(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(s.signing)
	if err != nil {
		t.Fatal(err)
	}
	key, err := access.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwtauth.Sign(access.Claims{Site: "paid", Expires: time.Now().Add(-time.Hour)}, key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// found is the finding of this code.
func found(r doctor.Report, code string) (f doctor.Finding, ok bool) {
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.Code == code })
	if i < 0 {
		return f, false
	}
	return r.Findings[i], true
}

// broken is a planted fault, the code that names it, and a word of the fix.
type broken struct {
	code, fix string
	config    doctor.Config
	warning   bool
}

// TestPlantedFaults plants what goes wrong with sites, one thing at a time, beside real services.
func TestPlantedFaults(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	s := newSet(t)
	cases := slices.Concat(s.media(t), s.trackers(t), s.sessions(t))
	t.Run("all", func(t *testing.T) {
		t.Run("relays", func(t *testing.T) { t.Parallel(); s.relays(t) })
		t.Run("config", func(t *testing.T) { t.Parallel(); s.config(t) })
		t.Run("healthy", func(t *testing.T) { t.Parallel(); s.healthy(t, "master.m3u8") })
		t.Run("healthy DASH", func(t *testing.T) { t.Parallel(); s.healthy(t, "film.mpd") })
		t.Run("draws", func(t *testing.T) { t.Parallel(); s.draws(t) })
		t.Run("late", func(t *testing.T) { t.Parallel(); s.late(t) })
		for _, c := range cases {
			t.Run(c.code, func(t *testing.T) {
				t.Parallel()
				c.config.Patience = cmp.Or(c.config.Patience, 20*time.Second)
				report := doctor.Examine(context.Background(), c.config, nil)
				f, ok := found(report, c.code)
				if !ok || !strings.Contains(f.Fix, c.fix) || report.Healthy != c.warning || f.Status == doctor.Warn != c.warning {
					text, _ := json.MarshalIndent(report, "", " ")
					t.Errorf("want %s with %q in its fix:\n%s", c.code, c.fix, text)
				}
			})
		}
	})
}

// media are faults of manifest and segments. All of them are of the site good, as far as the tracker knows.
func (s *set) media(t *testing.T) []broken {
	with := func(change func(*film)) doctor.Config {
		return doctor.Config{Manifest: newFilm(t, change).manifest()}
	}
	at := func(manifest string) doctor.Config { return doctor.Config{Manifest: manifest} }
	page := func(text string) func(*film) {
		return func(f *film) {
			f.answer = func(w http.ResponseWriter, _ *http.Request) bool { _, _ = io.WriteString(w, text); return true }
		}
	}
	status := func(part string, code int) func(*film) {
		return func(f *film) {
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if hit := strings.Contains(r.URL.Path, part); hit {
					http.Error(w, "no", code)
					return true
				}
				return false
			}
		}
	}
	cors := with(func(f *film) { f.cors = false })
	cors.PageOrigin = "https://www.example.com"
	mixed := with(nil)
	mixed.Manifest, mixed.PageOrigin = strings.Replace(mixed.Manifest, "127.0.0.1", "media.test", 1), "https://www.example.com"
	mixed.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, strings.Replace(address, "media.test", "127.0.0.1", 1))
	}
	large := "#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + strings.Repeat("#EXTINF:1,\nseg-0.ts\n", 4<<20/20) + "#EXT-X-ENDLIST\n"
	return []broken{
		{"manifest-missing", "check the URL", at(s.good.URL + "/f/none.m3u8"), false},
		{"manifest-refused", "signature", with(status("master", http.StatusForbidden)), false},
		{"manifest-status", "log", with(status("master", http.StatusBadGateway)), false},
		{"manifest-unreachable", "port", at("http://" + freePort(t) + "/m.m3u8"), false},
		{"manifest-type", ".m3u8", with(page("<html><body>Not found</body></html>")), false},
		{"manifest-empty", "packager", with(page("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-ENDLIST\n")), false},
		{"manifest-empty", "packager", with(packed("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-ENDLIST\n")), false},
		{"manifest-large", "window", with(page(large)), false},
		{"rendition-missing", "check the URL", with(status("list", http.StatusNotFound)), false},
		{"segment-missing", "check the URL", with(status("seg-", http.StatusNotFound)), false},
		{"not-shareable", "Cache-Control", with(func(f *film) { f.header = map[string]string{"Cache-Control": "private"} }), false},
		{"cors-missing", "Access-Control-Allow-Origin: https://www.example.com", cors, false},
		{"media-insecure", "https", mixed, false},
		{"range-ignored", "206", with(func(f *film) {
			f.answer = func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del("Range"); return false }
		}), true},
	}
}

// trackers are faults on the way to the tracker.
func (s *set) trackers(t *testing.T) []broken {
	of := func(tracker string) doctor.Config {
		return doctor.Config{Manifest: s.good.manifest(), Tracker: tracker}
	}
	expired, roots := pair(t, time.Now().AddDate(0, 0, -1))
	gone := of(overTLS(t, expired, http.NotFoundHandler()))
	gone.Roots = roots
	ends, trusted := pair(t, time.Now().AddDate(0, 0, 3))
	u, err := url.Parse(strings.Replace(s.tracker, "ws", "http", 1))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.ErrorLog = quiet
	soon := of(overTLS(t, ends, proxy))
	soon.Roots = trusted
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	absent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(absent.Close)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(other.Close)
	filtered := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(filtered.Close)
	stopped := of("ws" + strings.TrimPrefix(filtered.URL, "http") + "/")
	stopped.PageOrigin = s.good.URL
	insecure := of(s.tracker)
	insecure.PageOrigin = "https://www.example.com"
	page := of(s.tracker)
	page.PageOrigin = "http://www.example.com"
	admin := of(strings.Replace(s.tracker, "127.0.0.1", "tracker.test", 1))
	_, admin.AdminPort, _ = net.SplitHostPort(s.admin)
	admin.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, strings.Replace(address, "tracker.test", "127.0.0.1", 1))
	}
	nowhere := of("ws://tracker.test/")
	nowhere.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "tracker.test") {
			return nil, &net.DNSError{Err: "no such host", Name: "tracker.test", IsNotFound: true}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return []broken{
		{"tracker-unreachable", "start the server", of("ws://" + freePort(t) + "/"), false},
		{"tracker-dns", "DNS", nowhere, false},
		{"tracker-wrong-server", "data-tracker", of("ws" + strings.TrimPrefix(plain.URL, "http") + "/"), false},
		{"tracker-wrong-server", "no server of this name", of("ws" + strings.TrimPrefix(other.URL, "http") + "/"), false},
		{"tracker-wrong-server", "refuses WebSockets", stopped, false},
		{"tracker-draining", "address in the proxy", of("ws" + strings.TrimPrefix(absent.URL, "http") + "/"), false},
		{"tracker-tls-expired", "renew", gone, false},
		{"tracker-tls-untrusted", "chain", of(overTLS(t, ends, http.NotFoundHandler())), false},
		{"tracker-no-tls", "ws://", of(strings.Replace(s.tracker, "ws:", "wss:", 1)), false},
		{"tracker-tls-soon", "renew", soon, true},
		{"tracker-insecure", "wss://", insecure, false},
		{"origin-refused", `page_origins: ["http://www.example.com"]`, page, false},
		{"admin-public", "tracker.admin", admin, false},
	}
}

// sessions are faults behind the welcome.
func (s *set) sessions(t *testing.T) []broken {
	of := func(f *film) doctor.Config { return doctor.Config{Manifest: f.manifest(), Tracker: s.tracker} }
	shown := func(token string) doctor.Config {
		c := of(s.paid)
		c.Token = token
		return c
	}
	skewed := of(s.good)
	skewed.Now = func() time.Time { return time.Now().Add(-10 * time.Minute) }
	site := of(s.good)
	site.Site = "none"
	foreign := of(s.other)
	foreign.PageOrigin = s.good.URL
	denied := of(s.denied)
	denied.Patience = 8 * time.Second // it waits for all of it
	return []broken{
		{"token-required", "leeway token mint", of(s.paid), false},
		{"bad-token", "token_keys", shown(s.mint(t, s.foreignKey)), false},
		{"token-expired", "mint a new token", shown(s.ended(t)), false},
		{"bad-title", "title.explicit", shown(s.mint(t, s.signing, "--title", "/else")), false},
		{"bad-site", "--site", site, false},
		{"foreign-manifest", `hosts: ["` + s.other.host() + `"]`, foreign, false},
		{"clock-skew", "this machine's clock by NTP", skewed, false},
		{"no-seed", "leeway seed", of(s.unserved), false},
		{"site-off", "leeway switch SITE on", of(s.off), false},
		{"signed-urls", "ignore_query: [token, u]", of(s.signed), false},
		{"signed-path", "key.path", of(s.tokened), false},
		{"piece-none", "leeway doctor --config FILE", denied, false},
	}
}

// healthy runs the command on a site without faults: it is to find none, within its time.
func (s *set) healthy(t *testing.T, manifest string) {
	begun := time.Now()
	out, errs, code := leeway(t, "doctor", "--json", "--config", s.file, "--tracker", s.tracker, s.good.URL+"/f/"+manifest)
	if took := time.Since(begun); took > 40*time.Second { // 10 s on a machine that is not four times slower
		t.Errorf("it took %v", took)
	}
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || !report.Healthy {
		t.Fatalf("%d %v %s\n%s", code, err, errs, out)
	}
	for _, f := range report.Findings {
		switch {
		case f.Status == doctor.OK, f.Code == "udp-buffers", f.Code == "file-limit": // of the machine that tests
		case f.Check == "admin" && f.Status == doctor.Skip:
		default:
			t.Errorf("%+v", f)
		}
	}
}

// config has the command read configurations that are wrong.
func (s *set) config(t *testing.T) {
	sites := []any{s.good.site("good", nil)}
	dash := newFilm(t, func(f *film) {
		f.name = "film.mpd"
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			refused := strings.HasPrefix(r.UserAgent(), "leeway-seed") && strings.Contains(r.URL.Path, "seg-")
			if refused {
				http.Error(w, "no", http.StatusForbidden)
			}
			return refused
		}
	})
	for _, c := range []struct {
		code, fix string
		film      *film
		sections  map[string]any
		warning   bool
	}{
		{"nats-unreachable", "nats.url", s.good, map[string]any{"sites": sites, "nats": map[string]any{"url": "nats://" + freePort(t)}}, false},
		{"nats-refused", "nats.password", s.good, map[string]any{"sites": sites, "nats": map[string]any{"url": "nats://" + s.nats, "user": "u", "password": "wrong"}}, false},
		{"config-invalid", "leeway config check", s.good, map[string]any{"sites": sites, "tracker": map[string]any{"max_sessions": 0}}, false},
		{"turn-secret", "leeway secret", s.good, map[string]any{"sites": sites,
			"tracker": map[string]any{"ice_servers": []any{map[string]any{"urls": []string{"turn:127.0.0.1:1"}, "secret": strings.Repeat("a", 43)}}},
			"turn":    map[string]any{"secrets": []string{strings.Repeat("b", 43)}}}, false},
		{"seed-origin-client-error", "leeway-seed", s.denied, map[string]any{"sites": []any{s.denied.site("denied", nil)}}, false},
		{"seed-origin-client-error", "leeway-seed", dash, map[string]any{"sites": []any{dash.site("dash", nil)}}, false}, // of its segments alone
		{"seed-origin-not-found", "fetch_base", s.good, map[string]any{"sites": []any{s.good.site("good", map[string]any{"fetch_base": s.good.URL + "/media"})}}, false},
		{"no-fetch-base", "fetch_base", s.good, map[string]any{"sites": []any{s.good.site("good", map[string]any{"fetch_base": nil})}}, false},
		{"seed-origin-closed", "fetch_auth", s.good, map[string]any{"sites": []any{s.good.site("good", map[string]any{
			"fetch_auth": map[string]any{"headers_file": "/none"}, "policy": map[string]any{"signed_manifests": "share"}})}}, false},
		{"seed-origin-closed", "seed.private", s.good, map[string]any{"sites": sites, "seed": map[string]any{"private": []string{"here"}}}, false},
		{"admin-wide", "127.0.0.1", s.good, map[string]any{"sites": sites, "tracker": map[string]any{"admin": "0.0.0.0:9464"}}, true},
	} {
		out, _, code := leeway(t, "doctor", "--json", "--config", written(t, c.sections), c.film.manifest(), "--tracker", "ws://127.0.0.1:1/")
		var report doctor.Report
		err := json.Unmarshal([]byte(out), &report)
		if f, ok := found(report, c.code); err != nil || !ok || !strings.Contains(f.Fix, c.fix) || code != 1 {
			t.Errorf("want %s with %q in its fix: %d %v\n%s", c.code, c.fix, code, err, out)
		}
	}
}

// relays asks a relay that is there, by the right secret and by a wrong one, and two that are not there.
func (s *set) relays(t *testing.T) {
	secret := strings.Repeat("s", 43)
	relay, admin, public, trackerAdmin := freePort(t), freePort(t), freePort(t), freePort(t)
	service(t, admin, "turn", "--config", written(t, map[string]any{"turn": map[string]any{
		"secrets": []string{secret}, "listen": relay, "admin": admin, "drain": "1ms", "announce": []string{"127.0.0.1"}}}))
	server := func(secret string, urls ...string) map[string]any {
		return map[string]any{"urls": urls, "secret": secret}
	}
	service(t, trackerAdmin, "tracker", "--config", written(t, map[string]any{
		"sites": []any{s.good.site("good", nil)},
		"tracker": map[string]any{"listen": public, "admin": trackerAdmin, "data_dir": t.TempDir(), "ice_servers": []any{
			server(secret, "turn:"+relay+"?transport=udp", "turn:"+relay+"?transport=tcp"), server(strings.Repeat("w", 43), "turn:"+relay+"?transport=udp"),
			server(secret, "turn:"+freePort(t)+"?transport=tcp"), map[string]any{"urls": []string{"stun:" + freePort(t)}},
		}},
	}))
	report := doctor.Examine(t.Context(), doctor.Config{Tracker: "ws://" + public + "/", PageOrigin: s.good.URL}, nil)
	good := 0
	for _, f := range report.Findings {
		if f.Check == "relays" && f.Status == doctor.OK {
			good++
		}
	}
	for code, fix := range map[string]string{"turn-refused": "turn.secrets", "turn-dead": "leeway turn", "stun-dead": "STUN"} {
		if f, ok := found(report, code); !ok || !strings.Contains(f.Fix, fix) || good != 2 {
			t.Errorf("want %s with %q in its fix, and two that work: %+v", code, fix, report.Findings)
		}
	}
}
