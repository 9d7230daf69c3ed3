package webtorrent

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/wire/jsonscan"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

const (
	maxBad      = 8   // malformed messages that end a socket
	maxRateOver = 100 // refused messages that end a socket
)

// socket is a client with a connection to this tracker. Its messages come one after the other.
type socket struct {
	client
	silent  *time.Timer // ends a socket without announce; nil once there was one
	limiter *rate.Limiter
	bad     int // malformed so far
	over    int // refused by the limiter so far
}

// Receive implements tracker.Receiver.
func (c *socket) Receive(raw []byte) bool {
	if !c.handle(raw) {
		return false
	}
	if c.silent != nil && c.bad+c.over == 0 {
		c.silent.Stop()
		c.silent = nil
	}
	return true
}

// End implements tracker.Receiver.
func (c *socket) End(err error) {
	c.conn.Gone(err)
	if c.silent != nil {
		c.silent.Stop()
	}
	c.s.sockets.leave(&c.client)
	c.end()
	c.conn.Left()
}

// handle acts on one message and says whether the session goes on.
func (c *socket) handle(raw []byte) bool {
	now := c.s.of.Now()
	if !c.limiter.AllowN(now, 1) {
		c.over++
		c.refuse(&wire.Request{}, "rate-limited", "")
		return c.over <= maxRateOver || c.violates("rate-limited")
	}
	w := workPool.Get().(*work)
	defer workPool.Put(w)
	r := &w.request
	if err := wire.Decode(raw, r); err != nil {
		c.bad++
		var malformed *jsonscan.Problem
		if errors.As(err, &malformed) {
			c.refuse(r, "bad-message", "The "+malformed.Error()+".")
		}
		return c.bad < maxBad || c.violates("bad-message")
	}
	c.s.counts.messages[r.Kind].Add(1)
	switch r.Kind {
	case wire.Scrape:
		c.scrape(w)
	case wire.Answer:
		c.answer(r)
	default:
		c.announce(w, now)
	}
	return true
}

// violates ends the socket for what its client did.
func (c *socket) violates(reason string) bool {
	c.conn.Violates(reason)
	return false
}

func (c *socket) announce(w *work, now time.Time) {
	r := &w.request
	if !c.s.allowed(&r.InfoHash) {
		c.refuse(r, "not-allowed", "")
		return
	}
	c.makeRoom()
	if home := c.s.home(&r.InfoHash); home != c.s.host.ID() {
		if code := c.forward(r, home); code != "" {
			c.refuse(r, code, "")
		}
		return
	}
	c.announceHere(w, now)
}

func (c *socket) answer(r *wire.Request) {
	if home := c.s.home(&r.InfoHash); home != c.s.host.ID() {
		c.tell(home, r, false)
		return
	}
	c.answerHere(r)
}

// scrape answers for the swarms that are at home here, and passes on what concerns others: each home answers for its own.
func (c *socket) scrape(w *work) {
	r := &w.request
	if r.Own {
		r.Hashes = append(r.Hashes, c.peers.hashes()...)
	}
	var elsewhere map[signal.ID][]wire.ID
	here := r.Hashes[:0]
	for _, h := range r.Hashes {
		if !c.s.allowed(&h) {
			continue
		}
		switch home := c.s.home(&h); {
		case home == c.s.host.ID() && !slices.Contains(here, h):
			here = append(here, h)
		case home != c.s.host.ID() && !slices.Contains(elsewhere[home], h):
			if elsewhere == nil {
				elsewhere = map[signal.ID][]wire.ID{}
			}
			elsewhere[home] = append(elsewhere[home], h)
		}
	}
	for home, hashes := range elsewhere {
		for some := range slices.Chunk(hashes, wire.MaxScrape) {
			c.tell(home, &wire.Request{Kind: wire.Scrape, Hashes: some}, false)
		}
	}
	if r.Hashes = here; len(here) > 0 || len(elsewhere) == 0 {
		c.scrapeHere(w)
	}
}
