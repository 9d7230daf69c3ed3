package origin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
)

func testOrigin(t *testing.T) (*Server, *testkit.Recorder) {
	t.Helper()
	sink := &testkit.Recorder{}
	o, err := Open(testkit.TinyFilm(t), "/media/x/", sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o, sink
}

func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	r.URL.Path = path // as it is, dots included
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const segment0 = "/media/x/240p/seg-00000.ts"

func TestOriginServesLikeAWebServer(t *testing.T) {
	o, _ := testOrigin(t)
	h := o.Handler(Viewer)
	w := ask(h, "GET", segment0)
	if w.Code != 200 || w.Body.Len() != 40_000 || w.Header().Get("Content-Type") != "video/mp2t" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("segment: %d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}
	etag := w.Header().Get("ETag")
	if w := ask(h, "GET", segment0, "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Errorf("same ETag: %d", w.Code)
	}
	if w := ask(h, "GET", segment0, "Range", "bytes=10-19"); w.Code != 206 || w.Body.Len() != 10 || w.Header().Get("Content-Range") != "bytes 10-19/40000" {
		t.Errorf("range: %d, %v", w.Code, w.Header())
	}
	if w := ask(h, "HEAD", segment0); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d", w.Code)
	}
	if w := ask(h, "OPTIONS", segment0); w.Code != 204 || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "Range") {
		t.Errorf("preflight: %d, %v", w.Code, w.Header())
	}
	if w := ask(h, "POST", segment0); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
	if w := ask(h, "GET", "/media/x/master.m3u8"); w.Header().Get("Content-Type") != "application/vnd.apple.mpegurl" {
		t.Errorf("playlist: %v", w.Header())
	}
	for _, path := range []string{"/media/x/", "/media/x/240p", "/media/x/none.ts", "/media/x/../../etc/passwd", "/media/x//etc/passwd", "/media/y/master.m3u8"} {
		if w := ask(h, "GET", path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestOriginKeepsALedger(t *testing.T) {
	o, sink := testOrigin(t)
	ask(o.Handler(Viewer), "GET", segment0)
	ask(o.Handler(Viewer), "GET", segment0)
	ask(o.Handler(Seed), "GET", segment0)
	ask(o.Handler(Seed), "GET", "/media/x/master.m3u8")
	ask(o.Handler(Viewer), "GET", "/media/x/made-up.ts")
	w := httptest.NewRecorder()
	o.ServeLedger(w, nil)
	var l Ledger
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if l.Segments[segment0][Viewer] != 2 || l.Segments[segment0][Seed] != 1 || len(l.Segments) != 1 {
		t.Errorf("segments: %v", l.Segments)
	}
	if l.Requests[Viewer] != 3 || l.Requests[Seed] != 2 || l.Bytes[Seed] < 40_000 {
		t.Errorf("requests %v, bytes %v", l.Requests, l.Bytes)
	}
	if got := sink.Value(requests, Seed, classPlaylist); got != 1 || sink.Dropped() != 0 {
		t.Errorf("metric: %v, %d dropped", got, sink.Dropped())
	}
}

func TestOriginFaults(t *testing.T) {
	o, _ := testOrigin(t)
	h := o.Handler(Viewer)
	for fault, want := range map[string]int{fault404: 404, fault500: 500, FaultNone: 200} {
		if err := o.SetFault(fault); err != nil {
			t.Fatal(err)
		}
		if w := ask(h, "GET", segment0); w.Code != want {
			t.Errorf("%s: %d", fault, w.Code)
		}
		if w := ask(h, "GET", "/media/x/master.m3u8"); w.Code != 200 {
			t.Errorf("%s: the playlist answers %d", fault, w.Code)
		}
	}
	if err := o.SetFault("403"); err == nil {
		t.Error("fault 403 was taken")
	}
}

// TestOriginShapesConnections compares a shaped connection with what its rate allows: 40 kB at 200 kB/s take 0.2 s at least.
func TestOriginShapesConnections(t *testing.T) {
	o, _ := testOrigin(t)
	s := httptest.NewUnstartedServer(o.Handler(Viewer))
	s.Config.ConnContext = ShapeConnections(200_000)
	s.Start()
	defer s.Close()
	begin := time.Now()
	r, err := s.Client().Get(s.URL + segment0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	if took := time.Since(begin); err != nil || n != 40_000 || took < 180*time.Millisecond {
		t.Errorf("%d bytes in %v, %v", n, took, err)
	}
}

func TestOriginServesMPEGTSBelowTheFilm(t *testing.T) {
	o, _ := testOrigin(t)
	h := o.Handler(Viewer)
	if r := ask(h, "GET", "/media/x/ts/seg-1.ts"); r.Code != 404 {
		t.Errorf("without it: %d", r.Code)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "seg-1.ts"), []byte("G"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.TS = root
	if r := ask(h, "GET", "/media/x/ts/seg-1.ts"); r.Code != 200 || r.Header().Get("Content-Type") != "video/mp2t" {
		t.Errorf("with it: %d %v", r.Code, r.Header())
	}
	if r := ask(h, "GET", segment0); r.Code != 200 {
		t.Errorf("the film above it: %d", r.Code)
	}
	if r := ask(h, "GET", "/media/x/ts/../master.m3u8"); r.Code != 404 {
		t.Errorf("a path out of it: %d", r.Code)
	}
}

// TestOriginServesWhatIsSignedInMemory: beside a playlist, and nowhere else.
func TestOriginServesWhatIsSignedInMemory(t *testing.T) {
	o, _ := testOrigin(t)
	h := o.Handler(Viewer)
	if r := ask(h, "GET", "/media/x/240p/index.m3u8.leeway"); r.Code != 404 {
		t.Errorf("without it: %d", r.Code)
	}
	o.Lists = map[string][]byte{"240p/index.m3u8.leeway": []byte("LWL1")}
	if r := ask(h, "GET", "/media/x/240p/index.m3u8.leeway"); r.Code != 200 || r.Body.String() != "LWL1" {
		t.Errorf("with it: %d %s", r.Code, r.Body)
	}
	if r := ask(h, "GET", "/media/x/360p/index.m3u8.leeway"); r.Code != 404 {
		t.Errorf("of another: %d", r.Code)
	}
}

// TestALedgerIsBounded: also of a stream that has new segments as long as it runs.
func TestALedgerIsBounded(t *testing.T) {
	l := newLedger()
	for i := range maxLedger + 10 {
		l.book(Viewer, fmt.Sprint(i), 1)
		l.book(Seed, fmt.Sprint(i), 1)
	}
	if len(l.Segments) != maxLedger || l.Segments["9"] != nil || l.Segments["10"] == nil || l.Requests[Viewer] != maxLedger+10 {
		t.Errorf("%d segments", len(l.Segments))
	}
}
