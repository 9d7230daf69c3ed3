package tracker

import (
	"testing"

	"github.com/leeway-video/leeway/internal/testkit"
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

// TestWhatTheBusDoesNotTakeHoldsNothingUp: no signal waits for one that no replica takes, here because the ID of its link is zero. The clock
// stands still, so nothing is given up.
func TestWhatTheBusDoesNotTakeHoldsNothingUp(t *testing.T) {
	w := newWorld(t)
	near, far := w.tracker(nil), w.tracker(nil)
	know(t, near, far)
	seed, told := w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return near.roster.serves(seed) && far.roster.serves(seed) })
	a, b := near.viewer(""), far.viewer("")
	a.join()
	swarm := b.join().Swarm
	for met := map[signal.ID]bool{}; !met[a.id] || !met[seed]; {
		for _, p := range expect[*signal.Introduce](b).Peers {
			met[p.Peer] = true
		}
	}
	w.clock.Stop()
	for to, role := range map[signal.ID]string{a.id: "viewer", seed: "seed"} {
		far.sessions.session(b.id).route(bus.Target{Peer: to, Role: role, Tracker: near.ID()}, &signal.Signal{Swarm: swarm, To: to, Kind: "end"})
		b.send(&signal.Signal{Swarm: swarm, To: to, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	}
	if s := expect[*signal.Signal](a); s.Kind != "offer" {
		t.Errorf("the viewer hears %+v", s)
	}
	for receive(t, told).Kind != bus.KindSignal {
	}
}

// TestTheLinkZeroIsNone: a viewer that signals about it breaks the protocol, as one does that offers it with its join.
func TestTheLinkZeroIsNone(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	swarm := v.join().Swarm
	for i, m := range []signal.Message{
		&signal.Signal{Request: 1, Swarm: swarm, To: newID(), Kind: "end"},
		&signal.Join{Request: 2, Title: testTitle, Role: "full", Offers: []signal.Offer{{SDP: "v=0", Plan: testPlan}}},
	} {
		v.send(m)
		if e := expect[*signal.Error](v); e.Code != "bad-message" || e.Request != i+1 {
			t.Errorf("%T: %+v", m, e)
		}
	}
}
