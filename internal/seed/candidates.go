package seed

import (
	"sync"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const maxCandidates = 64 // of one link (spec/tracker-protocol.md)

// candidates keeps a link's candidates in order: the viewer's wait until there is a link, ours until the answer is out.
type candidates struct {
	send func(transfer.Candidate) // to the viewer

	mu       sync.Mutex
	link     transfer.Link        // guarded by mu; nil until linked
	waiting  []transfer.Candidate // guarded by mu: the viewer's
	outgoing []transfer.Candidate // guarded by mu: ours
	answered bool                 // guarded by mu
}

// theirs takes a candidate of the viewer.
func (c *candidates) theirs(one transfer.Candidate) {
	c.mu.Lock()
	link := c.link
	if link == nil && len(c.waiting) < maxCandidates {
		c.waiting = append(c.waiting, one)
	}
	c.mu.Unlock()
	if link != nil {
		_ = link.AddCandidate(one)
	}
}

// linked hands the link what has come for it.
func (c *candidates) linked(link transfer.Link) {
	c.mu.Lock()
	c.link = link
	waiting := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, one := range waiting {
		_ = link.AddCandidate(one) // a bad candidate is a way that does not work; others may
	}
}

// ours takes a candidate of the seed.
func (c *candidates) ours(one transfer.Candidate) {
	c.mu.Lock()
	answered := c.answered
	if !answered {
		c.outgoing = append(c.outgoing, one)
	}
	c.mu.Unlock()
	if answered && len(one.Candidate) <= signal.MaxCandidate {
		c.send(one)
	}
}

// flow lets ours go: the answer is out.
func (c *candidates) flow() {
	c.mu.Lock()
	c.answered = true
	outgoing := c.outgoing
	c.outgoing = nil
	c.mu.Unlock()
	for _, one := range outgoing {
		c.ours(one)
	}
}
