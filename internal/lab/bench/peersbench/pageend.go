package peersbench

import (
	"errors"
	"net/http"
	"sync"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
)

// pageEnd is an end in a browser of its own, whose page (web/apps/bench/src/peers) does as it is told.
type pageEnd struct {
	host
	browser *demopage.Browser
	page    *demopage.Orders

	mu      sync.Mutex
	offered map[int]bool // guarded by mu: links that this end offers
	closed  bool         // guarded by mu
}

// pageOrder is what a page is told, in the words of web/apps/bench/src/peers/parent.ts.
type pageOrder struct {
	Type  string        `json:"type"` // setup, begin, drop, signal, job
	Link  int           `json:"link"`
	Setup *pageSetup    `json:"setup,omitempty"`
	Body  *pairing.Body `json:"body,omitempty"`
	Job   *job          `json:"job,omitempty"`
}

type pageSetup struct {
	Ours     bool `json:"ours"`
	Channels int  `json:"channels"`
	Message  int  `json:"message"`
	Buffer   int  `json:"buffer"`
}

// pageWord is what a page says: what every end says, and signals.
type pageWord struct {
	message
	Body pairing.Body `json:"body"`
}

func newPageEnd(h host) (*pageEnd, error) {
	e := newPage(h, demopage.Script())
	var err error
	if e.browser, err = demopage.LaunchEnd(e.pages(), "?peers", h.setup.Firefox); err != nil {
		return nil, err
	}
	go func() {
		if <-e.browser.Ended; !e.isClosed() {
			h.failed(errors.New("the browser ended by itself"))
		}
	}()
	return e, nil
}

// newPage is a pageEnd whose browser is still to come.
func newPage(h host, script []byte) *pageEnd {
	e := &pageEnd{host: h, offered: map[int]bool{}}
	e.page = demopage.NewOrders(script, e.take)
	e.page.Tell(pageOrder{Type: "setup", Setup: &pageSetup{
		Ours: h.setup.Kind == kindPage, Channels: h.setup.Channels, Message: bareMessage, Buffer: bareBuffer,
	}})
	return e
}

// pages is what the browser finds.
func (e *pageEnd) pages() http.Handler {
	data := newContent().data
	mux := http.NewServeMux()
	mux.Handle("/", e.page)
	mux.HandleFunc("GET /content", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	return mux
}

// take takes what the page says.
func (e *pageEnd) take(w pageWord) error {
	if w.Type != "signal" {
		e.tell(w.message)
		return nil
	}
	if s, ok := w.Body.Signal(); ok {
		e.say(w.Link, s)
	}
	return nil
}

func (e *pageEnd) begin(link int) error {
	e.mu.Lock()
	e.offered[link] = true
	e.mu.Unlock()
	e.page.Tell(pageOrder{Type: "begin", Link: link})
	return nil
}

func (e *pageEnd) hear(link int, s pairing.Signal) error {
	e.mu.Lock()
	body := s.Body(e.offered[link])
	e.mu.Unlock()
	e.page.Tell(pageOrder{Type: "signal", Link: link, Body: &body})
	return nil
}

func (e *pageEnd) run(j job) { e.page.Tell(pageOrder{Type: "job", Job: &j}) }

func (e *pageEnd) drop(link int) error {
	e.page.Tell(pageOrder{Type: "drop", Link: link})
	return nil
}

// elsewhere says that the end tells of itself when it is ready, and of its moments.
func (e *pageEnd) elsewhere() {}

func (e *pageEnd) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

func (e *pageEnd) close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.page.Close()
	return e.browser.Close()
}
