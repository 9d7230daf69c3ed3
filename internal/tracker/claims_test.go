package tracker

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// says reports of single peers.
func (v *viewer) says(in signal.ID, peers map[signal.ID]signal.PeerStats) {
	v.t.Helper()
	v.send(&signal.Stats{Swarm: in, Interval: 1000, Peers: peers})
}

func (v *viewer) blames(in, peer signal.ID) {
	v.t.Helper()
	v.says(in, map[signal.ID]signal.PeerStats{peer: {Blame: 1}})
}

// reports waits until so many of the outcome have been counted.
func (w *world) reports(outcome swarm.Verdict, n float64) {
	w.t.Helper()
	testkit.Eventually(w.t, fmt.Sprintf("%v reports are %s", n, outcome), func() bool { return w.metrics.Value(defReports, string(outcome)) == n })
}

// meets says whether a newcomer from an address is introduced to a peer.
func (n *node) meets(address string, peer signal.ID) bool {
	n.world.t.Helper()
	v := n.viewerFrom(address, "")
	in := v.join().Swarm
	defer func() { _ = v.ws.Close() }()
	v.send(&signal.Update{Request: 5, Swarm: in, Want: 8})
	v.send(&signal.Leave{Request: 6, Swarm: newID()}) // its answer comes after all introductions
	for {
		switch m := v.next().(type) {
		case *signal.Introduce:
			for _, p := range m.Peers {
				if p.Peer == peer {
					return true
				}
			}
		case *signal.Error:
			return false
		}
	}
}

// TestSybilsOfOneSubnetBanNoPeer: a subnet has one vote, however many sessions it opens.
func TestSybilsOfOneSubnetBanNoPeer(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	honest := n.viewerFrom("203.0.113.7", "")
	in := honest.join().Swarm
	for i := range 8 { // as many as a newcomer is introduced to at once
		network := "198.51.100.%d" // and the same household's IPv6, of which it commands a /48
		if i%2 == 1 {
			network = "2001:db8:1:%d::1"
		}
		sybil := n.viewerFrom(fmt.Sprintf(network, i+1), "")
		sybil.join()
		expect[*signal.Introduce](sybil)
		sybil.blames(in, honest.id)
		w.reports(swarm.Repeated, float64(max(0, i-1)))
		honest.send(&signal.Update{Swarm: in, Want: 32}) // it still looks for peers
	}
	if w.metrics.Value(defBans) != 0 || !n.meets("192.0.2.99", honest.id) {
		t.Error("an honest peer meets no peer any more")
	}
}

// TestAPolluterMeetsNoPeer: a peer that several networks had to drop is introduced no more, reaches none that it had met, and
// does not get round it by loading the page anew, in IPv6 from another address of its network; and all that ends.
func TestAPolluterMeetsNoPeer(t *testing.T) {
	for network, addresses := range map[string][2]string{"IPv4": {"203.0.113.7", "203.0.113.7"}, "IPv6": {"2001:db8:7:1::7", "2001:db8:7:1:a::b"}} {
		t.Run(network, func(t *testing.T) { pollutes(t, addresses[0], addresses[1]) })
	}
}

func pollutes(t *testing.T, first, second string) {
	w := newWorld(t)
	n := w.tracker(nil)
	polluter := n.viewerFrom(first, "")
	in := polluter.join().Swarm
	var victims []*viewer
	for i := range swarm.BanVotes {
		v := n.viewerFrom(fmt.Sprintf("198.51.%d.1", i), "")
		v.join()
		expect[*signal.Introduce](v)
		v.send(&signal.Signal{Swarm: in, To: polluter.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
		expect[*signal.Signal](polluter)
		victims = append(victims, v)
	}
	for i, v := range victims {
		v.blames(in, polluter.id)
		w.reports(swarm.Counted, float64(i+1))
	}
	if w.metrics.Value(defBans) != 1 || n.meets("192.0.2.1", polluter.id) {
		t.Error("it is introduced as before")
	}
	// The peers that it met before are out of its reach.
	polluter.send(&signal.Update{Swarm: in, Want: 8})
	polluter.send(&signal.Signal{Swarm: in, To: victims[0].id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	if m := expect[*signal.Signal](polluter); m.Kind != "fail" || m.Reason != "refused" || m.From != victims[0].id {
		t.Errorf("its offer came back as %+v", m)
	}
	again := n.viewerFrom(second, "")
	again.join()
	if n.meets("192.0.2.2", again.id) {
		t.Error("another session of its network is introduced")
	}
	w.clock.Move(swarm.BanLife)
	polluter.join()
	if !n.meets("192.0.2.3", polluter.id) {
		t.Error("the ban does not end")
	}
}

// TestAPeerThatWasNeverIntroducedHasNoVote: a session knows the IDs of others only by being introduced, and a vote against any other has no effect.
func TestAPeerThatWasNeverIntroducedHasNoVote(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	honest := n.viewerFrom("203.0.113.7", "")
	in := honest.join().Swarm
	honest.send(&signal.Update{Swarm: in, Saturated: true}) // no peer is introduced to it
	testkit.Eventually(t, "it is full", func() bool { return w.metrics.Count(defHandle, "update") == 1 })
	for i := range 2 * swarm.BanVotes {
		v := n.viewerFrom(fmt.Sprintf("198.51.%d.1", i), "")
		v.join()
		v.blames(in, honest.id)
		w.reports(swarm.Stranger, float64(i+1))
	}
	if w.metrics.Value(defBans) != 0 {
		t.Error("strangers banned a peer")
	}
}

// TestVotesReachAHomeElsewhere: the session that votes and the session that is voted against may each be at any tracker.
func TestVotesReachAHomeElsewhere(t *testing.T) {
	w := newWorld(t)
	a, b := w.tracker(nil), w.tracker(nil)
	know(t, a, b)
	polluter := a.viewerFrom("203.0.113.7", "")
	in := polluter.join().Swarm
	for i := range swarm.BanVotes {
		v := []*node{a, b}[i%2].viewerFrom(fmt.Sprintf("198.51.%d.1", i), "")
		v.join()
		expect[*signal.Introduce](v)
		v.says(in, map[signal.ID]signal.PeerStats{polluter.id: {In: 1000, Blame: 1}})
		w.reports(swarm.Counted, float64(i+1))
		polluter.says(in, map[signal.ID]signal.PeerStats{v.id: {Out: 1000}}) // of a stranger to it: says nothing
	}
	if a.meets("192.0.2.1", polluter.id) || b.meets("192.0.2.2", polluter.id) {
		t.Error("a tracker introduces it")
	}
	if got := w.metrics.Value(defCredited, "demo", "direct"); got != 0 {
		t.Errorf("%v bytes are credited that only one side knows of", got)
	}
}

// TestReportsAboutSeedsAlarm: a seed is its operator's to judge.
func TestReportsAboutSeedsAlarm(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var said bytes.Buffer
	n := w.tracker(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(lockedWriter{&mu, &said}, nil)) })
	seed, _ := w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return n.roster.serves(seed) })
	for i := range 2 * swarm.BanVotes {
		v := n.viewerFrom(fmt.Sprintf("198.51.%d.1", i), "")
		in := v.join().Swarm
		for met := false; !met; { // it is introduced as before
			for _, p := range expect[*signal.Introduce](v).Peers {
				met = met || p.Peer == seed
			}
		}
		for range 2 {
			v.blames(in, seed)
		}
		w.reports(reportOfSeed, float64(2*(i+1)))
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(said.String(), "reports a seed"); n != 2*swarm.BanVotes {
		t.Errorf("%d lines of what %d viewers say twice each", n, 2*swarm.BanVotes)
	}
}

// TestOneViewerCannotInventWhatViewersServed: Grafana shows as served by viewers what two of them say, not what one says.
func TestOneViewerCannotInventWhatViewersServed(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	sender := n.viewerFrom("203.0.113.7", "")
	in := sender.join().Swarm
	receiver, liar := n.viewerFrom("198.51.100.1", ""), n.viewerFrom("198.51.101.1", "")
	for _, v := range []*viewer{receiver, liar} {
		v.join()
		expect[*signal.Introduce](v)
		v.send(&signal.Signal{Swarm: in, To: sender.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
		expect[*signal.Signal](sender)
	}
	handled := 0
	says := func(v *viewer, peers map[signal.ID]signal.PeerStats) {
		v.says(in, peers)
		handled++
		testkit.Eventually(t, "handled", func() bool { return w.metrics.Count(defHandle, "stats") == handled })
	}
	for range 5 {
		says(liar, map[signal.ID]signal.PeerStats{sender.id: {In: 1 << 40, Out: 1 << 40, RelayIn: 1 << 40}, newID(): {In: 1 << 40}})
		w.clock.Move(2 * time.Second)
	}
	if got := w.metrics.Value(defCredited, "demo", "direct") + w.metrics.Value(defCredited, "demo", "relay"); got != 0 {
		t.Errorf("%v bytes are credited to a peer that claims alone", got)
	}
	if w.metrics.Value(defClamped) == 0 {
		t.Error("impossible claims are not counted")
	}
	says(receiver, map[signal.ID]signal.PeerStats{sender.id: {In: 3000, RelayIn: 50}})
	says(sender, map[signal.ID]signal.PeerStats{receiver.id: {Out: 2000, RelayOut: 70}, liar.id: {Out: 10}})
	if direct, relay := w.metrics.Value(defCredited, "demo", "direct"), w.metrics.Value(defCredited, "demo", "relay"); direct != 2010 || relay != 50 {
		t.Errorf("%v direct and %v relayed are credited; want the lower claims, 2000 + 10 and 50", direct, relay)
	}
}

// TestSeedsHearWhatViewersHadFromEachOther: as far as both say so, and without a relay.
func TestSeedsHearWhatViewersHadFromEachOther(t *testing.T) {
	f := newFollowing(t)
	sender, receiver := f.viewerFrom("203.0.113.7", ""), f.viewerFrom("198.51.100.1", "")
	in := sender.join().Swarm
	receiver.join()
	receiver.send(&signal.Signal{Swarm: in, To: sender.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	expect[*signal.Signal](sender)
	receiver.says(in, map[signal.ID]signal.PeerStats{sender.id: {In: 3000, RelayIn: 50}})
	sender.says(in, map[signal.ID]signal.PeerStats{receiver.id: {Out: 2000, RelayOut: 50}})
	testkit.Eventually(t, "credited", func() bool { return f.world.metrics.Value(defCredited, "demo", "direct") == 2000 })
	f.world.clock.Move(titleEvery)
	f.home.maintain(f.world.clock.Now())
	for {
		if d := receive(t, f.told); d.Title != nil && d.Title.Credited != nil && *d.Title.Credited > 0 {
			if *d.Title.Credited != 2000 {
				t.Errorf("the seed hears of %d bytes", *d.Title.Credited)
			}
			return
		}
	}
}
