package app

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/replay"
	"github.com/leeway-video/leeway/internal/viewer"
)

// noisyFilm makes a film of n one-second segments of random bytes and returns its folder.
func noisyFilm(t *testing.T, n, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "master.m3u8"), fmt.Sprintf("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=%d\na/index.m3u8\n", 8*size))
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:1\n"
	random := rand.NewChaCha8([32]byte{3})
	for i := range n {
		list += fmt.Sprintf("#EXTINF:1,\nseg-%d.ts\n", i)
		b := make([]byte, size+i)
		_, _ = random.Read(b)
		write(t, filepath.Join(dir, "a", fmt.Sprintf("seg-%d.ts", i)), string(b))
	}
	write(t, filepath.Join(dir, "a", "index.m3u8"), list+"#EXT-X-ENDLIST\n")
	return dir
}

// seen collects what viewers played and compares it with the files.
type seen struct {
	dir string

	mu    sync.Mutex
	wrong []string // guarded by mu
	bytes int64    // guarded by mu
}

func (s *seen) take(r *viewer.Result) {
	name := r.URL[strings.LastIndex(r.URL, "/a/"):]
	want, err := os.ReadFile(filepath.Join(s.dir, name))
	got := bytes.Join(r.Pieces, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += int64(len(got))
	if err != nil || !bytes.Equal(got, want) {
		s.wrong = append(s.wrong, fmt.Sprintf("%s from %s: %v", name, r.Source, err))
	}
}

// TestHeadlessViewersServeEachOther is the whole of it on loopback: tracker, seed and origin in one process, four
// viewers over real links, every byte compared with the origin's.
func TestHeadlessViewersServeEachOther(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer http.DefaultClient.CloseIdleConnections()
	const segments, size, count, speed = 16, 60_000, 4, 2
	s := &seen{dir: noisyFilm(t, segments, size)}
	config := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, config, "tracker:\n  stats_interval: 1s\n")
	up := startUp(t, "--config="+config, "--media="+s.dir)
	_, page := fetch(t, "GET", up.page+"/")
	manifest := up.page + page[strings.Index(page, "/media/"):strings.Index(page, "master.m3u8")] + "master.m3u8"
	first := make(chan struct{})
	var once sync.Once
	var list []*headless.Viewer
	for i := range count {
		n := 0
		cfg := viewer.Config{
			URL: manifest, Tracker: "ws" + strings.TrimPrefix(up.page, "http") + "/", Origin: up.page, Speed: speed, JoinAfter: -1, Buffer: 5 * time.Second,
			OnSegment: func(r *viewer.Result) {
				s.take(r)
				if n++; n == 8 {
					once.Do(func() { close(first) })
				}
			},
		}
		v, err := headless.Start(cfg, headless.Network{Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		list = append(list, v)
		if i == 0 {
			<-first // the others come when there is something to take
		}
	}
	var peers, all int64
	for i, v := range list {
		select {
		case <-v.Done():
		case <-time.After(60 * time.Second):
			t.Fatalf("viewer %d still plays", i)
		}
		sum := v.Summary()
		b := sum.Stats.Bytes
		peers, all = peers+b["peer"], all+b["peer"]+b["seed"]+b["origin"]
		if sum.Ended != "end" || sum.Error != "" || sum.Stats.PlayedMs != segments*1000/speed || sum.Banned > 0 || sum.Stats.RejectedBytes > 0 {
			text, _ := json.Marshal(sum)
			t.Errorf("viewer %d: %s", i, text)
		}
		t.Logf("viewer %d: %v %v dup %d waste %d", i, b, sum.Stats.Reasons, sum.Stats.DuplicateBytes, sum.Stats.WastedBytes)
	}
	// About two thirds where nothing else runs. What a loaded machine brings too late comes from the origin, and is to.
	if offload := float64(peers) / float64(all); offload < 0.1 {
		t.Errorf("offload %.2f of %d bytes", offload, all)
	} else {
		t.Logf("offload %.2f of %d bytes", offload, all)
	}
	if len(s.wrong) > 0 || s.bytes < count*segments*size {
		t.Errorf("wrong segments: %v; %d bytes played", s.wrong, s.bytes)
	}
	// Both ends of each link have told the tracker of it, and of the same bytes.
	credited := up.counter(t, `leeway_viewer_credited_bytes_total{path="direct",site="demo"}`)
	for end := time.Now().Add(20 * time.Second); credited < float64(peers)/2 && time.Now().Before(end); {
		<-time.After(50 * time.Millisecond)
		credited = up.counter(t, `leeway_viewer_credited_bytes_total{path="direct",site="demo"}`)
	}
	had := int64(0)
	for _, v := range list {
		had += v.Summary().Stats.Bytes["peer"]
	}
	if credited < float64(had)/2 || credited > float64(had) {
		t.Errorf("%.0f bytes are credited of %d that viewers had from each other", credited, had)
	}
	var told deliveryAnswer
	if _, text := fetch(t, "GET", up.admin+deliveryPath); json.Unmarshal([]byte(text), &told) != nil || len(told.Sites) != 1 {
		t.Fatalf("%s answers %s", deliveryPath, text)
	}
	if d := told.Sites[0]; len(d.Titles) != 2 || d.Titles[0].Bytes["peer"] == 0 || len(d.Titles[0].Title) != 16 ||
		d.Titles[0].Bytes["peer"]+d.Titles[1].Bytes["peer"] != d.Bytes["peer"] || float64(d.Bytes["peer"]) < credited {
		t.Errorf("%.0f bytes are credited, and %s says %+v", credited, deliveryPath, d)
	}
	_ = up.stop() // before the viewers are closed: they do not mind
}

// counter is a series of the metrics page.
func (r *running) counter(t *testing.T, series string) float64 {
	t.Helper()
	_, text := fetch(t, "GET", r.admin+"/metrics")
	_, after, found := strings.Cut(text, "\n"+series+" ")
	value, _, _ := strings.Cut(after, "\n")
	n, err := strconv.ParseFloat(value, 64)
	if !found || err != nil {
		t.Fatalf("%s is %q: %v", series, value, err)
	}
	return n
}

// TestViewerCommand plays by the command line, and records what the schedule decides again.
func TestViewerCommand(t *testing.T) {
	defer goleak.VerifyNone(t)
	up := startUp(t, "--media="+noisyFilm(t, 8, 70_000))
	_, page := fetch(t, "GET", up.page+"/")
	manifest := up.page + page[strings.Index(page, "/media/"):strings.Index(page, "master.m3u8")] + "master.m3u8"
	tape := filepath.Join(t.TempDir(), "run.jsonl")
	out, errs, code := leeway(t, nil, "viewer", "--count=2", "--speed=2", "--seek=500ms=4s", "--listen=127.0.0.1:0", "--record="+tape, manifest)
	if code != 0 {
		t.Fatalf("%d: %s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("prints %q", out)
	}
	for _, l := range lines {
		var s viewer.Summary
		if err := json.Unmarshal([]byte(l), &s); err != nil || s.Ended != "end" || s.Seeks != 1 || s.Title == "" || s.LengthMs != 8000 {
			t.Errorf("%v: %s", err, l)
		}
	}
	f, err := os.Open(tape)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, differences, err := replay.Replay(f); n == 0 || len(differences) > 0 || err != nil {
		t.Errorf("the recording: %d decisions, %v, %v", n, differences, err)
	}
	out, errs, code = leeway(t, nil, "viewer", "--no-peers", "--leave=300ms", manifest)
	var s viewer.Summary
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || s.Ended != "left" || s.Off != "policy" || s.Stats.Bytes["origin"] == 0 {
		t.Errorf("the origin alone: %d %s%s", code, out, errs)
	}
	_ = up.stop()
}

func TestViewerCommandRefusesWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no http or https URL", []string{"film.m3u8"}},
		{"--count 0", []string{"--count=0", "http://a.test/m.m3u8"}},
		{"two durations", []string{"--seek=5", "http://a.test/m.m3u8"}},
		{"two durations", []string{"--pause=5s", "http://a.test/m.m3u8"}},
		{"catch up at a speed of 3", []string{"--catch-up=3", "http://a.test/m.m3u8"}},
		{"no WebSocket URL", []string{"--tracker=ftp://x/", "http://a.test/m.m3u8"}},
		{"port 0", []string{"--listen=127.0.0.1:5000", "--count=2", "http://a.test/m.m3u8"}},
		{"HOST:PORT", []string{"--listen=5000", "http://a.test/m.m3u8"}},
		{"speed", []string{"--speed=-1", "http://a.test/m.m3u8"}},
		{"metered", []string{"--device=tv", "http://a.test/m.m3u8"}},
	} {
		if _, errs, code := leeway(t, nil, append([]string{"viewer"}, c.args...)...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
}

func TestAViewerIsOnTheDeviceThatIsAskedFor(t *testing.T) {
	for text, want := range map[string]viewer.Device{
		"": {}, "metered": {Line: viewer.Line{Metered: true}}, "unknown coarse": {Line: viewer.Line{Unknown: true, Coarse: true}},
		"battery no-prefetch": {Battery: true, NoPrefetch: true},
	} {
		if got := (&viewerCmd{Device: strings.Fields(text)}).device(); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestViewerTellsTheTruth: what is wrong is said, and nothing that is wrong ends with 0 where the caller asked for better.
func TestViewerTellsTheTruth(t *testing.T) {
	up := startUp(t, "--media="+noisyFilm(t, 4, 20_000))
	expired := httptest.NewUnstartedServer(http.NotFoundHandler())
	cert, key := writePairUntil(t, t.TempDir(), "127.0.0.1", time.Now().Add(-time.Hour))
	old, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{old}}
	expired.Config.ErrorLog = log.New(io.Discard, "", 0)
	expired.StartTLS()
	t.Cleanup(expired.Close)
	_, page := fetch(t, "GET", up.page+"/")
	folder := up.page + page[strings.Index(page, "/media/"):strings.Index(page, "master.m3u8")]
	film, socket := folder+"master.m3u8", "ws"+strings.TrimPrefix(up.page, "http")
	for _, c := range []struct {
		what, want string
		code       int
		args       []string
	}{
		{"dead tracker, not asked for", "connection refused", 0, []string{"--tracker=ws://" + freeAddress(t), film}},
		{"dead tracker", "no-tracker", 1, []string{"--fail-on=no-tracker", "--tracker=ws://" + freeAddress(t), film}},
		{"dead tracker, peers wanted", "no-peers", 1, []string{"--fail-on=no-peers", "--tracker=ws://" + freeAddress(t), film}},
		{"wrong server", "200 OK instead of a WebSocket", 1, []string{"--fail-on=no-link", "--tracker=" + socket + "/leeway.js", film}},
		{"expired certificate", "expired", 1, []string{"--fail-on=no-peers", "--tracker=wss" + strings.TrimPrefix(expired.URL, "https"), film}},
		{"no such site", "bad-site", 1, []string{"--fail-on=no-tracker", "--site=none", film}},
		{"404", "status 404", 1, []string{"--no-peers", folder + "none.m3u8"}},
		{"nothing played", "not a byte", 1, []string{"--leave=1ns", film}},
		{"no such condition", "no-tracker", 2, []string{"--fail-on=rain", film}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			_, errs, code := leeway(t, nil, append([]string{"viewer", "--speed=8", "--listen=127.0.0.1:0"}, c.args...)...)
			if code != c.code || !strings.Contains(errs, c.want) || strings.Contains(errs, `"msg":"viewer: "`) {
				t.Errorf("%d, want %d and %q in:\n%s", code, c.code, c.want, errs)
			}
		})
	}
}
