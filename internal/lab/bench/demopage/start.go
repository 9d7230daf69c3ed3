package demopage

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	startPath = "/bench/start"
	// settleTime is what a browser that has its first page still does by itself.
	settleTime = 2 * time.Second
	// startWait is for browsers that start beside each other on a busy machine.
	startWait = time.Minute
	// waitingPage is opened anew once it may begin: it is the film's page then. A browser may give up a request that nothing answers.
	waitingPage = `<!doctype html><title>waits</title><script>
const wait = () => fetch('` + startPath + `').then(({ ok }) => ok && location.reload(), () => setTimeout(wait, 1000));
wait();
</script>`
)

var errNotStarted = errors.New("a browser did not start in time")

// Start has a page begin later than its browser. A viewer's browser runs before a film is opened; browsers that start as their pages
// begin take the processors from each other for longer than a fast line needs for ten seconds of film.
type Start struct {
	waits chan struct{} // closed once the page waits
	wait  func()
	begun chan struct{}
}

// NewStart is the start of one page.
func NewStart() *Start {
	s := &Start{waits: make(chan struct{}), begun: make(chan struct{})}
	s.wait = sync.OnceFunc(func() { close(s.waits) })
	return s
}

// Ready returns once the pages of all starts wait, and their browsers have settled.
func Ready(ctx context.Context, starts ...*Start) error {
	if len(starts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, errNotStarted)
	defer cancel()
	for _, s := range starts {
		select {
		case <-s.waits:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if !sleep.For(ctx, settleTime) {
		return context.Cause(ctx)
	}
	return nil
}

// Begin lets the page go. It is called once.
func (s *Start) Begin() { close(s.begun) }

// Hold serves a page that waits until it may begin, and film's page from then on.
func (s *Start) Hold(film http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.begun:
			film.ServeHTTP(w, r)
			return
		default:
		}
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = io.WriteString(w, waitingPage) // a browser that has gone is seen by its end
		case startPath:
			s.wait()
			select {
			case <-s.begun:
			case <-r.Context().Done():
			}
		default:
			http.NotFound(w, r)
		}
	})
}
