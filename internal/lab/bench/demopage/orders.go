package demopage

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// built holds what `make build` copies here, which is not committed.
//
//go:embed all:files
var built embed.FS

// Script is the script of a page that is one end of a link; empty where it was not built.
func Script() []byte {
	script, _ := built.ReadFile("files/bench.js") // absent without `make build`
	return script
}

var errNotBuilt = errors.New("this program was built without its browser side: make build")

// MissingEnd says what is missing for an end of a link in a browser: the bundle's page, or a browser.
func MissingEnd(ctx context.Context) error {
	if len(Script()) == 0 {
		return errNotBuilt
	}
	return Missing(ctx)
}

// LaunchEnd starts a browser of this machine with such a page, until it is closed. Chromium offers its addresses, loopback too, by number:
// no host of a lab answers for mDNS names, and how two ends find each other is measured by `leeway-lab bench join`. Firefox has
// preferences for it.
func LaunchEnd(page http.Handler, query string, firefox bool) (*Browser, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := Options{Listener: listener, Page: page, Query: query, Firefox: firefox}
	if !firefox {
		o.Flags = []string{"--disable-features=WebRtcHideLocalIpsWithMdns", "--allow-loopback-in-peer-connection"}
	}
	return Launch(context.Background(), o)
}

// Orders is a page that does as it is told: it runs a script, which hears orders on an event stream at /orders and says
// what came of them at /said, both in JSON. It serves one page.
type Orders struct {
	mux    *http.ServeMux
	orders chan []byte
	ended  chan struct{}
	end    sync.Once
}

// ordersBound is far above what is ordered before a page is there to hear it.
const ordersBound = 1024

// saidBound is the most that a page may say at once, bytes.
const saidBound = 1 << 20

// NewOrders makes a page that runs the script. said gets what it says, from one goroutine at a time each, in order as
// far as the page waits for its answers.
func NewOrders[T any](script []byte, said func(T) error) *Orders {
	o := &Orders{mux: http.NewServeMux(), orders: make(chan []byte, ordersBound), ended: make(chan struct{})}
	o.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><title>one end of a link</title><script src="/bench.js"></script>`)
	})
	o.mux.HandleFunc("GET /bench.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(script)
	})
	o.mux.HandleFunc("GET /orders", o.give)
	o.mux.HandleFunc("POST /said", func(w http.ResponseWriter, r *http.Request) {
		var word T
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, saidBound)).Decode(&word)
		if err == nil {
			err = said(word)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return o
}

// ServeHTTP implements http.Handler.
func (o *Orders) ServeHTTP(w http.ResponseWriter, r *http.Request) { o.mux.ServeHTTP(w, r) }

// Tell gives an order as JSON, once the page is there to hear it.
func (o *Orders) Tell(order any) {
	text, err := json.Marshal(order)
	if err != nil {
		panic(err) // a field of a new kind
	}
	select {
	case o.orders <- text:
	case <-o.ended:
	}
}

// give is the event stream.
func (o *Orders) give(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		select {
		case order := <-o.orders:
			if _, err := fmt.Fprintf(w, "data: %s\n\n", order); err != nil || out.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-o.ended:
			return
		}
	}
}

// Close ends the stream; no order is given any more.
func (o *Orders) Close() { o.end.Do(func() { close(o.ended) }) }
