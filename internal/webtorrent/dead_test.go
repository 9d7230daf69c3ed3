package webtorrent

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/testkit/testbus"
)

// unheard are two trackers that know each other, and the line by which the first one speaks.
func unheard(t *testing.T) (first, second *node, line *testbus.Lossy) {
	t.Helper()
	w := newWorld(t)
	first = w.tracker(calm)
	second = w.tracker(calm)
	for _, n := range []*node{first, second} {
		testkit.Eventually(t, "trackers hear each other", func() bool { return n.Live() == 2 })
	}
	return first, second, first.line
}

// TestSocketsThatEndUnheard: a tracker takes the home of its sockets' peers for dead, and does not tell it when they end.
func TestSocketsThatEndUnheard(t *testing.T) {
	home, other, line := unheard(t)
	hash := hashAt(home, home.ID(), "one")
	key := id20(hash)
	a := other.client()
	a.enter(hash, "a")
	line.Lose(beats)
	testkit.Eventually(t, "the home is taken for dead", func() bool { return other.Live() == 1 })
	_ = a.ws.Close()
	testkit.Eventually(t, "the socket has ended", func() bool { return len(other.room.sockets.snapshot()) == 0 })
	if n := home.room.swarms.scrape(&key).Incomplete; n != 1 {
		t.Fatalf("the home has heard of the end: %d peers", n)
	}
	line.Lose(nil)
	testkit.Eventually(t, "the peer is gone", func() bool { return home.room.swarms.scrape(&key).Incomplete == 0 })
	home.client().enter(hash, "a") // its peer_id is free
}

// TestPeersOfAReplicaThoughtDeadAreToldAnew: a home takes the tracker of a peer for dead and forgets the peer.
func TestPeersOfAReplicaThoughtDeadAreToldAnew(t *testing.T) {
	other, home, line := unheard(t)
	hash := hashAt(home, home.ID(), "one")
	key := id20(hash)
	a := other.client()
	a.enter(hash, "a")
	line.Lose(beats)
	testkit.Eventually(t, "the peer is forgotten", func() bool { return home.room.swarms.scrape(&key).Incomplete == 0 })
	s := other.room.sockets.snapshot()[0]
	s.peers.mu.Lock()
	s.peers.list[0].away.told = s.peers.list[0].away.told.Add(time.Hour) // it is not told in passing
	s.peers.mu.Unlock()
	line.Lose(nil)
	testkit.Eventually(t, "the peer is back", func() bool { return home.room.swarms.scrape(&key).Incomplete == 1 })
	meets(t, home.client(), a, hash, "b", "a", "offer")
}
