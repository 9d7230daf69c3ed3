package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// lockedBuffer is a bytes.Buffer that a test may read while a run writes to it.
type lockedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer // guarded by mu
	grew chan struct{}
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{grew: make(chan struct{}, 1)} }

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.grew <- struct{}{}:
	default:
	}
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// running is an up that a test started.
type running struct {
	page, admin string // http://HOST:PORT; page https:// with a certificate
	dir         string // its data folder
	out, errs   *lockedBuffer
	stop        func() error // ends it as SIGTERM does and returns what Run returned
}

// startUp runs `leeway up` until the test ends, on free ports.
func startUp(t *testing.T, args ...string) *running {
	t.Helper()
	r, err := tryUp(t, args...)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, r.out, r.errs)
	}
	return r
}

// tryUp is startUp for one that may end at once, with the error that it ended with.
func tryUp(t *testing.T, args ...string) (*running, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{dir: t.TempDir(), out: newLockedBuffer(), errs: newLockedBuffer()}
	args = append([]string{"up", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--seed-listen=127.0.0.1:0", "--probe-listen=127.0.0.1:0", "--data-dir=" + r.dir}, args...)
	var err error // Run's, once ended is closed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = Run(ctx, args, Env{Stdout: r.out, Stderr: r.errs, Environ: []string{"HOME=" + t.TempDir()}})
	}()
	r.stop = func() error { cancel(); <-ended; return err }
	t.Cleanup(func() { _ = r.stop() })
	address := regexp.MustCompile(`(https?://\S+)/\n\s+admin\s+(\S+)`)
	for {
		if found := address.FindStringSubmatch(r.out.String()); found != nil {
			r.page, r.admin = found[1], "http://"+found[2]
			return r, nil
		}
		select {
		case <-r.out.grew:
		case <-ended:
			return r, fmt.Errorf("up ended: %w", err)
		case <-time.After(30 * time.Second):
			return r, errors.New("up printed no address")
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func fetch(t *testing.T, method, url string, body ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func TestUp(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := startUp(t, "--media="+testkit.TinyFilm(t))
	if n := strings.Count(r.out.String()+r.errs.String(), "http://"); n != 1 {
		t.Errorf("prints %d http:// addresses, want the page's alone:\n%s%s", n, r.out, r.errs)
	}
	for path, want := range map[string]string{"/": "film-src", "/leeway.js": "", "/leeway-" + Version + ".js": "", "/leeway-" + Version + "-engine.js": ""} {
		if code, text := fetch(t, "GET", r.page+path); code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := fetch(t, "GET", r.page+"/announce"); code != 404 || !strings.Contains(text, "WebTorrent") {
		t.Errorf("/announce: %d %s", code, text)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", deliveryPath} {
		if code, _ := fetch(t, "GET", r.admin+path); code != 200 {
			t.Errorf("admin %s: %d", path, code)
		}
	}
	token, err := readToken(filepath.Join(r.dir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	keyed := strings.Replace(r.admin, "//", "//any:"+token+"@", 1)
	if code, _ := fetch(t, "GET", keyed+"/debug/pprof/"); code != 200 {
		t.Errorf("pprof: %d", code)
	}
	_, page := fetch(t, "GET", r.page+"/")
	source := regexp.MustCompile(`name="film-src" content="([^"]+)"`).FindStringSubmatch(page)
	if source == nil {
		t.Fatalf("no film in the page:\n%s", page)
	}
	if code, text := fetch(t, "GET", r.page+source[1]); code != 200 || !strings.HasPrefix(text, "#EXTM3U") {
		t.Errorf("%s: %d %s", source[1], code, text)
	}
	segment := strings.TrimSuffix(source[1], "master.m3u8") + "240p/seg-00000.ts"
	if code, _ := fetch(t, "POST", r.admin+"/origin/fault?kind=500"); code != 401 {
		t.Errorf("fault without the token: %d", code)
	}
	if code, _ := fetch(t, "POST", keyed+"/origin/fault?kind=500"); code != 204 {
		t.Errorf("fault: %d", code)
	}
	if code, _ := fetch(t, "GET", r.page+segment); code != 500 {
		t.Errorf("with a fault: %d", code)
	}
	_, text := fetch(t, "GET", r.page+"/demo/ledger")
	var l origin.Ledger
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Requests[origin.Viewer] != 2 {
		t.Errorf("ledger %s, %v", text, err)
	}
	begin := time.Now()
	if err := r.stop(); err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("stopped after %v: %v", time.Since(begin), err)
	}
	if strings.Contains(r.errs.String(), "level=ERROR") || strings.Contains(r.errs.String(), `"ERROR"`) {
		t.Errorf("logged errors:\n%s", r.errs)
	}
}

// TestUpSignsItsFilm: each list is that of its playlist, by the key that the site names.
func TestUpSignsItsFilm(t *testing.T) {
	r := startUp(t, "--sign-film", "--media="+testkit.TinyFilm(t))
	_, page := fetch(t, "GET", r.page+"/")
	source := regexp.MustCompile(`name="film-src" content="([^"]+)"`).FindStringSubmatch(page)
	if source == nil {
		t.Fatalf("no film in the page:\n%s", page)
	}
	_, master := fetch(t, "GET", r.page+source[1])
	media := regexp.MustCompile(`(?m)^[^#\s]+\.m3u8`).FindString(master)
	playlist := strings.TrimSuffix(source[1], "master.m3u8") + media
	_, text := fetch(t, "GET", r.page+playlist)
	code, list := fetch(t, "GET", r.page+certificate.ListURL(playlist))
	entries, err := certificate.ParseList([]byte(list))
	if code != 200 || err != nil || len(entries) < strings.Count(text, "#EXTINF") {
		t.Fatalf("the list of %s: %d, %d entries, %v", playlist, code, len(entries), err)
	}
	key, _, made, err := packagerKey(filepath.Join(r.dir, packagerFile))
	if err != nil || made || entries[0].KeyID != certificate.KeyIDOf(&key.PublicKey) {
		t.Errorf("signed by another key: %v", err)
	}
}

func TestUpTakesTheNextPort(t *testing.T) {
	defer goleak.VerifyNone(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	r := startUp(t, "--media="+testkit.TinyFilm(t), "--listen="+busy.Addr().String())
	if r.page == "http://"+busy.Addr().String() {
		t.Errorf("claims to listen on a taken port: %s", r.page)
	}
	if code, _ := fetch(t, "GET", r.page+"/"); code != 200 {
		t.Errorf("the page on %s: %d", r.page, code)
	}
	_ = r.stop()
}

func TestWhatTheFilmsViewersAreToEachOther(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := startUp(t, "--media="+testkit.TinyFilm(t), "--role=relay-only", "--no-prefetch")
	w, ok := greetingOf(t, strings.TrimPrefix(r.page, "http://"), r.page, "").(*signal.Welcome)
	if !ok || w.Policy.Role != "relay-only" || w.Policy.Prefetch {
		t.Errorf("%+v", w)
	}
	_ = r.stop()
}

func TestUpForASiteOfOnesOwn(t *testing.T) {
	defer goleak.VerifyNone(t)
	file := t.TempDir() + "/site.yaml"
	write(t, file, "name: mine\nhosts: [video.example.com]\nfetch_base: https://origin.example.com\n")
	r := startUp(t, "--site="+file)
	if _, text := fetch(t, "GET", r.page+"/"); !strings.Contains(text, `site "mine"`) || !strings.Contains(text, "<script async crossorigin src=") {
		t.Errorf("page: %s", text)
	}
	if code, _ := fetch(t, "GET", r.page+"/media/bbb/master.m3u8"); code != 404 {
		t.Errorf("there is a film: %d", code)
	}
	_ = r.stop()
	if out, errs, code := leeway(t, nil, "config", "check", file); code != 0 || out != file+": ok, 1 site\n" {
		t.Errorf("config check: %d %s%s", code, out, errs)
	}

	write(t, file, "name: mine\nhost: [video.example.com]\n")
	if out, _, code := leeway(t, nil, "config", "check", file); code != 2 || !strings.Contains(out, fmt.Sprintf(`%s:2: unknown key "host"; did you mean "hosts"?`, file)) {
		t.Errorf("config check of a wrong site: %d %s", code, out)
	}
	if _, errs, code := leeway(t, nil, "up", "--site", file); code != 2 || !strings.Contains(errs, fmt.Sprintf(`%s:2: unknown key "host"; did you mean "hosts"?`, file)) {
		t.Errorf("a wrong site: %d %s", code, errs)
	}
}

func TestUpSaysWhichPortsWereTaken(t *testing.T) {
	defer goleak.VerifyNone(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	r := startUp(t, "--listen=127.0.0.1:"+port, "--media="+testkit.TinyFilm(t))
	defer func() { _ = r.stop() }()
	if r.page == "http://127.0.0.1:"+port {
		t.Errorf("claims the taken port %s", port)
	}
	if want := "In use by other programs: " + port + "; "; !strings.Contains(r.out.String(), want) {
		t.Errorf("no %q:\n%s", want, r.out)
	}
	_, errs, code := leeway(t, nil, "tracker", "--config="+writeSite(t, filepath.Join(t.TempDir(), "leeway.yaml"), "http://video.example.com", "", 2, map[string]any{}), "--listen=127.0.0.1:"+port, "--data-dir="+t.TempDir())
	if want := "tracker --listen: listen on 127.0.0.1:" + port + ": bind: address already in use (another process"; code != 1 || !strings.Contains(errs, want) {
		t.Errorf("a tracker on it: %d %s", code, errs)
	}
}

func TestTheSeedTakesTheNextPort(t *testing.T) {
	defer goleak.VerifyNone(t)
	busy, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	p := seedParts{listen: busy.LocalAddr().String(), log: slog.New(slog.DiscardHandler)}
	if host, err := p.listenUDP(t.Context()); err == nil {
		_ = host.Close()
		t.Error("listens on a taken port")
	} else if !strings.Contains(err.Error(), "another process has the port") {
		t.Errorf("no hint: %v", err)
	}
	p.next = true
	host, err := p.listenUDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if host.Addr().String() == p.listen {
		t.Errorf("claims the taken port %s", host.Addr())
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
}

// TestASeedOfItsMachineIsReadyAtOnce: on loopback the seed is at the machine's other addresses too, and no tracker has to try them.
func TestASeedOfItsMachineIsReadyAtOnce(t *testing.T) {
	up := startUp(t, "--media="+testkit.TinyFilm(t), "--seed-listen=")
	if code, body := fetch(t, "GET", up.admin+"/readyz"); code != http.StatusOK {
		t.Errorf("%d: %s", code, body)
	}
	if !regexp.MustCompile(`seed +(\[::\]|0\.0\.0\.0):\d+/udp`).MatchString(up.out.String()) {
		t.Errorf("the seed is not at every address: %s", up.out.String())
	}
}
