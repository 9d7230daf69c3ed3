package outagebench

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	startPath = "/bench/start"
	// settleTime is what a browser that has its first page still does by itself.
	settleTime = 2 * time.Second
	// waitingPage is opened anew once all may begin: it is the film's page then.
	waitingPage = `<!doctype html><title>outage</title><script>
fetch('` + startPath + `').then(({ ok }) => ok && location.reload());
</script>`
)

// start has pages begin at the same moment, once their browsers have started. A viewer's browser runs before a film is opened; two that
// start at once take the processors from each other for longer than a fast line needs for ten seconds of film.
type start struct {
	waits chan struct{} // a value for each page that waits
	begun chan struct{}
}

func newStart() *start { return &start{waits: make(chan struct{}), begun: make(chan struct{})} }

// ready returns once so many pages wait, and their browsers have settled.
func (s *start) ready(ctx context.Context, pages int) error {
	for range pages {
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

// begin lets them go.
func (s *start) begin() { close(s.begun) }

// hold serves a page that waits until all may begin, and film's page from then on.
func (s *start) hold(film http.Handler) http.Handler {
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
			select {
			case s.waits <- struct{}{}:
				select {
				case <-s.begun:
				case <-r.Context().Done():
				}
			case <-r.Context().Done():
			}
		default:
			http.NotFound(w, r)
		}
	})
}
