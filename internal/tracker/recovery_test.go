package tracker

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestAllRecoversWhenTheBusIsBack takes the bus away from two trackers for longer than a tracker is thought to live, and brings
// it back: no socket ends, each tracker introduces its own viewers meanwhile, and all viewers afterwards. Every membership is
// told to another home at most twice: where it went, and back.
func TestAllRecoversWhenTheBusIsBack(t *testing.T) {
	const viewers = 8 // at each
	w := newWorld(t)
	server, err := natsbus.Open(natsbus.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	url := server.URL()
	nodes, buses := apart(t, w, url)
	know(t, nodes...)
	var all []*viewer
	for i := range 2 * viewers {
		v := nodes[i%2].viewer("")
		v.join()
		all = append(all, v)
	}
	swarm := nodes[0].swarmID("demo", testTitle)
	together := func() bool {
		home := nodes[0].roster.homeOf(swarm)
		for _, n := range nodes {
			if n.roster.homeOf(swarm) != home || n.ID() == home && n.members(swarm) != 2*viewers {
				return false
			}
		}
		return true
	}
	testkit.Eventually(t, "all are in one place", together)

	_ = server.Close()
	for i, n := range nodes {
		testkit.Eventually(t, "each has its own and believes to be alone", func() bool {
			return !buses[i].Connected() && n.roster.live() == 1 && n.members(swarm) >= viewers
		})
		n.introducesItsOwn(viewers)
	}
	moved := w.metrics.Value(defMoves, "home") + w.metrics.Value(defMoves, "unknown")

	if server, err = natsbus.Open(natsbus.Config{Listen: url[len("nats://"):]}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	began := time.Now()
	testkit.Eventually(t, "they hear each other again", func() bool { return nodes[0].roster.live() == 2 && nodes[1].roster.live() == 2 })
	testkit.Eventually(t, "all are in one place again", together)
	t.Logf("together again %s after the bus", time.Since(began))
	if n := w.metrics.Value(defMoves, "home") + w.metrics.Value(defMoves, "unknown") - moved; n > 2*2*viewers {
		t.Errorf("%v registrations for %d members", n, 2*viewers)
	}
	for _, v := range all {
		v.send(&signal.Update{Request: 3, Swarm: swarm, Want: 1})
		v.send(&signal.Update{Request: 4, Swarm: newID(), Want: 1}) // refused, which shows that the socket lives
		if e := expect[*signal.Error](v); e.Request != 4 {
			t.Errorf("a session is not what it was: %+v", e)
		}
	}
	a, b := nodes[0].viewer(""), nodes[1].viewer("")
	a.join()
	if j := b.join(); j.Viewers != 2*viewers+2 {
		t.Errorf("joined afterwards as %+v", j)
	}
}

// apart starts two trackers with a connection to the bus each.
func apart(t *testing.T, w *world, url string) (nodes []*node, buses []*natsbus.Bus) {
	t.Helper()
	for range 2 {
		client, err := natsbus.Open(natsbus.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		w.through = client
		nodes, buses = append(nodes, w.tracker(calm)), append(buses, client)
	}
	return nodes, buses
}

// introducesItsOwn has a viewer come and go, which meets those that are there.
func (n *node) introducesItsOwn(viewers int) {
	t := n.world.t
	t.Helper()
	late := n.viewer("")
	if j := late.join(); j.Viewers < viewers+1 {
		t.Errorf("joined without the bus as %+v", j)
	}
	if p := expect[*signal.Introduce](late).Peers; len(p) == 0 {
		t.Error("introduced to no peer without the bus")
	}
	_ = late.ws.Close()
	testkit.Eventually(t, "the late one is gone", func() bool { return n.sessions.session(late.id) == nil })
}
