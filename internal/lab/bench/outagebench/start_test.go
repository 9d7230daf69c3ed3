package outagebench

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestPagesBeginAtOnce: what a browser opens first waits for the other's, and is the film's page from then on.
func TestPagesBeginAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStart()
		film := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "film") })
		pages := []http.Handler{s.hold(film), s.hold(film)}
		get := func(page http.Handler, path string) string {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			return w.Body.String()
		}
		var ready, begun atomic.Int32
		readied := make(chan error, 1)
		go func() {
			readied <- s.ready(t.Context(), len(pages))
			ready.Add(1)
		}()
		for i, page := range pages {
			if got := get(page, "/"); got != waitingPage {
				t.Errorf("page %d has %q", i, got)
			}
			go func() { get(page, startPath); begun.Add(1) }()
			if synctest.Wait(); ready.Load()+begun.Load() > 0 {
				t.Errorf("%d pages that wait: ready %d, %d have begun", i+1, ready.Load(), begun.Load())
			}
		}
		if err := <-readied; err != nil || begun.Load() > 0 {
			t.Errorf("once the browsers have settled: %v, %d have begun", err, begun.Load())
		}
		s.begin()
		if synctest.Wait(); int(begun.Load()) != len(pages) {
			t.Errorf("%d have begun", begun.Load())
		}
		for i, page := range pages {
			if got := get(page, "/"); got != "film" {
				t.Errorf("page %d has %q", i, got)
			}
		}
	})
}

// TestAPageThatNeverComesHoldsNoOther: a start that is given up ends.
func TestAPageThatNeverComesHoldsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStart()
		var err error
		go func() { err = s.ready(ctx, 1) }()
		synctest.Wait()
		cancel()
		if synctest.Wait(); err == nil {
			t.Error("a start that was given up is ready")
		}
	})
}
