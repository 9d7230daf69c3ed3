package demopage

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestPagesBeginOnceAllBrowsersHaveStarted: what a browser opens first waits for the other browser, and for its own start. It is the
// film's page from then on.
func TestPagesBeginOnceAllBrowsersHaveStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		film := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "film") })
		get := func(page http.Handler, path string) string {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			return w.Body.String()
		}
		starts := []*Start{NewStart(), NewStart()}
		var ready, begun atomic.Int32
		readied := make(chan error, 1)
		go func() {
			readied <- Ready(t.Context(), starts...)
			ready.Add(1)
		}()
		var pages []http.Handler
		for i, s := range starts {
			page := s.Hold(film)
			pages = append(pages, page)
			if got := get(page, "/"); got != waitingPage {
				t.Errorf("page %d has %q", i, got)
			}
			for range 2 { // a browser asks again where it gave up
				go func() { get(page, startPath); begun.Add(1) }()
			}
			if synctest.Wait(); ready.Load()+begun.Load() > 0 {
				t.Errorf("%d pages that wait: ready %d, %d have begun", i+1, ready.Load(), begun.Load())
			}
		}
		if err := <-readied; err != nil || begun.Load() > 0 {
			t.Errorf("once the browsers have settled: %v, %d have begun", err, begun.Load())
		}
		for i, s := range starts {
			s.Begin()
			if synctest.Wait(); int(begun.Load()) != 2*(i+1) {
				t.Errorf("%d requests are answered once %d pages may begin", begun.Load(), i+1)
			}
			if got := get(pages[i], "/"); got != "film" {
				t.Errorf("page %d has %q", i, got)
			}
		}
		if got := get(pages[0], startPath); got != "film" {
			t.Errorf("the film's server is not asked: %q", got)
		}
	})
}

// TestABrowserThatDoesNotStartIsNotWaitedForForEver: a start that is given up ends with its reason, and by itself after a while.
func TestABrowserThatDoesNotStartIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("the browser has ended")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Ready(ctx, NewStart()) }()
		synctest.Wait()
		cancel(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("a start that was given up: %v", err)
		}
		if err := Ready(t.Context(), NewStart()); !errors.Is(err, errNotStarted) {
			t.Errorf("a browser that never comes: %v", err)
		}
		if err := Ready(t.Context()); err != nil {
			t.Errorf("without browsers: %v", err)
		}
	})
}
