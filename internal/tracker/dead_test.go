package tracker

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func beats(subject string) bool { return subject == bus.SubjectTrackerBeat }

// TestWhoWasThoughtDeadHearsSignals: one tracker does not hear the other's beats for a while and takes it for dead; the other
// notices nothing, and goes on where it was.
func TestWhoWasThoughtDeadHearsSignals(t *testing.T) {
	w := newWorld(t)
	line := &lossy{Bus: w.bus}
	w.through = line
	quiet := w.tracker(calm)
	w.through = nil
	other := w.tracker(calm)
	know(t, quiet, other)
	a, b := quiet.viewer(""), other.viewer("")
	a.join()
	swarm := b.join().Swarm
	expect[*signal.Introduce](b)
	link := newID()
	say := func(n int) {
		t.Helper()
		b.send(&signal.Signal{Swarm: swarm, To: a.id, Link: link, Kind: "candidate", Candidate: strings.Repeat("c", n), Mid: "0"})
		if s := expect[*signal.Signal](a); len(s.Candidate) != n {
			t.Fatalf("signal %d came as %+v", n, s)
		}
	}
	for n := range 5 {
		say(n + 1)
	}
	line.set(beats)
	eventually(t, "it is taken for dead", func() bool { return other.roster.live() == 1 })
	// What is under way keeps a stream alive; it is forgotten at a beat at which nothing is.
	other.courier.Maintain()
	line.set(nil)
	know(t, quiet, other)
	for n := range 5 {
		say(n + 6)
	}
}

// unheard are two trackers that know each other, and the line by which the first one speaks.
func unheard(t *testing.T) (first, second *torrentNode, line *lossy) {
	t.Helper()
	w := newWorld(t)
	line = &lossy{Bus: w.bus}
	w.through = line
	first = w.torrents(calm)
	w.through = nil
	second = w.torrents(calm)
	for _, n := range []*torrentNode{first, second} {
		eventually(t, "trackers hear each other", func() bool { return n.roster.live() == 2 })
	}
	return first, second, line
}

// TestSocketsThatEndUnheard: a tracker takes the home of its sockets' peers for dead, and does not tell it when they end.
func TestSocketsThatEndUnheard(t *testing.T) {
	home, other, line := unheard(t)
	hash := hashAt(home, home.ID(), "one")
	key := id20(hash)
	a := other.client()
	a.enter(hash, "a")
	line.set(beats)
	eventually(t, "the home is taken for dead", func() bool { return other.roster.live() == 1 })
	_ = a.ws.Close()
	eventually(t, "the socket has ended", func() bool { return len(other.torrentSnapshot()) == 0 })
	if n := home.Tracker.torrents.scrape(&key).Incomplete; n != 1 {
		t.Fatalf("the home has heard of the end: %d peers", n)
	}
	line.set(nil)
	eventually(t, "the peer is gone", func() bool { return home.Tracker.torrents.scrape(&key).Incomplete == 0 })
	home.client().enter(hash, "a") // its peer_id is free
}

// TestPeersOfWhoWasThoughtDeadAreToldAnew: a home takes the tracker of a peer for dead and forgets the peer.
func TestPeersOfWhoWasThoughtDeadAreToldAnew(t *testing.T) {
	other, home, line := unheard(t)
	hash := hashAt(home, home.ID(), "one")
	key := id20(hash)
	a := other.client()
	a.enter(hash, "a")
	line.set(beats)
	eventually(t, "the peer is forgotten", func() bool { return home.Tracker.torrents.scrape(&key).Incomplete == 0 })
	s := other.torrentSnapshot()[0]
	s.mu.Lock()
	s.peers[0].away.told = s.peers[0].away.told.Add(time.Hour) // it is not told in passing
	s.mu.Unlock()
	line.set(nil)
	eventually(t, "the peer is back", func() bool { return home.Tracker.torrents.scrape(&key).Incomplete == 1 })
	meets(t, home.client(), a, hash, "b", "a", "offer")
}
