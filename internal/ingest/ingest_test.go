package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/ingest"
	"github.com/leeway-video/leeway/internal/packaging"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// station is a receiver with its folder and its reports.
type station struct {
	t        *testing.T
	dir      string
	packager *packaging.Packager
	server   *httptest.Server

	mu      sync.Mutex
	plans   []*packaging.Plan // guarded by mu
	errs    []error           // guarded by mu
	unnamed []string          // guarded by mu: segments of a playlist that could be read before its list named them
}

func newStation(t *testing.T) *station {
	t.Helper()
	s := &station{t: t, dir: t.TempDir()}
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := packaging.New(packaging.Settings{Site: rules, Key: testkit.PackagerKey(t), Root: root, Path: "/live/", Parts: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s.packager = p
	s.server = httptest.NewServer(ingest.New(p, s.heard))
	t.Cleanup(func() { s.server.Close(); root.Close() })
	return s
}

// heard is called while the playlist and its list are what was published.
func (s *station) heard(file string, plan *packaging.Plan, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	s.plans = append(s.plans, plan)
	named := s.named(file)
	for line := range strings.SplitSeq(string(s.read(file)), "\n") {
		if name := segment.Name("/live/" + line); line != "" && !strings.HasPrefix(line, "#") && !named[name] {
			s.unnamed = append(s.unnamed, line)
		}
	}
}

func (s *station) read(file string) []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		s.t.Error(err)
	}
	return b
}

func (s *station) named(file string) map[segment.Name]bool {
	list, err := certificate.ParseList(s.read(file + packaging.Suffix))
	if err != nil {
		s.t.Error(err)
	}
	named := map[segment.Name]bool{}
	for _, one := range list {
		named[one.Name] = true
	}
	return named
}

// do makes one request.
func (s *station) do(method, path string, body io.Reader, header ...string) (status int, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := s.server.Client().Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return got.StatusCode, string(b)
}

func (s *station) put(path, text string) int {
	s.t.Helper()
	status, _ := s.do(http.MethodPut, path, strings.NewReader(text))
	return status
}

// await waits for so many uploads to be under way.
func (s *station) await(n int) {
	s.t.Helper()
	testkit.Eventually(s.t, "uploads are on their way", func() bool {
		begun, err := filepath.Glob(filepath.Join(s.dir, ".*"))
		return err == nil && len(begun) == n
	})
}

const film = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.ts\n#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n"

func TestWhatIsPushedIsSignedAndPublished(t *testing.T) {
	s := newStation(t)
	for i, c := range []struct {
		path, text string
		status     int
	}{
		{"/low/0.ts", "zero", 201}, {"/low/1.ts", "one", 201}, {"/low/1.ts", "other", 204}, {"/low/index.m3u8", film, 201}, {"/low/index.m3u8", film, 204},
		{"/index.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/index.m3u8\n", 201},
		{"/broken.m3u8", "garbage", 201},
	} {
		if status := s.put(c.path, c.text); status != c.status || string(s.read(c.path)) != c.text {
			t.Errorf("%d, %s: %d, want %d", i, c.path, status, c.status)
		}
	}
	if named := s.named("low/index.m3u8"); len(named) != 2 || !named["/live/low/0.ts"] || !named["/live/low/1.ts"] {
		t.Errorf("the list names %v", named)
	}
	if len(s.plans) != 2 || len(s.errs) != 1 || !strings.Contains(s.errs[0].Error(), "broken.m3u8") {
		t.Errorf("%d plans, %v", len(s.plans), s.errs)
	}
	for path, want := range map[string]int{"/low/0.ts": 204, "/low/9.ts": 404, "/low": 400, "/low/index.m3u8": 204} {
		if status, _ := s.do(http.MethodDelete, path, nil); status != want {
			t.Errorf("DELETE %s: %d, want %d", path, status, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(s.dir, "low", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "1.ts" {
		t.Errorf("%v, %v are left", left, err)
	}
}

// TestNothingElseIsWritten: outside of the folder, over lists, by pages, halves of files, or more than a file or a playlist has.
func TestNothingElseIsWritten(t *testing.T) {
	s := newStation(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(s.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
		header       []string
		status       int
	}{
		"above the folder":     {"PUT", "/%2e%2e/x.ts", strings.NewReader("x"), nil, 400},
		"another way above":    {"PUT", "/a/..%2f..%2fx.ts", strings.NewReader("x"), nil, 400},
		"by a link":            {"PUT", "/out/x.ts", strings.NewReader("x"), nil, 500},
		"the folder":           {"PUT", "/", strings.NewReader("x"), nil, 400},
		"a list":               {"PUT", "/a.m3u8.leeway", strings.NewReader("x"), nil, 400},
		"hidden":               {"PUT", "/a/.b/c.ts", strings.NewReader("x"), nil, 400},
		"a page":               {"PUT", "/a.ts", strings.NewReader("x"), []string{"Origin", "https://example.com"}, 403},
		"a page without a say": {"PUT", "/a.ts", strings.NewReader("x"), []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a form":               {"POST", "/a.ts", strings.NewReader("x"), nil, 405},
		"a reader":             {"GET", "/a.ts", nil, nil, 405},
		"a playlist too long":  {"PUT", "/a.m3u8", bytes.NewReader(make([]byte, 5<<20)), nil, 413},
		"half a file":          {"PUT", "/a.ts", io.MultiReader(strings.NewReader("half"), failing{}), nil, 0},
	} {
		if status, text := s.do(c.method, c.path, c.body, c.header...); status != c.status {
			t.Errorf("%s: %d (%s), want %d", name, status, text, c.status)
		}
	}
	testkit.Eventually(t, "nothing is left", func() bool {
		left := 0
		if err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				left++
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		return left == 0
	})
}

// failing is a body that breaks off.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestUploadsAtATimeAreBounded: more are refused at once, and have a place again when others have ended.
func TestUploadsAtATimeAreBounded(t *testing.T) {
	s := newStation(t)
	var uploads sync.WaitGroup
	var ends []*io.PipeWriter
	for i := range 64 {
		r, w := io.Pipe()
		ends = append(ends, w)
		uploads.Go(func() {
			if status, text := s.do(http.MethodPut, fmt.Sprintf("/%d.ts", i), r); status != 201 {
				t.Errorf("upload %d: %d (%s)", i, status, text)
			}
		})
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	s.await(64)
	if status := s.put("/more.ts", "x"); status != 503 {
		t.Errorf("one too many: %d", status)
	}
	for _, w := range ends {
		w.Close()
	}
	uploads.Wait()
	if status := s.put("/more.ts", "x"); status/100 != 2 {
		t.Errorf("afterwards: %d", status)
	}
}

// TestAPlaylistWaitsForItsSegments that are on their way, and not for those that are not, or for media that it does not name.
func TestAPlaylistWaitsForItsSegments(t *testing.T) {
	s := newStation(t)
	var uploads sync.WaitGroup
	push := func(path string, body io.Reader, status int) {
		uploads.Go(func() {
			if got, text := s.do(http.MethodPut, path, body); got != status {
				t.Errorf("%s: %d (%s), want %d", path, got, text, status)
			}
		})
	}
	slow, segment := io.Pipe()
	other, next := io.Pipe()
	push("/0.ts", slow, 201)
	push("/2.ts", other, 201)
	for _, w := range []*io.PipeWriter{segment, next} {
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	s.await(2)
	if status := s.put("/gap.m3u8", strings.ReplaceAll(film, "0.ts", "9.ts")); status != 201 {
		t.Errorf("with segments that are not there: %d", status)
	}
	push("/index.m3u8", strings.NewReader(film), 201)
	segment.Close()
	testkit.Eventually(t, "the playlist is published", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "index.m3u8"))
		return err == nil
	})
	if !s.named("index.m3u8")["/live/0.ts"] {
		t.Error("it was published before its segment was there")
	}
	next.Close()
	uploads.Wait()
}

// TestPartsAreSignedBeforeTheirPlaylistCanBeRead: also one that is on its way when the playlist comes.
func TestPartsAreSignedBeforeTheirPlaylistCanBeRead(t *testing.T) {
	s := newStation(t)
	const list = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:7\n" +
		"#EXT-X-PART:DURATION=0.5,URI=\"7.0.m4s\"\n#EXT-X-PART:DURATION=0.5,URI=\"7.1.m4s\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"7.2.m4s\"\n"
	there := func(file string) bool {
		_, err := os.Stat(filepath.Join(s.dir, file))
		return err == nil
	}
	slow, rest := io.Pipe()
	var uploads sync.WaitGroup
	uploads.Go(func() {
		if status, text := s.do(http.MethodPut, "/7.1.m4s", slow); status != 201 {
			t.Errorf("the second part: %d %s", status, text)
		}
	})
	if _, err := rest.Write([]byte("se")); err != nil {
		t.Fatal(err)
	}
	s.await(1)
	if status := s.put("/7.0.m4s", "first"); status != 201 {
		t.Fatal(status)
	}
	uploads.Go(func() {
		if status := s.put("/live.m3u8", list); status != 201 {
			t.Errorf("the playlist: %d", status)
		}
	})
	if _, err := rest.Write([]byte("cond")); err != nil {
		t.Fatal(err)
	}
	if there("live.m3u8") {
		t.Error("the playlist can be read before its part")
	}
	rest.Close()
	uploads.Wait()
	for file, want := range map[string]string{"7.0.m4s": "first", "7.1.m4s": "second"} {
		c, err := certificate.Parse(s.read(file + packaging.Suffix))
		if err != nil || c.Name != segment.Name("/live/"+file) || !c.CheckPiece(0, []byte(want)) {
			t.Errorf("%s: %+v %v", file, c, err)
		}
	}
	if status, _ := s.do(http.MethodDelete, "/live.m3u8", nil); status != 204 || there("7.0.m4s.leeway") || there("live.m3u8.leeway") {
		t.Errorf("after the playlist is removed (%d) certificates stay", status)
	}
}

// TestFfmpegPushesALiveStream: a real packager, in real time. Whenever a playlist can be read, its list names all its segments.
func TestFfmpegPushesALiveStream(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	s := newStation(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const segments = 5
	command := exec.CommandContext(ctx, ffmpeg, "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25",
		"-t", fmt.Sprint(segments), "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-sc_threshold", "0", "-f", "hls", "-hls_time", "1",
		"-hls_list_size", "2", "-hls_delete_threshold", "1", "-hls_flags", "delete_segments", "-method", "PUT", s.server.URL+"/live.m3u8")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the last playlist is taken; ffmpeg does not wait for that", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.errs) > 0 || len(s.plans) > 0 && !s.plans[len(s.plans)-1].Live
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errs)+len(s.unnamed) > 0 || len(s.plans) < segments {
		t.Errorf("%d playlists; not named in time: %v; %v", len(s.plans), s.unnamed, s.errs)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "live*.ts")); err != nil || len(left) == 0 || len(left) >= segments {
		t.Errorf("%v, %v: segments that ffmpeg deleted are there", left, err)
	}
}
