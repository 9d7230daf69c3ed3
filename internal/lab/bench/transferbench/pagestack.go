package transferbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
	"github.com/leeway-video/leeway/internal/procstat"
)

// pageStack is an end in a browser of its own, whose page (web/apps/bench) does as it is told.
type pageStack struct {
	host
	browser *demopage.Browser
	page    *demopage.Orders
	content []byte
	reports chan report
	closed  chan struct{}

	mu    sync.Mutex
	begun map[int]bool // guarded by mu: links that this end offers
}

// order is what a page is told, in the words of web/apps/bench/src/parent.ts.
type order struct {
	Type   string        `json:"type"` // setup, begin, signal, start, measure
	Link   int           `json:"link"`
	Setup  *pageSetup    `json:"setup,omitempty"`
	Body   *pairing.Body `json:"body,omitempty"`
	WarmMS int64         `json:"warm_ms,omitempty"`
	RunMS  int64         `json:"run_ms,omitempty"`
}

type pageSetup struct {
	Bare        bool `json:"bare"`
	Law         bool `json:"law"`
	Lane        int  `json:"lane"`
	Send        bool `json:"send"`
	Channels    int  `json:"channels"`
	Message     int  `json:"message"`
	Buffer      int  `json:"buffer"`
	Outstanding int  `json:"outstanding"`
	Batch       int  `json:"batch"`
}

// word is what a page says.
type word struct {
	Type    string       `json:"type"` // signal, open, report, failed
	Link    int          `json:"link"`
	Body    pairing.Body `json:"body"`
	Bytes   int64        `json:"bytes"`
	Seconds float64      `json:"seconds"`
	Silence float64      `json:"silence"`
	Task    float64      `json:"task"`
	Why     string       `json:"why"`
}

func newPageStack(h host) (s *pageStack, err error) {
	s = newPages(h, demopage.Script())
	s.browser, err = demopage.LaunchEnd(s.pages(), "", h.setup.Firefox)
	return s, err
}

// newPages is a pageStack whose browser is still to come.
func newPages(h host, script []byte) *pageStack {
	s := &pageStack{
		host: h, content: newContent().data, reports: make(chan report, 1), closed: make(chan struct{}), begun: map[int]bool{},
	}
	s.page = demopage.NewOrders(script, s.hear)
	lane := 0
	if h.setup.Kind == kindPageLane {
		lane = 1
	}
	s.page.Tell(order{Type: "setup", Setup: &pageSetup{
		Bare: h.setup.Kind == kindBare, Law: h.setup.Kind == kindPageLaw || h.setup.Kind == kindPageLane, Lane: lane, Send: h.setup.Send && !h.setup.Both, Channels: h.setup.Channels, Message: h.setup.Message, Buffer: bareBuffer,
		Outstanding: outstanding, Batch: askAtOnce,
	}})
	return s
}

// pages is what the browser finds.
func (s *pageStack) pages() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.page)
	mux.HandleFunc("GET /content", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.content) })
	return mux
}

func (s *pageStack) hear(m word) error {
	switch m.Type {
	case "signal":
		if sig, ok := m.Body.Signal(); ok {
			s.signal(m.Link, signal{Description: sig.Description, Candidate: sig.Candidate})
		} else {
			s.complain(fmt.Sprintf("link %d: %s %s", m.Link, m.Body.Kind, m.Body.Reason))
		}
	case "open":
		s.open(m.Link)
	case "report":
		s.reports <- report{Bytes: m.Bytes, Seconds: m.Seconds, Silence: m.Silence, Task: m.Task}
	case "failed":
		s.complain(m.Why)
	}
	return nil
}

// complain says what went wrong in the page; the parent's patience ends the measurement.
func (s *pageStack) complain(why string) {
	select {
	case <-s.closed: // links that are closed close
	default:
		fmt.Fprintf(os.Stderr, "transfer end in a browser: %s\n", why)
	}
}

func (s *pageStack) begin(link int) error {
	s.mu.Lock()
	s.begun[link] = true
	s.mu.Unlock()
	s.page.Tell(order{Type: "begin", Link: link})
	return nil
}

func (s *pageStack) handle(link int, m signal) error {
	s.mu.Lock()
	offered := s.begun[link]
	s.mu.Unlock()
	b := pairing.Signal{Description: m.Description, Candidate: m.Candidate}.Body(offered)
	s.page.Tell(order{Type: "signal", Link: link, Body: &b})
	return nil
}

func (s *pageStack) start(link int) { s.page.Tell(order{Type: "start", Link: link}) }

// measure implements elsewhere.
func (s *pageStack) measure(ctx context.Context, warm, run time.Duration) (report, error) {
	s.page.Tell(order{Type: "measure", WarmMS: warm.Milliseconds(), RunMS: run.Milliseconds()})
	select {
	case r := <-s.reports:
		return r, nil
	case <-s.closed:
		return report{}, errors.New("the end was closed")
	case <-ctx.Done():
		return report{}, ctx.Err()
	}
}

// spent implements elsewhere: of the browser with all its children, and of this process.
func (s *pageStack) spent() spent {
	all := tree(s.browser.PID())
	all.all += procstat.CPU().Seconds()
	return all
}

func (s *pageStack) buffers() [2]int { return [2]int{} }

func (s *pageStack) close() error {
	s.stop()
	return s.browser.Close()
}

// stop ends what waits for the page, and its orders.
func (s *pageStack) stop() {
	close(s.closed)
	s.page.Close()
}
