package webtorrent

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/tracker"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// What one subnet may say at once to a socket (spec/webtorrent.md), and in a second.
const (
	floodAtOnce = 320 << 10
	floodRate   = 24 << 10
)

// usual are the bounds of an operator that set none.
func usual(c *tracker.Config, room *Config) {
	calm(c, room)
	c.MessagesPerSecond = 50
}

// announces waits for the ack; offers of others come in between.
func (c *testClient) announces(r wire.Request) {
	c.t.Helper()
	c.send(r)
	for c.any().Kind != wire.Ack {
	}
}

// floods announces a peer again and again, each time with one long offer, and returns how long that is for its receiver.
func (c *testClient) floods(hash, peer string, times int) (size int) {
	c.t.Helper()
	r := announceOf(hash, peer, "flood")
	r.Offers[0].SDP = sdpOf(strings.Repeat("x", 12_000))
	for range times {
		c.announces(r)
	}
	return len(wire.AppendReply(nil, &wire.Reply{Kind: wire.Offered, InfoHash: r.InfoHash, PeerID: r.PeerID, OfferID: r.Offers[0].ID, SDP: r.Offers[0].SDP}))
}

// until counts the offers that come before that of a peer.
func (c *testClient) until(peer string) (before int) {
	c.t.Helper()
	for c.next(wire.Offered).PeerID != id20(peer) {
		before++
	}
	return before
}

// TestAFloodOfOffersAtOneSocketIsBounded: sockets of one subnet offer to one peer without end. It hears so much of them, and a peer of
// another subnet gets through.
func TestAFloodOfOffersAtOneSocketIsBounded(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(usual)
	victim, hostile, honest := n.client(), n.clientFrom("127.0.2.1"), n.clientFrom("127.0.3.1")
	victim.enter("film", "victim")
	began := w.clock.Now()
	size := hostile.floods("film", "hostile", 80)
	honest.announces(announceOf("film", "honest", "hello", "again"))
	got := victim.until("honest")
	w.bounded(got, size, began)
	n.counted("busy")
	w.clock.Move(time.Second)
	hostile.floods("film", "hostile", 20)
	honest.announces(announceOf("film", "honest", "once", "more"))
	w.bounded(got+victim.until("honest"), size, began)
}

// bounded says that a socket was sent as many offers of one subnet as the allowance has for the time since then, and no more.
func (w *world) bounded(offers, size int, since time.Time) {
	w.t.Helper()
	most := floodAtOnce + int(w.clock.Now().Sub(since).Seconds()*floodRate)
	if got := offers * size; got > most || got < floodAtOnce-2*size {
		w.t.Errorf("%d offers of one subnet, %d bytes, reached a socket, which are at most %d", offers, got, most)
	}
}

// TestAFloodOfOffersFromAnotherTrackerIsBounded: the receiver's tracker is the one that counts, wherever the swarm is at home.
func TestAFloodOfOffersFromAnotherTrackerIsBounded(t *testing.T) {
	w := newWorld(t)
	var n []*node
	for range 3 {
		n = append(n, w.tracker(usual))
	}
	for _, one := range n {
		testkit.Eventually(t, "trackers hear each other", func() bool { return one.Live() == len(n) })
	}
	victim, began := n[0].client(), w.clock.Now()
	total, size := 0, 0
	for _, home := range n {
		hash := hashAt(n[0], home.ID(), "film")
		victim.enter(hash, "victim")
		size = n[1].clientFrom("127.0.2.1").floods(hash, "hostile", 60)
		n[2].clientFrom("127.0.3.1").enter(hash, "honest", "hello", "again")
		total += victim.until("honest")
	}
	w.bounded(total, size, began)
}
