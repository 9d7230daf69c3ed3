package outagebench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

//go:embed page.js
var pageScript string

// engine is what becomes of requests for the engine's script.
type engine int

const (
	engineThere engine = iota
	engineMissing
	engineSlow
)

// engineTakes is how long a slow one takes.
const engineTakes = 10 * time.Second

// report is what a page tells of itself, four times a second.
type report struct {
	StartupMs float64 `json:"startup_ms"` // 0: there is no picture yet
	StallMs   float64 `json:"stall_ms"`
	FilledMs  float64 `json:"filled_ms"` // when 10 s were in hand, 0 before
	Had       []had   `json:"had"`
	Ahead     float64 `json:"ahead"`  // s
	Others    float64 `json:"others"` // bytes of peers and seeds
	Bytes     float64 `json:"bytes"`  // of all segments
}

// had says when a page had the film up to a second.
type had struct {
	Ms float64 `json:"ms"` // since the navigation
	To float64 `json:"to"` // s of the film
}

// watched is what came of a viewer's watching.
type watched struct {
	startup, stall, filled time.Duration
	had                    []had
	fell                   bool // its line did
	aheadAtFall            float64
	peers, origin          float64 // bytes
}

func (w watched) String() string {
	return fmt.Sprintf("startup %.2f s, 10 s in hand after %.2f s, stalls %.2f s, %.1f s in hand as the line fell, %.1f MB from peers and %.1f from the origin",
		w.startup.Seconds(), w.filled.Seconds(), w.stall.Seconds(), w.aheadAtFall, w.peers/1e6, w.origin/1e6)
}

// endSlack is what the ends of the same segment may differ by, s.
const endSlack = 0.05

// sameMedia is how much later a page had the film up to where the other had it when 10 s were in its hand. The moment of 10 s itself jumps
// by a segment or more: a page that has 9.9 s with one segment has 10 s with a later one.
func sameMedia(with, without watched) (later time.Duration, ok bool) {
	var then had
	for _, h := range without.had {
		if h.Ms <= without.filled.Seconds()*1000 {
			then = h
		}
	}
	for _, h := range with.had {
		if then.To > 0 && h.To >= then.To-endSlack {
			return time.Duration((h.Ms - then.Ms) * float64(time.Millisecond)), true
		}
	}
	return 0, false
}

// page is the demo page on a viewer's host: film and page from one server, script and tracker from another.
type page struct {
	http.Handler

	mu   sync.Mutex
	last report // guarded by mu
}

// dialer opens a viewer's connections.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// newPage makes the page; tracker is what its script is told, empty: it has none. film and scripts are HOST:PORT.
func newPage(dial dialer, film, scripts, tracker string, e engine) *page {
	p := &page{}
	head := demopage.Hush + "<script>" + pageScript + "</script>"
	if tracker != "" {
		head += fmt.Sprintf(`<script async src="/leeway.js" data-tracker=%q data-site=%q></script>`, tracker, siteName)
	}
	shown := demopage.Telling(dial, film, head, p.hear)
	ours := demopage.Proxy(dial, scripts, "")
	p.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		script := strings.HasPrefix(r.URL.Path, "/leeway")
		switch second := isEngine(r.URL.Path); {
		case second && e == engineMissing:
			http.NotFound(w, r)
		case second && e == engineSlow && !sleep.For(r.Context(), engineTakes):
		case script:
			ours.ServeHTTP(w, r)
		default:
			shown.ServeHTTP(w, r)
		}
	})
	return p
}

// hear takes a report.
func (p *page) hear(body io.Reader) error {
	var said report
	if err := json.NewDecoder(body).Decode(&said); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = said
	return nil
}

func (p *page) now() report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

const (
	lookEvery = 50 * time.Millisecond
	// pictureWait is for a browser that starts beside another on a busy machine.
	pictureWait = 40 * time.Second
	// watchAtLeast and watchAtMost bound the watching from the first picture on; on a line that falls it goes on for some
	// seconds after the line is back.
	watchAtLeast = 20 * time.Second
	watchAtMost  = 60 * time.Second
)

var errNoPicture = errors.New("no picture in time")

// pictured waits for the first picture, and returns when it was seen.
func (p *page) pictured(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pictureWait, errNoPicture)
	defer cancel()
	for p.now().StartupMs == 0 {
		if !sleep.For(ctx, lookEvery) {
			return time.Time{}, context.Cause(ctx)
		}
	}
	return time.Now(), nil
}

// watch looks on until the film has been watched for long enough; at runs what happens so long after the first picture.
func (p *page) watch(ctx context.Context, l *netlab.Line, a access, die func()) (w watched, err error) {
	began, err := p.pictured(ctx)
	if err != nil {
		return w, err
	}
	dead, back := die == nil, a.low == 0
	for {
		since := time.Since(began)
		now := p.now()
		if !dead && since >= dieAfter {
			dead = true
			die()
		}
		if a.low > 0 && !w.fell && since >= fallAfter {
			w.fell, w.aheadAtFall = true, now.Ahead
			if err := l.Down.Set(a.down(a.low)); err != nil {
				return w, err
			}
		}
		if !back && since >= fallAfter+fallFor {
			back = true
			if err := l.Down.Set(a.down(a.rate)); err != nil {
				return w, err
			}
		}
		if since >= watchAtLeast && back && (now.FilledMs > 0 || since >= watchAtMost) {
			break
		}
		if !sleep.For(ctx, lookEvery) {
			return w, ctx.Err()
		}
	}
	return p.now().sum(w), nil
}

// sum fills in what the page counted.
func (r report) sum(w watched) watched {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	w.startup, w.stall, w.filled = ms(r.StartupMs), ms(r.StallMs), ms(r.FilledMs)
	w.had = r.Had
	w.peers, w.origin = r.Others, max(0, r.Bytes-r.Others)
	return w
}
