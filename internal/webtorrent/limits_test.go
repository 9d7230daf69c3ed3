package webtorrent

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/tracker"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

func TestTorrentLimits(t *testing.T) {
	n := newWorld(t).tracker(func(c *tracker.Config, room *Config) {
		room.MaxSwarms, c.MaxMembers = 2, 2
	})
	a, b, c := n.client(), n.client(), n.client()
	a.enter("one", "a")
	a.enter("two", "a")
	a.send(announceOf("three", "a"))
	a.refused("too-many-swarms")
	stop := announceOf("one", "a")
	stop.Event = wire.Stopped
	a.send(stop)
	a.next(wire.Ack)
	a.enter("three", "a") // there is room again
	b.enter("two", "b")
	c.send(announceOf("two", "c"))
	c.refused("swarm-full")
	c.send(stop) // of a peer that never was
	if ack := c.next(wire.Ack); ack.Incomplete != 0 {
		t.Errorf("ack %+v", ack)
	}
	for range maxBad {
		b.text(`{"action":"announce","info_hash":7}`)
	}
	if r := b.refused("bad-message"); r.InfoHash != (wire.ID{}) {
		t.Errorf("failure %+v", r)
	}
	if code := b.closed(); code != closePolicy {
		t.Errorf("close code %d", code)
	}
	a.text(strings.Repeat("x", wire.MaxMessage+1))
	a.closed()
	testkit.Eventually(t, "oversized counted", func() bool { return n.world.value("leeway_tracker_rejected_total", "oversized") == 1 })
	for _, code := range []string{"too-many-swarms", "swarm-full", "bad-message"} {
		n.counted(code)
	}
	n.counted("bad-message")
	testkit.Eventually(t, "messages counted", func() bool { return n.world.metrics.Value(defMessages, "announce") >= 8 })
}

func TestTorrentFloodsEnd(t *testing.T) {
	n := newWorld(t).tracker(func(c *tracker.Config, _ *Config) { c.MessagesPerSecond = 1 })
	a := n.client()
	for range maxRateOver + 10 {
		_ = a.ws.WriteMessage(websocket.TextMessage, wire.AppendRequest(nil, &wire.Request{Kind: wire.Scrape, Own: true}))
	}
	if code := a.closed(); code != closePolicy {
		t.Errorf("close code %d", code)
	}
	n.counted("rate-limited")
}

func TestSilentTorrentPeersAreDropped(t *testing.T) {
	n := newWorld(t).tracker(nil)
	a, b := n.client(), n.client()
	a.enter("film", "a")
	b.enter("film", "b")
	n.world.clock.Move(5 * time.Minute)
	b.enter("film", "b")
	n.world.clock.Move(2 * time.Minute)
	testkit.Eventually(t, "the silent one gone", func() bool { return n.room.swarms.peers.Load() == 1 })
	if ack := a.enter("film", "a"); ack.Incomplete != 2 {
		t.Errorf("ack %+v", ack)
	}
}

func TestTorrentSocketsDrain(t *testing.T) {
	w := newWorld(t)
	silent := w.tracker(func(c *tracker.Config, _ *Config) { c.HelloTimeout = time.Millisecond }).client()
	if code := silent.closed(); code != closePolicy {
		t.Errorf("a socket that announces nothing was closed with %d", code)
	}
	n := w.tracker(nil)
	a := n.client()
	a.enter("film", "a")
	n.Drain()
	if code := a.closed(); code != closeDraining {
		t.Errorf("close code %d", code)
	}
	late := n.client()
	if code := late.closed(); code != closeDraining {
		t.Errorf("close code %d of a late socket", code)
	}
	testkit.Eventually(t, "no socket there", func() bool { return n.room.swarms.swarms.Load() == 0 })
}
