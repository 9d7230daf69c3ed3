package webtorrent

import (
	"fmt"
	"maps"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// nodes starts trackers that know each other.
func nodes(t *testing.T, w *world, n int) (all []*node) {
	t.Helper()
	for range n {
		all = append(all, w.tracker(calm))
	}
	for _, n := range all {
		testkit.Eventually(t, "trackers hear each other", func() bool { return n.Live() == len(all) })
	}
	return all
}

// hashAt names a torrent that is at home at a tracker.
func hashAt(n *node, home signal.ID, kind string) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s %d", kind, i)
		hash := id20(name)
		if n.room.home(&hash) == home {
			return name
		}
	}
}

// meets says whether an offer of one client reaches the other, and its answer comes back.
func meets(t *testing.T, from, to *testClient, hash, offerer, answerer, offer string) {
	t.Helper()
	from.enter(hash, offerer, offer)
	if got := to.next(wire.Offered); got.PeerID != id20(offerer) || string(got.SDP) != string(sdpOf(offer)) {
		t.Fatalf("offered %+v", got)
	}
	to.send(answerOf(hash, answerer, offerer, offer))
	if got := from.next(wire.Answered); got.PeerID != id20(answerer) || got.OfferID != id20(offer) {
		t.Fatalf("answered %+v", got)
	}
}

// TestTorrentsSpanTrackers lets peers of two trackers meet, wherever their swarm is at home.
func TestTorrentsSpanTrackers(t *testing.T) {
	w := newWorld(t)
	n := nodes(t, w, 3)
	for i, home := range n {
		hash := hashAt(n[0], home.ID(), "one")
		a, b := n[0].client(), n[1].client()
		if ack := a.enter(hash, "a"); ack.Incomplete != 1 {
			t.Errorf("home %d: first ack %+v", i, ack)
		}
		meets(t, b, a, hash, "b", "a", fmt.Sprintf("offer %d", i))
		if ack := b.enter(hash, "b"); ack.Incomplete != 2 {
			t.Errorf("home %d: ack %+v", i, ack)
		}
		b.send(wire.Request{Kind: wire.Scrape, Own: true})
		if files := b.next(wire.Scraped).Files; len(files) != 1 || files[0].Incomplete != 2 {
			t.Errorf("home %d: scraped %+v", i, files)
		}
		thief := n[2].client()
		thief.send(announceOf(hash, "a"))
		thief.refused("peer-id-taken")
		thief.send(answerOf(hash, "a", "b", "nothing"))
		thief.refused("peer-id-taken")
		_ = a.ws.Close()
		testkit.Eventually(t, "the peer ends with its socket", func() bool { return b.enter(hash, "b").Incomplete == 1 })
		if got := n[2].client().enter(hash, "a"); got.Incomplete != 2 {
			t.Errorf("home %d: the peer_id is not free: %+v", i, got)
		}
	}
}

// TestTorrentsMoveWithTheirHome takes the home away, and brings another: peers that say nothing move on their own.
func TestTorrentsMoveWithTheirHome(t *testing.T) {
	w := newWorld(t)
	n := nodes(t, w, 3)
	hash := hashAt(n[0], n[2].ID(), "one")
	a, b := n[0].client(), n[1].client()
	a.enter(hash, "a")
	b.enter(hash, "b")
	n[2].line.Lose(func(string) bool { return true })
	testkit.Eventually(t, "the death is noticed", func() bool { return n[0].Live() == 2 && n[1].Live() == 2 })
	counted := func() int {
		f0, f1 := id20(hash), id20(hash)
		return max(n[0].room.swarms.scrape(&f0).Incomplete, n[1].room.swarms.scrape(&f1).Incomplete)
	}
	testkit.Eventually(t, "both are at the next home", func() bool { return counted() == 2 })
	meets(t, b, a, hash, "b", "a", "after")

	// A tracker that starts is home to some of what was elsewhere. The next of its kind gets what n[0] or n[1] has now.
	next := w.tracker(calm)
	testkit.Eventually(t, "the newcomer is known", func() bool { return n[0].Live() == 3 && n[1].Live() == 3 })
	moved := hashAt(n[0], next.ID(), "two")
	c, d := n[0].client(), n[1].client()
	c.enter(moved, "c")
	d.enter(moved, "d")
	_ = next.Close()
	key := id20(moved)
	testkit.Eventually(t, "both are at home among the first two", func() bool {
		return max(n[0].room.swarms.scrape(&key).Incomplete, n[1].room.swarms.scrape(&key).Incomplete) == 2
	})
	meets(t, d, c, moved, "d", "c", "again")
}

// TestTorrentsMoveToANewTracker: what was at home at the only tracker goes to the second that starts.
func TestTorrentsMoveToANewTracker(t *testing.T) {
	w := newWorld(t)
	first := w.tracker(calm)
	clients := map[string]*testClient{}
	for i := range 16 {
		hash := fmt.Sprintf("torrent %d", i)
		clients[hash] = first.client()
		clients[hash].enter(hash, "early")
	}
	second := w.tracker(calm)
	testkit.Eventually(t, "trackers hear each other", func() bool { return first.Live() == 2 && second.Live() == 2 })
	moved := 0
	for hash, early := range clients {
		key := id20(hash)
		home, other := first, second
		if first.room.home(&key) == second.ID() {
			home, other = second, first
			moved++
		}
		testkit.Eventually(t, "the peer is at home", func() bool {
			return home.room.swarms.scrape(&key).Incomplete == 1 && other.room.swarms.scrape(&key).Incomplete == 0
		})
		meets(t, second.client(), early, hash, "late", "early", "offer")
	}
	if moved == 0 {
		t.Error("no torrent of sixteen moved")
	}
}

// TestRemotePeersEndWithTheirSocket: a home keeps nothing of a socket that has ended, whatever its peers said before.
func TestRemotePeersEndWithTheirSocket(t *testing.T) {
	w := newWorld(t)
	n := nodes(t, w, 2)
	hash := hashAt(n[0], n[1].ID(), "one")
	a := n[0].client()
	a.enter(hash, "a")
	stop := announceOf(hash, "a")
	stop.Event = wire.Stopped
	a.send(stop)
	a.next(wire.Ack)
	peers := func() int {
		n[1].room.remotePeers.mu.Lock()
		defer n[1].room.remotePeers.mu.Unlock()
		return len(n[1].room.remotePeers.remote)
	}
	if peers() != 1 {
		t.Errorf("%d remote peers while the socket is open", peers())
	}
	_ = a.ws.Close()
	testkit.Eventually(t, "no remote peer", func() bool { return peers() == 0 })
}

// TestARemotePeerThatLeavesMakesRoom: a socket that goes from one swarm to the next is in one of them, at the home of all of them as well.
func TestARemotePeerThatLeavesMakesRoom(t *testing.T) {
	w := newWorld(t)
	few := func(c *tracker.Config, room *Config) {
		calm(c, room)
		room.MaxSwarms = 2
	}
	n, home := w.tracker(few), w.tracker(few)
	testkit.Eventually(t, "trackers hear each other", func() bool { return n.Live() == 2 && home.Live() == 2 })
	a := n.client()
	for i := range 6 {
		hash := hashAt(n, home.ID(), fmt.Sprintf("film %d,", i%3))
		if ack := a.enter(hash, "a"); ack.Incomplete != 1 {
			t.Errorf("swarm %d: %+v", i, ack)
		}
		stop := announceOf(hash, "a")
		stop.Event = wire.Stopped
		a.send(stop)
		a.next(wire.Ack)
	}
}

// TestSilentRemotePeersAreDropped: a remote peer that announces nothing for three intervals has left, though its socket and its tracker live.
func TestSilentRemotePeersAreDropped(t *testing.T) {
	w := newWorld(t)
	n := nodes(t, w, 2)
	hash := hashAt(n[0], n[1].ID(), "one")
	a := n[0].client()
	a.enter(hash, "a")
	key := id20(hash)
	s := n[0].room.sockets.snapshot()[0]
	s.peers.mu.Lock()
	s.peers.list[0].away.said = s.peers.list[0].away.said.Add(-3 * n[0].room.cfg.Interval)
	s.peers.mu.Unlock()
	testkit.Eventually(t, "the peer gone", func() bool { return n[1].room.swarms.scrape(&key).Incomplete == 0 })
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	if len(s.peers.list) != 0 {
		t.Errorf("%d peers that could be told of again", len(s.peers.list))
	}
}

// TestScrapesGoToTheHomes: counts are right at every tracker, for sockets outside the swarms, too.
func TestScrapesGoToTheHomes(t *testing.T) {
	w := newWorld(t)
	n := nodes(t, w, 3)
	var names []string
	for _, home := range n {
		names = append(names, hashAt(n[0], home.ID(), "one"))
		n[0].client().enter(names[len(names)-1], "a")
	}
	names = append(names, names[0], hashAt(n[0], n[2].ID(), "nobody's"))
	request := wire.Request{Kind: wire.Scrape}
	for _, name := range names {
		request.Hashes = append(request.Hashes, id20(name))
	}
	c := n[1].client()
	c.send(request)
	got := map[wire.ID]int{}
	for range n {
		for _, f := range c.next(wire.Scraped).Files {
			got[f.InfoHash] = f.Incomplete
		}
	}
	want := map[wire.ID]int{id20(names[0]): 1, id20(names[1]): 1, id20(names[2]): 1, id20(names[4]): 0}
	if !maps.Equal(got, want) {
		t.Errorf("scraped %v", got)
	}
}
