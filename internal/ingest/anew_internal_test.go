package ingest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/packaging"
)

// TestASegmentThatTakesThePlaceOfAnotherIsWaitedFor: a packager that was killed is started again, and has the names that it had before. It
// pushes its playlist and the last byte of the segment at the same time. What was there before is not signed for it.
func TestASegmentThatTakesThePlaceOfAnotherIsWaitedFor(t *testing.T) {
	const list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.ts\n"
	root := newRoot(t)
	p := newPackager(t, root)
	synctest.Test(t, func(t *testing.T) {
		v := New(p, func(_ string, _ *packaging.Plan, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		put := func(path string, body io.Reader) {
			w := httptest.NewRecorder()
			if v.ServeHTTP(w, httptest.NewRequest(http.MethodPut, path, body)); w.Code/100 != 2 {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		signed := func() int64 {
			text, err := root.ReadFile("live.m3u8" + packaging.Suffix)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := certificate.ParseList(text)
			if err != nil || len(entries) != 1 {
				t.Fatalf("%d entries, %v", len(entries), err)
			}
			return entries[0].Length
		}
		put("/0.ts", strings.NewReader("of before"))
		put("/live.m3u8", strings.NewReader(list))
		again := &gated{Reader: strings.NewReader("anew"), begun: make(chan struct{}), gate: make(chan struct{})}
		var both sync.WaitGroup
		both.Go(func() { put("/0.ts", again) })
		<-again.begun
		both.Go(func() { put("/live.m3u8", strings.NewReader(list)) })
		synctest.Wait()
		close(again.gate)
		both.Wait()
		if got := signed(); got != int64(len("anew")) {
			t.Errorf("what was signed has %d bytes", got)
		}
		hangs := &gated{Reader: strings.NewReader("late"), begun: make(chan struct{}), gate: make(chan struct{})}
		both.Go(func() { put("/0.ts", hangs) })
		<-hangs.begun
		began := time.Now()
		if put("/live.m3u8", strings.NewReader(list)); time.Since(began) != overtaking {
			t.Errorf("a playlist waited %v for an upload that hangs", time.Since(began))
		}
		close(hangs.gate)
		both.Wait()
	})
}
