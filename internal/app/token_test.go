package app

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// keygen makes a key as an operator does, and returns where its halves are.
func keygen(t *testing.T, args ...string) (signing, keys string) {
	t.Helper()
	dir := t.TempDir()
	signing, keys = filepath.Join(dir, "signing.jwk"), filepath.Join(dir, "keys.json")
	if out, errs, code := leeway(t, nil, append([]string{"token", "keygen", signing, "--keys", keys}, args...)...); code != 0 || !strings.Contains(out, keys) {
		t.Fatalf("keygen: %d %s %s", code, out, errs)
	}
	return signing, keys
}

// mint makes a token as an operator does.
func mint(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := leeway(t, nil, append([]string{"token", "mint"}, args...)...)
	if code != 0 {
		t.Fatalf("mint: %d %s", code, errs)
	}
	return strings.TrimSpace(out)
}

func TestKeysAndTokensByCommand(t *testing.T) {
	for _, alg := range []string{access.EdDSA, access.HS256} {
		signing, keys := keygen(t, "--alg", alg, "--id", "one")
		if info, err := os.Stat(signing); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the key that signs is %v, %v", alg, info.Mode(), err)
		}
		if _, errs, code := leeway(t, nil, "token", "keygen", signing); code != 2 || !strings.Contains(errs, "there already") {
			t.Errorf("%s: a key was written over: %d %s", alg, code, errs)
		}
		other := filepath.Join(t.TempDir(), "other.jwk")
		if _, errs, code := leeway(t, nil, "token", "keygen", other, "--keys", keys, "--id", "one"); code == 0 || !strings.Contains(errs, "another --id") {
			t.Errorf("%s: two keys of one name: %d %s", alg, code, errs)
		} else if _, err := os.Stat(other); err == nil {
			t.Error("half of a key was left behind")
		}
		if err := os.Chmod(keys, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := leeway(t, nil, "token", "keygen", other, "--keys", keys, "--id", "two"); code != 0 {
			t.Errorf("%s: a second key: %s", alg, errs)
		}
		if info, err := os.Stat(keys); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: the tracker's file is %v now, %v", alg, info.Mode(), err)
		}
		text, err := os.ReadFile(keys)
		if set, wrong := access.ParseKeys(text); err != nil || wrong != nil || len(set) != 2 {
			t.Errorf("%s: %v %v %s", alg, err, wrong, text)
		}
		token := mint(t, "--key", signing, "--site", "demo", "--title", "/media/a,b", "--title", "/live/*", "--group", "g", "--role", "leech", "--life", "1h")
		out, errs, code := leeway(t, nil, "token", "verify", "--keys", keys, "--site", "demo", "--title", "/live/x", token)
		var grant struct {
			Titles []string
			Role   string
			Left   int `json:"seconds_left"`
		}
		if err := json.Unmarshal([]byte(out), &grant); code != 0 || err != nil || len(grant.Titles) != 2 || grant.Role != "leech" || grant.Left < 3500 {
			t.Errorf("%s: verify: %d %s %s", alg, code, out, errs)
		}
		for _, c := range []struct{ site, title, reason string }{{"other", "", "(site)"}, {"demo", "/media/a", "(title)"}} {
			if _, errs, code := leeway(t, nil, "token", "verify", "--keys", keys, "--site", c.site, "--title", c.title, token); code != 1 || !strings.Contains(errs, c.reason) {
				t.Errorf("%s: %+v: %d %s", alg, c, code, errs)
			}
		}
		bound := mint(t, "--key", signing, "--site", "demo", "--title", "trailer-7", "--manifest", "/trailers/7/*")
		for path, want := range map[string]int{"/trailers/7/master.m3u8": 0, "/premium/film/master.m3u8": 1} {
			out, errs, code := leeway(t, nil, "token", "verify", "--keys", keys, "--site", "demo", "--title", "trailer-7", "--manifest", path, bound)
			if code != want || (code == 1) != strings.Contains(errs, "(manifest)") || (code == 0) != strings.Contains(out, "/trailers/7/*") {
				t.Errorf("%s: verify of %s: %d %s %s", alg, path, code, out, errs)
			}
		}
		if out, errs, code := leeway(t, nil, "token", "inspect", token); code != 0 || !strings.Contains(out, `"kid": "one"`) || !strings.Contains(out, `"verified": false`) {
			t.Errorf("%s: inspect: %d %s %s", alg, code, out, errs)
		}
	}
}

func TestNoTokenIsMadeThatWouldBeRefused(t *testing.T) {
	signing, keys := keygen(t)
	for _, args := range [][]string{
		{"--key", signing, "--site", "demo", "--role", "seed"},
		{"--key", signing, "--site", "demo", "--life", "10000h"},
		{"--key", signing, "--site", strings.Repeat("s", 33)},
		{"--key", keys, "--site", "demo"},
		{"--key", filepath.Join(t.TempDir(), "none"), "--site", "demo"},
	} {
		if out, errs, code := leeway(t, nil, append([]string{"token", "mint"}, args...)...); code != 2 || out != "" {
			t.Errorf("%v: %d %s %s", args, code, out, errs)
		}
	}
}

// greeting is what a tracker answers to a hello with a token.
func greeting(t *testing.T, addr, token string) signal.Message {
	t.Helper()
	return greetingOf(t, addr, "https://video.example.com", token)
}

// greetingOf is that of a page from somewhere else.
func greetingOf(t *testing.T, addr, origin, token string) signal.Message {
	t.Helper()
	return greetingBy(t, websocket.Dialer{}, "ws://"+addr+"/", origin, token)
}

// greetingBy is greetingOf with a dialer and a URL.
func greetingBy(t *testing.T, d websocket.Dialer, url, origin, token string) signal.Message {
	t.Helper()
	d.Subprotocols = []string{signal.Subprotocol}
	ws, r, err := d.Dial(url, http.Header{"Origin": {origin}})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	defer ws.Close()
	b, err := signal.Encode(&signal.Hello{Version: 1, Site: "demo", Token: token})
	if err == nil {
		err = ws.WriteMessage(websocket.TextMessage, b)
	}
	if err == nil {
		_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, b, err = ws.ReadMessage()
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := signal.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestATokenOnlyTracker(t *testing.T) {
	signing, keys := keygen(t)
	addr := startTracker(t, "    token_keys: "+keys+"\n")
	if e, ok := greeting(t, addr, "").(*signal.Error); !ok || e.Code != "token-required" {
		t.Errorf("without a token: %+v", e)
	}
	if w, ok := greeting(t, addr, mint(t, "--key", signing, "--site", "demo")).(*signal.Welcome); !ok || w.TokenExpires == 0 || strings.Contains(string(w.Site), "keys") {
		t.Errorf("with one: %+v", w)
	}
	// A key that was added a moment ago is known once a token names it.
	fresh := filepath.Join(t.TempDir(), "fresh.jwk")
	if _, errs, code := leeway(t, nil, "token", "keygen", fresh, "--keys", keys); code != 0 {
		t.Fatal(errs)
	}
	token := mint(t, "--key", fresh, "--site", "demo")
	for end, tick := time.After(20*time.Second), time.NewTicker(100*time.Millisecond); ; {
		if _, ok := greeting(t, addr, token).(*signal.Welcome); ok {
			tick.Stop()
			break
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("the new key was never taken")
		}
	}
	if _, ok := greeting(t, addr, mint(t, "--key", signing, "--site", "demo")).(*signal.Welcome); !ok {
		t.Error("the old key is not taken any more")
	}
}

func TestKeyFilesAreReadAgain(t *testing.T) {
	signing, keys := keygen(t, "--id", "old")
	s, err := site.New(site.Config{Name: "demo", Hosts: []string{"a"}, TokenKeys: keys})
	if err != nil {
		t.Fatal(err)
	}
	k, err := openTokenKeys([]*site.Site{s}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	k.now = func() time.Time { return now }
	token := mint(t, "--key", signing, "--site", "demo")
	good := func() bool { _, err := k.Check("demo", token, time.Now()); return err == nil }
	next := filepath.Join(t.TempDir(), "next.json")
	if _, errs, code := leeway(t, nil, "token", "keygen", filepath.Join(t.TempDir(), "k"), "--keys", next, "--id", "new"); code != 0 {
		t.Fatal(errs)
	}
	steps := []struct {
		name       string
		change     func() error
		old, newer bool
	}{
		{"at the start", func() error { return nil }, true, false},
		{"damaged", func() error { return os.WriteFile(keys, []byte("{"), 0o600) }, true, false},
		{"gone", func() error { return os.Remove(keys) }, true, false},
		{"replaced", func() error { return os.Rename(next, keys) }, false, true},
	}
	for _, step := range steps {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(keysEvery)
		if good() != step.old || k.Holds("demo", "old") != step.old || k.Holds("demo", "new") != step.newer {
			t.Errorf("%s: old %v, new %v", step.name, k.Holds("demo", "old"), k.Holds("demo", "new"))
		}
	}
	if k.Holds("other", "new") {
		t.Error("a site has another's keys")
	}
}

func TestAccessIsStatedWhereStrangersCome(t *testing.T) {
	_, keys := keygen(t)
	dir := t.TempDir()
	config := func(access string) string {
		file := filepath.Join(dir, "leeway.yaml")
		write(t, file, someSite+access)
		return file
	}
	for _, c := range []struct{ access, listen, wrong string }{
		{"", "0.0.0.0:0", "does not say which viewers may join"},
		{"", ":0", "does not say which viewers may join"},
		{"    access: token\n", "127.0.0.1:0", "names no file of keys"},
		{"    token_keys: /nowhere\n", "127.0.0.1:0", "token_keys"},
		{"    access: nobody\n", "127.0.0.1:0", "access"},
	} {
		_, errs, code := leeway(t, nil, "--config", config(c.access), "tracker", "--listen", c.listen, "--admin", "127.0.0.1:0", "--data-dir", dir)
		if code != 2 || !strings.Contains(errs, c.wrong) {
			t.Errorf("%q on %s: %d %s", c.access, c.listen, code, errs)
		}
	}
	for _, c := range []site.Config{{Access: site.AccessPublic}, {TokenKeys: keys}, {Access: site.AccessToken, TokenKeys: keys}} {
		k := &checker{}
		if k.admission(&Config{Sites: []site.Config{c}, Tracker: TrackerConfig{Listen: ":8080"}}); len(k.found) > 0 {
			t.Errorf("%+v: %v", c, k.found)
		}
	}
	for access, open := range map[string]bool{"": false, "access: public\n": false, "access: token\ntoken_keys: k\n": true, "token_keys: k\n": true} {
		file := filepath.Join(dir, "site.yaml")
		write(t, file, "name: demo\nhosts: [video.example.com]\n"+access)
		if err := upDecided(UpConfig{Listen: "0.0.0.0:8080", Site: file}, Env{}); (err == nil) != open {
			t.Errorf("up with %q: %v", access, err)
		}
	}
}

// A key that root adds leaves a file of keys to the tracker's user.
func TestAKeyThatIsAddedLeavesTheOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("files of other users are root's to make")
	}
	const tracker = 4242
	_, keys := keygen(t, "--id", "one")
	if err := errors.Join(os.Chown(keys, tracker, tracker), os.Chmod(keys, 0o640)); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.jwk")
	if _, errs, code := leeway(t, nil, "token", "keygen", other, "--keys", keys, "--id", "two"); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	info, err := os.Stat(keys)
	if err != nil {
		t.Fatal(err)
	}
	if of := info.Sys().(*syscall.Stat_t); of.Uid != tracker || of.Gid != tracker || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is of %d:%d, %v", of.Uid, of.Gid, info.Mode())
	}
}
