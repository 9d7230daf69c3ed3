package webtorrent

import (
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/tracker"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

func TestTorrentPeersFindEachOther(t *testing.T) {
	n := newWorld(t).tracker(nil)
	a, b := n.client(), n.client()
	if ack := a.enter("film", "a", "o1", "o2"); ack.Complete != 0 || ack.Incomplete != 1 || ack.Interval != 120 || ack.InfoHash != id20("film") {
		t.Errorf("ack %+v", ack)
	}
	if ack := b.enter("film", "b", "o3"); ack.Incomplete != 2 {
		t.Errorf("ack %+v", ack)
	}
	offer := a.next(wire.Offered)
	if offer.InfoHash != id20("film") || offer.PeerID != id20("b") || offer.OfferID != id20("o3") || string(offer.SDP) != string(sdpOf("o3")) {
		t.Errorf("offer %+v", offer)
	}
	a.send(answerOf("film", "a", "b", "o3"))
	answer := b.next(wire.Answered)
	if answer.InfoHash != id20("film") || answer.PeerID != id20("a") || answer.OfferID != id20("o3") || string(answer.SDP) != string(sdpOf("answer")) {
		t.Errorf("answer %+v", answer)
	}
	a.nothing() // no ack to an answer
	a.send(answerOf("film", "a", "b", "o3"))
	a.refused("not-introduced") // once
	n.counted("not-introduced")
}

func TestOnePeerSpeaksForItselfAlone(t *testing.T) {
	n := newWorld(t).tracker(nil)
	a, b, thief := n.client(), n.client(), n.client()
	a.enter("film", "a")
	b.enter("film", "b", "o1")
	a.next(wire.Offered)
	stop := announceOf("film", "a")
	stop.Event = wire.Stopped
	for _, claim := range []wire.Request{announceOf("film", "a", "o2"), stop, answerOf("film", "a", "b", "o1")} {
		thief.send(claim)
		r := thief.refused("peer-id-taken")
		if again := claim.Kind == wire.Announce && claim.Event != wire.Stopped; r.InfoHash != id20("film") || again != (r.Interval == claimAgain) {
			t.Errorf("failure about %x, again after %d s", r.InfoHash, r.Interval)
		}
	}
	n.counted("peer-id-taken")
	thief.send(answerOf("film", "nobody", "b", "o1"))
	thief.refused("not-introduced")
	thief.enter("film", "thief")
	thief.send(answerOf("film", "thief", "b", "o1")) // an offer that another one got
	thief.refused("not-introduced")
	a.send(answerOf("film", "a", "thief", "o1")) // to another than the offerer
	a.refused("not-introduced")
	a.send(answerOf("film", "a", "b", "o1"))
	if r := b.next(wire.Answered); r.PeerID != id20("a") {
		t.Errorf("answer %+v", r)
	}
	// The same name in another swarm is another peer.
	thief.enter("news", "a")
	a.nothing()
}

func TestPeersEndWithTheirSocket(t *testing.T) {
	n := newWorld(t).tracker(nil)
	a, b := n.client(), n.client()
	for i := range 5 {
		a.enter(fmt.Sprint("film", i), fmt.Sprint("a", i))
	}
	a.enter("film0", "second") // two peers of one socket in one swarm are not offered to each other
	a.enter("film0", "a0", "o1")
	a.nothing()
	b.enter("film0", "b", "o2", "o3", "o4")
	a.next(wire.Offered)
	a.next(wire.Offered)
	a.send(announceOf("film0", "a0", "o5"))
	a.next(wire.Ack)
	b.next(wire.Offered)
	_ = a.ws.Close()
	testkit.Eventually(t, "its peers gone", func() bool { return n.room.swarms.peers.Load() == 1 && n.room.swarms.swarms.Load() == 1 })
	b.send(answerOf("film0", "b", "a0", "o5")) // dropped, and no peer to blame
	b.nothing()
	n.counted("gone")
	c := n.client() // the name is free again
	if ack := c.enter("film0", "a0"); ack.Incomplete != 2 {
		t.Errorf("ack %+v", ack)
	}
}

func TestOffersPassOverTheFullAndTheComplete(t *testing.T) {
	n := newWorld(t).tracker(nil)
	full, complete, other := n.client(), n.client(), n.client()
	full.enter("film", "full")
	r := announceOf("film", "full")
	r.Event, r.Full = wire.Periodic, true
	full.send(r)
	full.next(wire.Ack)
	r = announceOf("film", "complete", "o1")
	r.Event = wire.Completed
	complete.send(r)
	if ack := complete.next(wire.Ack); ack.Complete != 1 || ack.Incomplete != 1 {
		t.Errorf("ack %+v", ack)
	}
	r = announceOf("film", "other", "o2", "o3")
	r.Complete = true
	other.send(r)
	if ack := other.next(wire.Ack); ack.Complete != 2 {
		t.Errorf("ack %+v", ack)
	}
	full.nothing()
	complete.nothing()
	r.Complete = false // not said again
	other.send(r)
	if ack := other.next(wire.Ack); ack.Complete != 2 {
		t.Errorf("ack %+v", ack)
	}
	complete.nothing()
	r.Partial = true // it lost something
	other.send(r)
	if ack := other.next(wire.Ack); ack.Complete != 1 || ack.Incomplete != 2 {
		t.Errorf("ack %+v", ack)
	}
	complete.next(wire.Offered)
	full.nothing()
	other.send(wire.Request{Kind: wire.Scrape, Hashes: []wire.ID{id20("film"), id20("news"), id20("film")}})
	s := other.next(wire.Scraped)
	if len(s.Files) != 2 || s.Files[0] != (wire.File{InfoHash: id20("film"), Complete: 1, Incomplete: 2, Downloaded: 1}) ||
		s.Files[1] != (wire.File{InfoHash: id20("news")}) {
		t.Errorf("scrape %+v", s.Files)
	}
	r.Event = wire.Stopped
	other.send(r)
	if ack := other.next(wire.Ack); ack.Complete != 1 || ack.Incomplete != 1 {
		t.Errorf("ack of stopped %+v", ack)
	}
}

func TestAPeerThatStoppedIsGone(t *testing.T) {
	n := newWorld(t).tracker(nil)
	a, b, c := n.client(), n.client(), n.client()
	a.enter("film", "a")
	b.enter("film", "b", "o1")
	a.next(wire.Offered)
	stop := announceOf("film", "b")
	stop.Event = wire.Stopped
	b.send(stop)
	if ack := b.next(wire.Ack); ack.Incomplete != 1 {
		t.Errorf("ack of stopped %+v", ack)
	}
	a.send(answerOf("film", "a", "b", "o1")) // its offer went out before
	a.nothing()
	c.enter("film", "c", "o2", "o3")
	a.next(wire.Offered)
	b.nothing()
	b.send(answerOf("film", "b", "c", "o3"))
	b.refused("not-introduced")
	n.counted("gone")
	// Its socket lives on, and may announce it anew.
	if ack := b.enter("film", "b", "o4"); ack.Incomplete != 3 {
		t.Errorf("ack %+v", ack)
	}
}

func TestCompletedCountsOnce(t *testing.T) {
	n := newWorld(t).tracker(nil)
	a := n.client()
	r := announceOf("film", "a")
	for _, event := range []wire.Event{wire.Started, wire.Completed, wire.Completed, wire.Periodic} {
		r.Event = event
		a.send(r)
		a.next(wire.Ack)
	}
	a.send(wire.Request{Kind: wire.Scrape, Own: true})
	if s := a.next(wire.Scraped); len(s.Files) != 1 || s.Files[0] != (wire.File{InfoHash: id20("film"), Complete: 1, Downloaded: 1}) {
		t.Errorf("scrape %+v", s.Files)
	}
}

func TestTheLatestOffersAreHeld(t *testing.T) {
	n := newWorld(t).tracker(nil)
	a, b := n.client(), n.client()
	a.enter("film", "a")
	for i := range maxHeld + 1 {
		b.enter("film", "b", fmt.Sprint("o", i))
		a.next(wire.Offered)
	}
	a.send(answerOf("film", "a", "b", "o0"))
	a.refused("not-introduced")
	for i := 1; i <= maxHeld; i++ {
		a.send(answerOf("film", "a", "b", fmt.Sprint("o", i)))
		b.next(wire.Answered)
	}
}

func TestTorrentsAreOffUnlessAskedFor(t *testing.T) {
	w := newWorld(t)
	off := w.tracker(func(_ *tracker.Config, c *Config) { c.Token = "" })
	if off.room.On() || off.room.AllowsToken("") {
		t.Error("the protocol is offered by a tracker that was not told to")
	}
	n := w.tracker(func(_ *tracker.Config, c *Config) { c.InfoHashes = []wire.ID{id20("film")} })
	if !n.room.On() || !n.room.AllowsToken(testToken) || n.room.AllowsToken("") || n.room.AllowsToken(testToken+"x") {
		t.Error("the token is not what decides")
	}
	listed := w.tracker(func(_ *tracker.Config, c *Config) { c.InfoHashes, c.Token = []wire.ID{id20("film")}, "" })
	if !listed.room.AllowsToken("") {
		t.Error("a token is asked for that was never set")
	}
	c := n.client()
	c.send(announceOf("news", "a"))
	if r := c.refused("not-allowed"); r.InfoHash != id20("news") {
		t.Errorf("failure %+v", r)
	}
	c.enter("film", "a")
	c.send(wire.Request{Kind: wire.Scrape, Hashes: []wire.ID{id20("news"), id20("film")}})
	if s := c.next(wire.Scraped); len(s.Files) != 1 {
		t.Errorf("scrape %+v", s.Files)
	}
}

// TestNamespaces has the one protocol's messages on the other's socket.
func TestNamespaces(t *testing.T) {
	n := newWorld(t).tracker(nil)
	c := n.client()
	c.enter("film", "a", "o1")
	c.text(`{"type":"hello","version":1,"site":"demo"}`)
	c.refused("bad-message")
	if n.world.value("leeway_tracker_sessions", "demo") != 0 || n.world.value("leeway_tracker_swarms") != 0 {
		t.Error("a WebTorrent client is a session of the native protocol")
	}
}
