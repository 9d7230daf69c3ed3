package app

import (
	"encoding/json"
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

// tinyFilm is a folder that looks like HLS; nothing in it plays.
func tinyFilm(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"master.m3u8":       "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n240p/index.m3u8\n",
		"240p/index.m3u8":   "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nseg-00000.ts\n#EXTINF:4,\nseg-00001.ts\n#EXT-X-ENDLIST\n",
		"240p/seg-00000.ts": strings.Repeat("0", 40_000),
		"240p/seg-00001.ts": strings.Repeat("1", 40_000),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func testOrigin(t *testing.T) (*origin, *testkit.Recorder) {
	t.Helper()
	sink := &testkit.Recorder{}
	o, err := openOrigin(tinyFilm(t), "/media/x/", sink)
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
	h := o.handler(clientViewer)
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
	ask(o.handler(clientViewer), "GET", segment0)
	ask(o.handler(clientViewer), "GET", segment0)
	ask(o.handler(clientSeed), "GET", segment0)
	ask(o.handler(clientSeed), "GET", "/media/x/master.m3u8")
	ask(o.handler(clientViewer), "GET", "/media/x/made-up.ts")
	w := httptest.NewRecorder()
	o.serveLedger(w, nil)
	var l ledger
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if l.Segments[segment0][clientViewer] != 2 || l.Segments[segment0][clientSeed] != 1 || len(l.Segments) != 1 {
		t.Errorf("segments: %v", l.Segments)
	}
	if l.Requests[clientViewer] != 3 || l.Requests[clientSeed] != 2 || l.Bytes[clientSeed] < 40_000 {
		t.Errorf("requests %v, bytes %v", l.Requests, l.Bytes)
	}
	if got := sink.Value(originRequests, clientSeed, classPlaylist); got != 1 || sink.Dropped() != 0 {
		t.Errorf("metric: %v, %d dropped", got, sink.Dropped())
	}
}

func TestOriginFaults(t *testing.T) {
	o, _ := testOrigin(t)
	h := o.handler(clientViewer)
	for fault, want := range map[string]int{fault404: 404, fault500: 500, faultNone: 200} {
		if err := o.setFault(fault); err != nil {
			t.Fatal(err)
		}
		if w := ask(h, "GET", segment0); w.Code != want {
			t.Errorf("%s: %d", fault, w.Code)
		}
		if w := ask(h, "GET", "/media/x/master.m3u8"); w.Code != 200 {
			t.Errorf("%s: the playlist answers %d", fault, w.Code)
		}
	}
	if err := o.setFault("403"); err == nil {
		t.Error("fault 403 was taken")
	}
}

// TestOriginShapesConnections compares a shaped connection with what its rate allows: 40 kB at 200 kB/s take 0.2 s at least.
func TestOriginShapesConnections(t *testing.T) {
	o, _ := testOrigin(t)
	s := httptest.NewUnstartedServer(o.handler(clientViewer))
	s.Config.ConnContext = shapeConnections(200_000)
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
	h := o.handler(clientViewer)
	if r := ask(h, "GET", "/media/x/ts/seg-1.ts"); r.Code != 404 {
		t.Errorf("without it: %d", r.Code)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "seg-1.ts"), "G")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.ts = root
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

func TestThePageIsToldOfAnMPD(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "master.m3u8"), "#EXTM3U\n")
	o, err := openOrigin(dir, "/media/bbb/", &testkit.Recorder{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if shown := (PictureConfig{}).shown("", o); shown.DASH != "" || shown.Source != "/media/bbb/master.m3u8" {
		t.Errorf("without one the page is told of %+v", shown)
	}
	write(t, filepath.Join(dir, "master.mpd"), "<MPD/>")
	if shown := (PictureConfig{}).shown("", o); shown.DASH != "/media/bbb/master.mpd" {
		t.Errorf("the page is told of %+v", shown)
	}
	if r := ask(o.handler(clientViewer), "GET", "/media/bbb/master.mpd"); r.Code != 200 || r.Header().Get("Content-Type") != "application/dash+xml" {
		t.Errorf("%d %v", r.Code, r.Header())
	}
}
