package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/app"
	"github.com/leeway-video/leeway/internal/testkit"
)

// free is an address that was free a moment ago. Its port is below those that systems give to outgoing connections.
func free(t *testing.T) string {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 5_000+rand.IntN(5_000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// service runs a command until the test or stop ends it, and waits until it is ready.
func service(t *testing.T, admin string, environ []string, args ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := &testkit.Output{}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, args, app.Env{Stdout: out, Stderr: out, Environ: environ}) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		})
	}
	t.Cleanup(stop)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); <-tick.C {
		if code, _ := get(admin, "/readyz"); code == http.StatusOK {
			return stop
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%v ended: %v\n%s", args, err, out)
		default:
		}
	}
	t.Fatalf("%v is not ready\n%s", args, out)
	return nil
}

func get(admin, path string) (code int, text string) {
	r, err := http.Get("http://" + admin + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// film is an origin with n segments of noise.
func film(n int) *httptest.Server {
	files := map[string][]byte{"/film/master.m3u8": []byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=480000\nindex.m3u8\n")}
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:1\n"
	random := rand.NewChaCha8([32]byte{7})
	for i := range n {
		list += fmt.Sprintf("#EXTINF:1,\nseg-%d.ts\n", i)
		b := make([]byte, 60_000+i)
		_, _ = random.Read(b)
		files[fmt.Sprintf("/film/seg-%d.ts", i)] = b
	}
	files["/film/index.m3u8"] = []byte(list + "#EXT-X-ENDLIST\n")
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, filepath.Base(r.URL.Path), time.Unix(1_700_000_000, 0), bytes.NewReader(b))
	}))
}

// TestTrackersAndASeedRunAsTheirUsers: the services themselves, on a server with the manifests' users, certificates and permissions. Two
// viewers at different trackers link with the seed, a title is purged, all trackers begin anew and learn what the seed kept, and the server
// has refused nothing; what a seed may not do is refused, and said.
func TestTrackersAndASeedRunAsTheirUsers(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	b := startBus(t)
	origin := film(60)
	defer origin.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "leeway.yaml")
	text, err := json.Marshal(map[string]any{
		"sites": []any{map[string]any{
			"name": "demo", "hosts": []string{strings.TrimPrefix(origin.URL, "http://")}, "fetch_base": origin.URL,
			"policy": map[string]any{"certify_from": 1, "control_group_permille": 0},
		}},
		"tracker": map[string]any{"ice_servers": []any{map[string]any{"urls": []string{"turn:127.0.0.1:9"}, "secret": "${LEEWAY_TURN_SECRETS}"}}},
		"seed":    map[string]any{"private": []string{"127.0.0.0/8"}, "listen": "127.0.0.1:0"},
	})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	operator := strings.Repeat("t", 43)
	// environ is what a pod of a service is given: its own secrets and no other.
	environ := func(name string, more ...string) []string {
		all := append([]string{"HOME=" + dir, "LEEWAY_ADMIN_TOKEN=" + operator, "LEEWAY_CONFIG=" + config, "LEEWAY_NATS_URL=" + b.url, "LEEWAY_NATS_USER=" + name, "LEEWAY_NATS_CA_FILE=" + b.private + "/bus-ca.crt"}, more...)
		for key, value := range env(t, b.private+"/"+name+".env") {
			all = append(all, key+"="+value)
		}
		return all
	}
	public, admin := []string{free(t), free(t)}, []string{free(t), free(t)}
	trackers := func() (stop func()) {
		var stops []func()
		for i := range public {
			stops = append(stops, service(t, admin[i], environ("tracker", "LEEWAY_TRACKER_LISTEN="+public[i], "LEEWAY_TRACKER_ADMIN="+admin[i], "LEEWAY_TRACKER_DRAIN_SPREAD=10ms",
				fmt.Sprintf("LEEWAY_TRACKER_DATA_DIR=%s/tracker-%d", dir, i)), "tracker"))
		}
		return func() {
			for _, stop := range stops {
				stop()
			}
		}
	}
	stop := trackers()
	seedAdmin := free(t)
	service(t, seedAdmin, environ("seed", "LEEWAY_SEED_ADMIN="+seedAdmin, "LEEWAY_SEED_DATA_DIR="+dir+"/seed"), "seed")

	var watching sync.WaitGroup
	for _, at := range public {
		watching.Go(func() {
			// At six times the speed the buffer holds 12 of the 60 segments. A longer one takes the whole film in before slow links are up.
			out, errs := &testkit.Output{}, &testkit.Output{}
			if err := app.Run(context.Background(), []string{"viewer", "--speed=6", "--buffer=2s", "--tracker=ws://" + at, origin.URL + "/film/master.m3u8"}, app.Env{Stdout: out, Stderr: errs, Environ: []string{"HOME=" + dir, "LEEWAY_ADMIN_TOKEN=" + operator}}); err != nil {
				t.Errorf("a viewer: %v\n%s", err, errs)
				return
			}
			var v struct {
				Links int `json:"links_opened"`
				Stats struct {
					Bytes map[string]int64 `json:"bytes"`
				} `json:"stats"`
			}
			if err := json.Unmarshal([]byte(out.String()), &v); err != nil || v.Links == 0 || v.Stats.Bytes["seed"]+v.Stats.Bytes["peer"] == 0 {
				t.Errorf("a viewer with %d links and %v: %v", v.Links, v.Stats.Bytes, err)
			}
		})
	}
	watching.Wait()

	say := func(admin string) error {
		return app.Run(t.Context(), []string{"purge", "demo", "/film/", "--for=1h", "--admin=" + admin}, app.Env{Stdout: &testkit.Output{}, Stderr: &testkit.Output{}, Environ: []string{"HOME=" + dir, "LEEWAY_ADMIN_TOKEN=" + operator}})
	}
	if err := say(admin[0]); err != nil {
		t.Errorf("a purge by way of a tracker: %v", err)
	}
	tombstones := func(admin string) string {
		_, text := get(admin, "/metrics")
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, `leeway_tracker_revocations{kind="tombstone"} `); ok {
				return strings.TrimSpace(value)
			}
		}
		return "none"
	}
	eventually(t, "both trackers know of the purge", func() bool { return tombstones(admin[0]) == "1" && tombstones(admin[1]) == "1" })
	stop()
	trackers()
	eventually(t, "trackers that began anew learn it from the seed", func() bool { return tombstones(admin[0]) == "1" && tombstones(admin[1]) == "1" })
	if seen := b.log.seen(); len(seen) != 0 {
		t.Errorf("the server refused what a service needs: %q", seen)
	}
	if err := say(seedAdmin); err == nil || !strings.Contains(err.Error(), "only from trackers") {
		t.Errorf("a purge by way of a seed: %v", err)
	}
	if seen := b.log.seen(); len(seen) != 1 || !strings.Contains(seen[0], "leeway.v1.revoke") {
		t.Errorf("the server refused %q", seen)
	}
	if _, text := get(seedAdmin, "/metrics"); !strings.Contains(text, "leeway_bus_refused_total 1") {
		t.Error("the refusal is not counted")
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(60 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
