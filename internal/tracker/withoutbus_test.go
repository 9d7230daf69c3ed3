package tracker

import (
	"testing"

	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestTrackerWithoutItsBusIntroducesItsOwnViewers: what docs/architecture.md promises of a lost NATS.
func TestTrackerWithoutItsBusIntroducesItsOwnViewers(t *testing.T) {
	server, err := natsbus.Open(natsbus.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	w := newWorld(t)
	client, err := natsbus.Open(natsbus.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	w.through = client
	n := w.tracker(nil)
	// Another tracker is home to most swarms, and is not heard of any more.
	know(t, n, w.tracker(nil))
	early := n.viewer("")
	swarm := early.join().Swarm
	_ = server.Close()
	testkit.Eventually(t, "the bus is down", func() bool { return !client.Connected() })
	testkit.Eventually(t, "the first viewer is at home here", func() bool { return n.members(swarm) == 1 })
	late := n.viewer("")
	if j := late.join(); j.Swarm != swarm || j.Viewers != 2 {
		t.Errorf("joined as %+v", j)
	}
	if peers := expect[*signal.Introduce](late).Peers; len(peers) != 1 || peers[0].Peer != early.id {
		t.Fatalf("introduced to %+v", peers)
	}
	offer := &signal.Signal{Swarm: swarm, To: early.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan}
	late.send(offer)
	if s := expect[*signal.Signal](early); s.From != late.id || s.Link != offer.Link {
		t.Errorf("the offer came as %+v", s)
	}
}
