package peersbench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
)

// end is one end of all links of a measurement. Calls come from one goroutine.
type end interface {
	begin(link int) error
	hear(link int, s pairing.Signal) error
	run(job)
	drop(link int) error
	close() error
}

// host is what an end reports to, from any goroutine.
type host struct {
	setup  setup
	fetch  *fetcher // whose lanes the end asks on; of ends that are not elsewhere
	say    func(link int, s pairing.Signal)
	moment func(link int, what string)
	tell   func(message)
	failed func(error)
}

// newEnd makes an end of the kind.
func newEnd(h host) (end, error) {
	switch h.setup.Kind {
	case kindLink:
		e, err := newLinkEnd(h)
		if err != nil {
			return nil, err
		}
		h.fetch.ask = e.ask
		return e, nil
	case kindBare, kindTune:
		e, err := newBareEnd(h)
		if err != nil {
			return nil, err
		}
		h.fetch.ask = e.ask
		return e, nil
	case kindPage, kindFile:
		return newPageEnd(h)
	}
	return nil, fmt.Errorf("no end is called %q", h.setup.Kind)
}

// runEnd is the role of a child process.
func runEnd(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var s setup
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("peers end: setup: %w", err)
	}
	line, err := (&net.Dialer{Timeout: exchangeWait}).DialContext(ctx, "tcp", s.Exchange)
	if err != nil {
		return fmt.Errorf("peers end: exchange of signals: %w", err)
	}
	c := &child{setup: s, out: out, signals: bench.NewWriter(line), dropped: map[int]bool{}, to: map[int]int{}}
	if err := c.signals.Write(envelope{Name: s.Name}); err != nil {
		return errors.Join(err, line.Close())
	}
	fetch := &fetcher{done: func(d done) { c.tell(message{Type: "done", Done: &d}) }, fail: c.failed}
	c.end, err = newEnd(host{setup: s, fetch: fetch, say: c.say, moment: c.moment, tell: c.tell, failed: c.failed})
	if err != nil {
		return errors.Join(err, line.Close())
	}
	if _, c.elsewhere = c.end.(interface{ elsewhere() }); !c.elsewhere {
		c.tell(message{Type: "ready"})
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.listen(line) })
	err = bench.Obey(in, c.do)
	err = errors.Join(err, c.end.close(), line.Close())
	wg.Wait()
	return err
}

// exchangeWait is how long an end tries to reach the exchange of signals.
const exchangeWait = 10 * time.Second

// collections are how many a goroutine's stack needs to shrink to what it uses: each halves it.
const collections = 5

// child is an end and what it is told.
type child struct {
	setup   setup
	out     *bench.Writer // to the bench
	signals *bench.Writer // to the other ends
	// elsewhere says that the end is in another process, which tells its moments itself.
	elsewhere bool

	mu      sync.Mutex   // held while the end is called
	dropped map[int]bool // guarded by mu: links that have ended
	end     end          // guarded by mu, but for its making

	routes sync.Mutex
	to     map[int]int // guarded by routes: the other end of a link
}

func (c *child) tell(m message) { _ = c.out.Write(m) } // a bench that has gone closes the input, too

func (c *child) failed(err error) { c.tell(message{Type: "failed", Why: err.Error()}) }

func (c *child) moment(link int, what string) {
	c.tell(message{Type: "moment", Link: link, Moment: &moment{what, now()}})
}

// say signals to the other end of a link: the client knows which it is, and is the other end of all others' links.
func (c *child) say(link int, s pairing.Signal) {
	to := client
	if c.setup.fetches() {
		to = c.served(link)
	}
	_ = c.signals.Write(envelope{Name: c.setup.Name, To: to, Link: link, Signal: &s})
}

func (c *child) served(link int) int {
	c.routes.Lock()
	defer c.routes.Unlock()
	return c.to[link]
}

// listen takes what the other ends signal.
func (c *child) listen(line io.Reader) {
	signals := json.NewDecoder(bufio.NewReader(line))
	for {
		var m envelope
		if signals.Decode(&m) != nil || m.Signal == nil {
			return // the bench has ended
		}
		c.mu.Lock()
		if c.setup.fetches() && !c.elsewhere && m.Signal.Description != nil {
			c.moment(m.Link, answered)
		}
		var err error
		if !c.dropped[m.Link] { // a candidate may come late
			err = c.end.hear(m.Link, *m.Signal)
		}
		c.mu.Unlock()
		if err != nil {
			c.failed(fmt.Errorf("link %d: %w", m.Link, err))
		}
	}
}

// do is what the bench says.
func (c *child) do(m message) error {
	if err := c.order(m); err != nil {
		return fmt.Errorf("peers end: %s, link %d: %w", m.Type, m.Link, err)
	}
	return nil
}

func (c *child) order(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Type {
	case "begin":
		c.routes.Lock()
		c.to[m.Link] = m.To
		c.routes.Unlock()
		if !c.elsewhere {
			c.moment(m.Link, begun)
		}
		return c.end.begin(m.Link)
	case "drop":
		c.dropped[m.Link] = true
		return c.end.drop(m.Link)
	case "job":
		c.end.run(*m.Job)
		return nil
	case "collect":
		for range collections {
			debug.FreeOSMemory()
		}
		c.tell(message{Type: "collected"})
		return nil
	}
	return errors.New("an unknown order")
}
