package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/viewer"
)

// commandVariable has the test program run a command instead of its tests: one that can be killed.
const commandVariable = "LEEWAY_TEST_COMMAND"

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(commandVariable)
	if !ok {
		os.Exit(m.Run())
	}
	var args []string
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the test, however that ends
		stop()
	}()
	if err := Run(ctx, args, Env{Stdout: os.Stderr, Stderr: os.Stderr, Environ: []string{"HOME=" + os.TempDir()}}); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// child is a command in a process of its own.
type child struct {
	*exec.Cmd
	input io.Closer
	said  *lockedBuffer
}

func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(os.Args[0]), said: newLockedBuffer()}
	c.Env = append(os.Environ(), commandVariable+"="+string(text))
	c.Stdout, c.Stderr = c.said, c.said
	if c.input, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// end sends a signal and waits for the process to be gone.
func (c *child) end(s os.Signal) error {
	if err := c.Process.Signal(s); err != nil {
		return err
	}
	err := c.Wait()
	_ = c.input.Close()
	return err
}

// countingOrigin serves a film of random bytes: below /1/ and /2/ to the seeds, at / to viewers. It notes which seed asked for what.
type countingOrigin struct {
	files map[string][]byte

	mu    sync.Mutex
	asked map[string][]seedAsk // guarded by mu: by segment
	armed bool                 // guarded by mu: the next seed that asks for a segment gets one half of it
	half  string               // guarded by mu: of which one that was
	fell  chan string          // the seed that did
}

// seedAsk is a seed's request for a segment.
type seedAsk struct {
	seed string
	at   time.Time
}

func (a seedAsk) String() string { return "seed " + a.seed + " at " + a.at.Format("05.000") }

const (
	filmSegments = 120
	segmentBytes = 64 << 10
	buffered     = 3000 // ms, with which a lost seed is not noticed
)

func newCountingOrigin() *countingOrigin {
	o := &countingOrigin{files: map[string][]byte{}, asked: map[string][]seedAsk{}, fell: make(chan string, 1)}
	list := "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n"
	random := rand.NewChaCha8([32]byte{7})
	for i := range filmSegments {
		b := make([]byte, segmentBytes+i)
		_, _ = random.Read(b)
		name := strconv.Itoa(i) + ".m4s"
		o.files[name] = b
		list += "#EXTINF:1,\n" + name + "\n"
	}
	o.files["index.m3u8"] = []byte(list + "#EXT-X-ENDLIST\n")
	o.files["master.m3u8"] = []byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=600000\nindex.m3u8\n")
	return o
}

func (o *countingOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir, name := filepath.Split(r.URL.Path)
	who := strings.Trim(strings.TrimSuffix(dir, "film/"), "/")
	data, ok := o.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	o.mu.Lock()
	falls := o.armed && who != "" && strings.HasSuffix(name, ".m4s") && len(o.asked[name]) == 0
	if falls {
		o.armed, o.half = false, name
	}
	if who != "" {
		o.asked[name] = append(o.asked[name], seedAsk{who, time.Now()})
	}
	o.mu.Unlock()
	w.Header().Set("ETag", strconv.Quote(name))
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if !falls {
		_, _ = w.Write(data)
		return
	}
	_, _ = w.Write(data[:len(data)/2])
	_ = http.NewResponseController(w).Flush()
	o.fell <- who
	<-r.Context().Done() // until the one that asked is gone
}

// arm has the next seed that asks for a segment get one half of it.
func (o *countingOrigin) arm() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed = true
}

// absence is from when on a seed was being ended until another one was in its place.
type absence struct{ from, to time.Time }

func (a absence) String() string { return a.from.Format("05.000") + " to " + a.to.Format("05.000") }

// again lists what seeds asked for although they or one that was still there had it: a segment is fetched once more when the
// seed that fetched it has ended, by another one, or by itself when it is back if it ended before it had all of it.
func (o *countingOrigin) again(absent map[string]absence) (once, more int, wrong []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, asks := range o.asked {
		needed := true
		for i, next := range asks[min(1, len(asks)):] {
			last := asks[i]
			gone := absent[last.seed]
			needed = needed && last.at.Before(gone.to) && next.at.After(gone.from) && (next.seed != last.seed || name == o.half)
		}
		switch {
		case !strings.HasSuffix(name, ".m4s") || len(asks) == 0:
		case !needed:
			wrong = append(wrong, fmt.Sprintf("%s: %v", name, asks))
		case len(asks) == 1:
			once++
		default:
			more++
		}
	}
	return once, more, wrong
}

// seaTrial is a tracker, two seeds that are processes, an origin and viewers.
type seaTrial struct {
	t       *testing.T
	origin  *countingOrigin
	server  *httptest.Server
	tracker string
	files   [2]string // configurations of the seeds
	admins  [2]string
	seeds   [2]*child
}

func newSeaTrial(t *testing.T) *seaTrial {
	t.Helper()
	s := &seaTrial{t: t, origin: newCountingOrigin(), tracker: freeAddress(t)}
	s.server = httptest.NewServer(s.origin)
	t.Cleanup(s.server.Close)
	dir, bus, admin := t.TempDir(), freeAddress(t), freeAddress(t)
	config := func(name, base string, sections map[string]any) string {
		return writeSite(t, filepath.Join(dir, name), s.server.URL, base, 2, sections)
	}
	stop := startService(t, admin, "tracker", "--config", config("tracker.yaml", "", map[string]any{
		"tracker": map[string]any{"listen": s.tracker, "admin": admin, "data_dir": filepath.Join(dir, "tracker"), "update_interval": "1s", "drain_spread": "100ms"},
		"nats":    map[string]string{"listen": bus},
	}))
	t.Cleanup(func() { _ = stop() })
	for i := range s.seeds {
		s.admins[i] = freeAddress(t)
		n := strconv.Itoa(i + 1)
		s.files[i] = config("seed"+n+".yaml", "/"+n, map[string]any{
			"seed": map[string]any{
				"listen": "127.0.0.1:0", "admin": s.admins[i], "data_dir": filepath.Join(dir, "seed"+n),
				"fleet": map[string]any{"listen": "127.0.0.1:0", "secret": strings.Repeat("sea", 11)},
			},
			"nats": map[string]string{"url": "nats://" + bus},
		})
		s.start(i)
	}
	t.Cleanup(func() {
		for _, c := range s.seeds {
			_ = c.end(syscall.SIGKILL)
			if t.Failed() {
				t.Logf("a seed said:\n%s", c.said)
			}
		}
	})
	s.until("the seeds know each other", func() bool {
		return s.metric(0, "leeway_seed_fleet_size") == 2 && s.metric(1, "leeway_seed_fleet_size") == 2
	})
	return s
}

func (s *seaTrial) start(i int) {
	s.seeds[i] = startChild(s.t, "seed", "--config", s.files[i])
	s.until("a seed is ready", func() bool { return s.get(i, "/readyz") != "" })
}

// get is what a seed's admin port answers; empty unless it is well.
func (s *seaTrial) get(i int, path string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + s.admins[i] + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

func (s *seaTrial) metric(i int, series string) (value float64) {
	if m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(s.get(i, "/metrics")); m != nil {
		value, _ = strconv.ParseFloat(m[1], 64)
	}
	return value
}

func (s *seaTrial) until(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatal("never: " + what)
		}
	}
}

func (s *seaTrial) viewer() *headless.Viewer {
	s.t.Helper()
	v, err := headless.Start(viewer.Config{
		URL: s.server.URL + "/film/master.m3u8", Tracker: "ws://" + s.tracker + "/", Origin: s.server.URL, JoinAfter: -1, Buffer: 8 * time.Second,
	}, headless.Network{Listen: "127.0.0.1:0"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(v.Close)
	return v
}

// TestASeedIsKilledAndSeedsAreRolled: one of two seeds is killed while it has one half of a segment, and started again; then
// the other one is ended and started again. No viewer notices, and the origin hardly.
func TestASeedIsKilledAndSeedsAreRolled(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := newSeaTrial(t)
	var viewers []*headless.Viewer
	for range 4 {
		viewers = append(viewers, s.viewer())
	}
	s.until("each viewer has a buffer, or has played for so long that it will have none", func() bool {
		return !slices.ContainsFunc(viewers, func(v *headless.Viewer) bool {
			sum := v.Summary()
			return sum.BufferMs < 2*buffered && sum.PositionMs < 10_000
		})
	})
	s.origin.arm()
	var who string
	select {
	case who = <-s.origin.fell:
	case <-time.After(time.Minute):
		t.Fatal("no seed asked for a segment")
	}
	stalls := map[*headless.Viewer]int64{} // until now, of those with a buffer
	for _, v := range viewers {
		if sum := v.Summary(); sum.BufferMs >= buffered {
			stalls[v] = sum.Stats.Stalls
		}
	}
	victim := int(who[0] - '1')
	killed := time.Now()
	_ = s.seeds[victim].end(syscall.SIGKILL) // says that it was killed
	s.start(victim)
	absent := map[string]absence{who: {killed, time.Now()}}
	s.until("they know each other again", func() bool {
		return s.metric(1-victim, "leeway_seed_fleet_size") >= 2 && s.metric(victim, "leeway_seed_fleet_size") >= 2
	})
	ended := time.Now()
	if err := s.seeds[1-victim].end(syscall.SIGTERM); err != nil {
		t.Errorf("the other seed ended with %v", err)
	}
	shared := s.metric(victim, `leeway_seed_fetches_total{from="sibling",site="demo"}`)
	s.start(1 - victim)
	absent[strconv.Itoa(2-victim)] = absence{ended, time.Now()}
	positions := map[*headless.Viewer]int64{}
	for _, v := range viewers {
		positions[v] = v.Summary().PositionMs
	}
	s.until("all have seen five seconds more", func() bool {
		for v, at := range positions {
			if sum := v.Summary(); sum.Ended == "" && sum.PositionMs < at+5000 {
				return false
			}
		}
		return true
	})
	for i, v := range viewers {
		sum := v.Summary()
		// If a player had none, the machine has no time, and players on it stall.
		if len(stalls) == len(viewers) && sum.Stats.Stalls > stalls[v] {
			t.Errorf("viewer %d stalled %d times after the seed was killed", i, sum.Stats.Stalls-stalls[v])
		}
		if sum.Errors != 0 || sum.Ended != "" {
			t.Errorf("viewer %d had %d errors (%s), ended %q", i, sum.Errors, sum.LastError, sum.Ended)
		}
	}
	t.Logf("%d viewers of %d had a buffer when the seed was killed", len(stalls), len(viewers))
	once, more, wrong := s.origin.again(absent)
	t.Logf("seeds asked for %d segments once, for %d more often; the seed that was killed had %v from its sibling since", once, more, shared)
	if len(wrong) > 0 || once < 8 {
		t.Errorf("seeds asked for %d segments once, for %d again when the asking seed was gone, and without need for %s\nabsent: %v", once, more, strings.Join(wrong, "\n"), absent)
	}
}
