package tracker

import (
	"testing"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestALinkHasSoManyCandidates: the 65th candidate of one link is refused, and another link has its own.
func TestALinkHasSoManyCandidates(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	a, b := n.viewer(""), n.viewer("")
	swarm := a.join().Swarm
	b.join()
	expect[*signal.Introduce](b)
	link := newID()
	candidate := func(link signal.ID) {
		b.send(&signal.Signal{Request: 9, Swarm: swarm, To: a.id, Link: link, Kind: "candidate", Candidate: "candidate:1 1 udp 1 192.0.2.1 9 typ host"})
	}
	for range maxCandidates {
		candidate(link)
	}
	for range maxCandidates {
		expect[*signal.Signal](a)
	}
	candidate(link)
	if e := expect[*signal.Error](b); e.Code != "bad-message" {
		t.Errorf("one more candidate: %+v", e)
	}
	candidate(newID())
	expect[*signal.Signal](a)
}

// TestASessionKnowsSoManyPeers: introductions and signals without end do not grow what a session remembers.
func TestASessionKnowsSoManyPeers(t *testing.T) {
	s := &acquaintances{known: map[signal.ID]*acquaintance{}}
	var last signal.ID
	for range 3 * maxKnown {
		last = newID()
		s.meet(bus.Target{Peer: last})
	}
	if len(s.known) != maxKnown || s.known[last] == nil {
		t.Errorf("%d peers are known, at most %d; the last among them: %v", len(s.known), maxKnown, s.known[last] != nil)
	}
}
