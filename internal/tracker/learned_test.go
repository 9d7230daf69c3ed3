package tracker

import (
	"fmt"
	"testing"
	"time"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// street is a tracker that tells a session of eight viewers an hour, with many viewers in a swarm and a seed.
func street(t *testing.T, viewers int) (w *world, n *node, seed signal.ID, all []*viewer) {
	t.Helper()
	w = newWorld(t)
	n = w.tracker(func(c *Config) { c.PeersPerHour = 8 })
	seed, told := w.seed()
	heard := make(chan struct{})
	t.Cleanup(func() { close(heard) })
	go func() {
		for {
			select {
			case <-told:
			case <-heard:
				return
			}
		}
	}()
	testkit.Eventually(t, "the seed is known", func() bool { return n.roster.serves(seed) })
	for i := range viewers {
		v := n.viewerFrom(fmt.Sprintf("198.51.%d.1", i), "")
		v.send(&signal.Join{Request: 7, Title: testTitle, Manifest: testManifest, Role: "full", Want: 0})
		expect[*signal.Joined](v)
		all = append(all, v)
	}
	n.home.mu.Lock()
	defer n.home.mu.Unlock()
	for m := range n.home.swarms[n.swarmID("demo", testTitle)].Members() {
		m.Want = 32 // without having asked for a peer
	}
	return w, n, seed, all
}

// meetsAll notes the viewers that one is introduced to until now, and says whether the seed is among them.
func (v *viewer) meetsAll(seed signal.ID, viewers map[signal.ID]bool) (metSeed bool) {
	v.t.Helper()
	v.send(&signal.Leave{Request: 6, Swarm: newID()}) // its answer comes after all introductions
	for {
		switch m := v.next().(type) {
		case *signal.Introduce:
			for _, p := range m.Peers {
				if p.Peer == seed {
					metSeed = true
				} else {
					viewers[p.Peer] = true
				}
			}
		case *signal.Error:
			return metSeed
		}
	}
}

// TestAnIdentityLearnsSoManyAddressesInAnHour: sessions of one address that join, leave and come again, to list a title's viewers,
// get to know no more of its viewers than an address may; they meet its seed like any other session.
func TestAnIdentityLearnsSoManyAddressesInAnHour(t *testing.T) {
	w, n, seed, _ := street(t, 100)
	met := 0
	for range 30 {
		v, seen := n.viewerFrom("203.0.113.7", ""), map[signal.ID]bool{}
		for range 2 { // leaving and joining again asks anew
			v.join()
			if !v.meetsAll(seed, seen) {
				t.Error("a viewer does not meet the seed")
			}
			v.send(&signal.Leave{Swarm: n.swarmID("demo", testTitle)})
		}
		met += len(seen)
		_ = v.ws.Close()
	}
	const atOnce = 16 * 8 / 2 // of an address
	if met < atOnce || met > atOnce+2 || w.metrics.Value(defLearned) != float64(met) {
		t.Errorf("one address has learnt of %d viewers, %v are counted", met, w.metrics.Value(defLearned))
	}
	if w.metrics.Value(defUnlearned, learnerAddress) == 0 || w.metrics.Value(defUnlearned, learnerSession) == 0 {
		t.Error("nothing of it is counted")
	}
	// Another address is not concerned.
	v := n.viewerFrom("203.0.113.8", "")
	v.join()
	seen := map[signal.ID]bool{}
	if v.meetsAll(seed, seen); len(seen) != 8/2 {
		t.Errorf("a viewer elsewhere meets %d", len(seen))
	}
}

// TestWhatKnowsEnoughTakesNoPlace: a session that may learn of no more viewers asks its home for some all the same. The home takes no
// place of other viewers for it, and does not introduce it to them.
func TestWhatKnowsEnoughTakesNoPlace(t *testing.T) {
	w, n, seed, _ := street(t, 20)
	v, seen := n.viewerFrom("203.0.113.7", ""), map[signal.ID]bool{}
	v.join()
	v.meetsAll(seed, seen)
	swarm := n.swarmID("demo", testTitle)
	places := func() (all, own int) {
		n.home.mu.Lock()
		defer n.home.mu.Unlock()
		for m := range n.home.swarms[swarm].Members() {
			if m.ID == v.id {
				own = m.Want
			} else {
				all += m.Want
			}
		}
		return all, own
	}
	before, _ := places()
	refused := w.metrics.Value(defUnlearned, learnerSession)
	v.send(&signal.Update{Swarm: swarm, Want: 8})
	v.meetsAll(seed, seen)
	if after, own := places(); len(seen) != 4 || after != before || own != 0 {
		t.Errorf("it knows %d viewers; places of others %d, before %d; it has %d of its own", len(seen), after, before, own)
	}
	if got := w.metrics.Value(defUnlearned, learnerSession) - refused; got != 8 {
		t.Errorf("%v viewers are counted that it did not get to know", got)
	}
}

// TestAnIdentityThatKnowsEnoughIsOfferedNothing: an offer shows an address, too.
func TestAnIdentityThatKnowsEnoughIsOfferedNothing(t *testing.T) {
	w, n, _, all := street(t, 8)
	collector, swarm := all[0], n.swarmID("demo", testTitle)
	refused := 0
	for i, v := range all[1:] {
		// The tracker introduced the two; the offer is what shows an address.
		n.sessions.session(v.id).peers.meet(bus.Target{Peer: collector.id, Role: "viewer", Tracker: n.ID()})
		v.send(&signal.Signal{Swarm: swarm, To: collector.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
		if i < 4 {
			if m := expect[*signal.Signal](collector); m.From != v.id || m.Kind != "offer" {
				t.Errorf("%+v", m)
			}
			continue
		}
		if m := expect[*signal.Signal](v); m.Kind != "fail" || m.Reason != "busy" {
			t.Errorf("%+v", m)
		}
		refused++
	}
	if got := w.metrics.Value(defUnlearned, learnerSession); got != float64(refused) || refused == 0 {
		t.Errorf("%v of %d are counted", got, refused)
	}
	w.clock.Move(15 * time.Minute) // an hour brings as many again as there are at once
	v := all[len(all)-1]
	v.send(&signal.Signal{Swarm: swarm, To: collector.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	if m := expect[*signal.Signal](collector); m.From != v.id {
		t.Errorf("%+v", m)
	}
}

// TestInAnyHourTheShareHolds: a session that asks without end gets a session's share in no hour twice.
func TestInAnyHourTheShareHolds(t *testing.T) {
	l, now := &learned{perHour: 600, most: 100, of: map[learner]budget{}}, time.Unix(1_790_000_000, 0)
	greedy, taken := []learner{{scope: learnerSession}}, make([]int, 5*60)
	for minute := range taken {
		for l.take(greedy, now) == "" {
			taken[minute]++
		}
		sum := 0
		for _, n := range taken[max(0, minute-59) : minute+1] {
			sum += n
		}
		if sum > 600 || minute >= 60 && sum < 299 {
			t.Fatalf("%d in the hour before minute %d", sum, minute)
		}
		now = now.Add(time.Minute)
	}
}

// TestHonestViewersLearnFarLess: of the default share an honest viewer of an evening takes little: six titles an hour, each with
// sixteen links of which one ends every minute.
func TestHonestViewersLearnFarLess(t *testing.T) {
	cfg := Config{Secret: make([]byte, 32), Sites: oneSite(t, configured.Config{})}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	l, now := newLearned(cfg), time.Unix(1_790_000_000, 0)
	viewer := []learner{{scope: learnerSession, id: newID()}}
	for minute := range 4 * 60 {
		news := 1
		if minute%10 == 0 {
			news = 16
		}
		for range news {
			if full := l.take(viewer, now); full != "" {
				t.Fatalf("minute %d: refused", minute)
			}
		}
		now = now.Add(time.Minute)
	}
	if _, b := l.budget(viewer[0], now); b.left < l.capacity(viewer[0])*4/5 {
		t.Errorf("%v of %v are left", b.left, l.capacity(viewer[0]))
	}
	l.forget(now.Add(time.Hour))
	if len(l.of) != 0 {
		t.Errorf("%d learners are remembered", len(l.of))
	}
}

// TestLearnersAreBounded: strangers cannot have a tracker remember more of them than it has room for.
func TestLearnersAreBounded(t *testing.T) {
	l, now := &learned{perHour: 600, most: 100, of: map[learner]budget{}}, time.Unix(1_790_000_000, 0)
	for range 1000 {
		l.take([]learner{{scope: learnerSession, id: newID()}, {scope: learnerSubject, id: newID()}}, now)
	}
	if n := len(l.of); n > 100+len(learnerScopes()) {
		t.Errorf("%d are remembered", n)
	}
}

// TestOneThatComesAndGoesLeavesOthersTheirPlaces: a stranger that joins and leaves forty times has learnt of three viewers, which costs it little.
// They want as many peers as before, and a newcomer meets them.
func TestOneThatComesAndGoesLeavesOthersTheirPlaces(t *testing.T) {
	_, n, seed, all := street(t, 3)
	stranger := n.viewerFrom("203.0.113.1", "")
	for range 40 { // each wants 32
		stranger.send(&signal.Leave{Swarm: stranger.join().Swarm})
	}
	stranger.meetsAll(seed, map[signal.ID]bool{}) // it has left then
	newcomer := n.viewerFrom("192.0.2.1", "")
	newcomer.join()
	met := map[signal.ID]bool{}
	if newcomer.meetsAll(seed, met); len(met) != len(all) {
		t.Errorf("a newcomer met %d viewers of %d", len(met), len(all))
	}
}
