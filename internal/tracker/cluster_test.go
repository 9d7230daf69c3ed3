package tracker

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/testkit/testbus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func deliveriesOf(subject string) bool { return strings.HasSuffix(subject, ".deliver") }

// TestLostSignalsAreSaidAgain loses the first eight deliveries, six signals and two that are said again: all arrive, in order.
func TestLostSignalsAreSaidAgain(t *testing.T) {
	w := newWorld(t)
	line := &testbus.Lossy{Bus: w.bus}
	w.through = line
	near, far := w.tracker(nil), w.tracker(nil)
	know(t, near, far)
	a, b := near.viewer(""), far.viewer("")
	a.join()
	swarm := b.join().Swarm
	expect[*signal.Introduce](b)
	n := 0
	line.Lose(func(subject string) bool {
		if deliveriesOf(subject) {
			n++
		}
		return deliveriesOf(subject) && n <= 8
	})
	link := newID()
	b.send(&signal.Signal{Swarm: swarm, To: a.id, Link: link, Kind: "offer", SDP: "v=0", Plan: testPlan})
	for i := range 5 {
		b.send(&signal.Signal{Swarm: swarm, To: a.id, Link: link, Kind: "candidate", Candidate: strings.Repeat("c", i+1), Mid: "0"})
	}
	if s := expect[*signal.Signal](a); s.Kind != "offer" {
		t.Errorf("first came %+v", s)
	}
	for i := range 5 {
		if s := expect[*signal.Signal](a); len(s.Candidate) != i+1 {
			t.Fatalf("candidate %d came as %+v", i, s)
		}
	}
	if again, lost := w.metrics.Value(defDeliveries, "again"), w.metrics.Value(defDeliveries, "lost"); again == 0 || lost != 0 {
		t.Errorf("%v said again, %v given up", again, lost)
	}
}

// joinsBehind has a viewer join at the home of its swarm, and another one at another tracker, which hears none of the home's first answers.
// That one meets the first viewer.
func joinsBehind(t *testing.T, change func(*Config), lost int) *signal.Joined {
	t.Helper()
	w := newWorld(t)
	line := &testbus.Lossy{Bus: w.bus}
	w.through = line
	home, other := homed(t, w, change)
	first := home.viewer("")
	first.join()
	line.Lose(func(subject string) bool {
		answers := strings.HasSuffix(subject, ".home")
		if answers {
			lost--
		}
		return answers && lost >= 0
	})
	late := other.viewer("")
	joined := late.join()
	if p := expect[*signal.Introduce](late).Peers; len(p) != 1 || p[0].Peer != first.id {
		t.Errorf("introduced to %+v", p)
	}
	return joined
}

// TestLostAnswerIsNotASecondJoin loses the home's answer to a join: asked again it says the same, introductions too.
func TestLostAnswerIsNotASecondJoin(t *testing.T) {
	if j := joinsBehind(t, nil, 1); j.Viewers != 2 {
		t.Errorf("joined as %+v", j)
	}
}

// TestAHomeThatAnswersTooLateIntroducesAnew: a home takes a viewer in and picks peers for it, and the viewer's tracker hears none of its answers in
// time, so that the viewer joins at the next home. When the first one beats again, the viewer meets the peers.
func TestAHomeThatAnswersTooLateIntroducesAnew(t *testing.T) { joinsBehind(t, calm, 2) }

// TestAHomeThatBeatsAndDoesNotAnswerIsLeftAlone: its swarms stay with the next home for longer than until its next beat, so that not every viewer
// that comes waits for it.
func TestAHomeThatBeatsAndDoesNotAnswerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	line := &testbus.Lossy{Bus: w.bus}
	w.through = line
	home, other := homed(t, w, nil)
	swarm := other.swarmID("demo", testTitle)
	line.Lose(func(subject string) bool { return strings.HasSuffix(subject, ".home") })
	beat := other.cfg.BeatEvery
	for _, least := range []time.Duration{0, 3 * beat / 2} { // less than two beats: some time has passed since the tracker gave up
		other.viewer("").join()
		began := w.clock.Now()
		testkit.Eventually(t, "it is home again", func() bool { return other.roster.homeOf(swarm) == home.ID() })
		if took := w.clock.Now().Sub(began); took < least {
			t.Errorf("it is home again after %s", took)
		}
	}
}

// TestSignalsFindAPeerThatMoved: a peer that was met at one tracker lives at another now; the first is there, or is killed.
func TestSignalsFindAPeerThatMoved(t *testing.T) {
	for _, killed := range []bool{false, true} {
		w := newWorld(t)
		a, b, c := w.tracker(nil), w.tracker(nil), w.tracker(nil)
		know(t, a, b, c)
		x, y := a.viewer(""), b.viewer("")
		y.join()
		swarm := x.join().Swarm
		expect[*signal.Introduce](x)
		if killed {
			b.kill()
		}
		moved := c.viewer(y.ticket)
		moved.join()
		if killed {
			know(t, a, c)
			testkit.Eventually(t, "the swarm's home knows both", func() bool { return a.members(swarm)+c.members(swarm) == 2 })
		} else {
			testkit.Eventually(t, "the old socket's session ends", func() bool { return b.sessions.session(y.id) == nil })
		}
		x.send(&signal.Signal{Swarm: swarm, To: y.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
		if s := expect[*signal.Signal](moved); s.Kind != "offer" || s.From != x.id {
			t.Errorf("killed %v: came %+v", killed, s)
		}
	}
}

// TestDrainHandsViewersOver: one after the other, while the rest are served and the swarms are at home elsewhere.
func TestDrainHandsViewersOver(t *testing.T) {
	const viewers = 20
	w := newWorld(t)
	old, next := w.tracker(nil), w.tracker(nil)
	know(t, old, next)
	var all []*viewer
	for range viewers {
		v := old.viewer("")
		v.join()
		all = append(all, v)
	}
	swarm := old.swarmID("demo", testTitle)
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		old.Drain()
	}()
	var back sync.WaitGroup
	for _, v := range all {
		back.Go(func() {
			if r := expect[*signal.Reconnect](v); r.AfterMs != 0 {
				t.Errorf("told to stay away for %d ms", r.AfterMs)
			}
			if code := v.closed(); code != closeDraining {
				t.Errorf("closed with %d", code)
			}
			next.viewer(v.ticket).join()
		})
	}
	back.Wait()
	receive(t, done)
	if took := time.Since(began); took < viewers*drainEach/2 {
		t.Errorf("all were sent away within %s", took)
	}
	if !old.Crowded() || next.Crowded() {
		t.Error("a handshake does not go to the next tracker")
	}
	testkit.Eventually(t, "the other tracker has them all", func() bool { return next.members(swarm) == viewers && old.members(swarm) == 0 })
}

// from connects a viewer from an address of its own.
func (n *node) from(address net.IP) *viewer {
	n.world.t.Helper()
	d := websocket.Dialer{Subprotocols: []string{signal.Subprotocol}, NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: address}}).DialContext}
	ws, r, err := d.Dial(n.url, http.Header{"Origin": {testOrigin}})
	if err != nil {
		n.world.t.Fatal(err)
	}
	_ = r.Body.Close()
	v := &viewer{t: n.world.t, ws: ws}
	n.world.t.Cleanup(func() { _ = ws.Close() })
	v.send(&signal.Hello{Version: 1, Client: "test/1", Site: "demo"})
	v.id = expect[*signal.Welcome](v).Session
	return v
}

// TestLargeSwarmsAreParted fills a swarm to several times what a part takes. Viewers see one swarm.
func TestLargeSwarmsAreParted(t *testing.T) {
	const most, viewers = 8, 48
	w := newWorld(t)
	small := func(c *Config) { c.MaxMembers, c.UpdateInterval = most, 100*time.Millisecond }
	nodes := []*node{w.tracker(small), w.tracker(small)}
	know(t, nodes...)
	swarm := nodes[0].swarmID("demo", testTitle)
	var all []*viewer
	for i := range viewers {
		v := nodes[i%2].from(net.IPv4(127, 0, 1, byte(1+i/2)))
		v.send(&signal.Join{Request: 7, Title: testTitle, Manifest: testManifest, Role: "full", Want: 4})
		if m := expect[*signal.Joined](v); m.Swarm != swarm { // all at once, and none is turned away
			t.Errorf("viewers of one title are in %x and %x", m.Swarm, swarm)
		}
		all = append(all, v)
	}
	testkit.Eventually(t, "no part is too large", func() bool {
		for _, v := range all {
			v.send(&signal.Update{Swarm: swarm, Want: 4})
		}
		members, parts := 0, 0
		for _, n := range nodes {
			n.home.mu.Lock()
			for _, s := range n.home.swarms {
				parts++
				if members += s.Len(); s.Len() > 2*most {
					members = -1 << 20
				}
			}
			n.home.mu.Unlock()
		}
		return members == viewers && parts >= viewers/most/2
	})
}

// TestAViewerFromAnotherNetworkJoinsAnew: a viewer changes its network and comes back to its tracker, which still has the old socket. The home of
// its swarm takes the join of the new one for another request, and not for the old one's that comes again.
func TestAViewerFromAnotherNetworkJoinsAnew(t *testing.T) {
	w := newWorld(t)
	home, other := homed(t, w, calm)
	v := other.viewerFrom("203.0.113.7", "")
	v.join()
	before := home.member(v.id).Subnet
	moved := other.viewerFrom("198.51.100.7", v.ticket)
	moved.join()
	if after := home.member(v.id).Subnet; moved.id != v.id || after == before {
		t.Errorf("the home knows the viewer %s by the subnet %s, and the one that it comes from now is another", v.id, after)
	}
}
