package tracker

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// counted is a viewer whose socket is read all the time.
type counted struct {
	*viewer
	bytes atomic.Int64
	mu    sync.Mutex
	seen  []signal.Message // guarded by mu
}

// watches reads all that comes from now on.
func (v *viewer) watches() *counted {
	c := &counted{viewer: v}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			_, b, err := v.ws.ReadMessage()
			if err != nil {
				return
			}
			c.bytes.Add(int64(len(b)))
			if m, err := signal.Decode(b); err == nil {
				c.mu.Lock()
				c.seen = append(c.seen, m)
				c.mu.Unlock()
			}
		}
	}()
	v.t.Cleanup(func() {
		_ = v.ws.Close()
		<-over
	})
	return c
}

// signals counts those that came, of a kind and a sender; zero for any sender.
func (c *counted) signals(kind string, from signal.ID) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.seen {
		if s, ok := m.(*signal.Signal); ok && s.Kind == kind && (from.IsZero() || s.From == from) {
			n++
		}
	}
	return n
}

// handled counts the offers that came to a viewer, and what was refused.
func (w *world) handled(by *counted) (n int) {
	for _, allowance := range signalRefusals {
		n += int(w.metrics.Value(defSignalRefused, allowance))
	}
	return n + by.signals("offer", signal.ID{})
}

// errors counts those that came.
func (c *counted) errors() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.seen {
		if _, ok := m.(*signal.Error); ok {
			n++
		}
	}
	return n
}

// visits is a viewer that has joined.
func (n *node) visits(address string) *viewer {
	v := n.viewerFrom(address, "")
	v.join()
	return v
}

// knows has a viewer signal to another, as one that was introduced to it.
func (n *node) knows(v signal.ID, to signal.ID, at *node) {
	n.sessions.session(v).peers.meet(bus.Target{Peer: to, Role: "viewer", Tracker: at.id})
}

func offer(swarm, to, link signal.ID, size int) *signal.Signal {
	return &signal.Signal{
		Swarm: swarm, To: to, Link: link, Kind: "offer", Early: true,
		SDP: "v=0\r\n" + strings.Repeat("a", size), Plan: &signal.Plan{V: 1, Data: 2, Message: 8192},
	}
}

func candidate(swarm, to, link signal.ID) *signal.Signal {
	return &signal.Signal{
		Swarm: swarm, To: to, Link: link, Kind: "candidate", Mid: "0",
		Candidate: "candidate:1 1 udp 2130706431 " + strings.Repeat("f", 100) + " 40000 typ host",
	}
}

// attempt offers a link, with candidates.
func (v *viewer) attempt(swarm, to signal.ID, size, candidates int) (link signal.ID) {
	v.t.Helper()
	link = newID()
	v.send(offer(swarm, to, link, size))
	for range candidates {
		v.send(candidate(swarm, to, link))
	}
	v.send(&signal.Signal{Swarm: swarm, To: to, Link: link, Kind: "end"})
	return link
}

// flooder sends offers to one viewer without end, from a socket that it opens again when the tracker has closed it.
type flooder struct {
	n       *node
	at      *node // where its victim is
	address string
	to      signal.ID
	v       *viewer
	sent    int64
}

func (f *flooder) say(swarm signal.ID) {
	for range 3 {
		if f.v == nil {
			f.v = f.n.visits(f.address).watches().viewer
			f.n.knows(f.v.id, f.to, f.at)
		}
		b, err := signal.Encode(offer(swarm, f.to, newID(), 16_000))
		if err != nil {
			f.n.world.t.Fatal(err)
		}
		if f.v.ws.WriteMessage(websocket.TextMessage, b) == nil && f.n.sessions.session(f.v.id) != nil {
			f.sent += int64(len(b))
			return
		}
		f.v = nil
	}
}

// closed says whether the tracker has ended its session.
func (f *flooder) closed() bool { return f.n.sessions.session(f.v.id) == nil }

// TestAFloodOfSignalsAtOneViewerIsBounded: three sockets of one address send offers as fast as a session may. Of what they say
// less than 1 Mbit/s reaches the viewer, and another newcomer is heard meanwhile; also where they are at another tracker.
func TestAFloodOfSignalsAtOneViewerIsBounded(t *testing.T) {
	for name, trackers := range map[string]int{"at its tracker": 1, "at another tracker": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock.Stop()
			var nodes []*node
			for range trackers {
				nodes = append(nodes, w.tracker(func(c *Config) { c.BeatEvery, c.MessagesPerSecond = time.Hour, 50 })) // as below
			}
			at, from := nodes[0], nodes[trackers-1]
			testkit.Eventually(t, "trackers know each other", func() bool { return at.roster.live() == trackers && from.roster.live() == trackers })
			victim := at.visits("198.51.100.1").watches()
			swarm := at.swarmID("demo", testTitle)
			honest := from.visits("192.0.2.1")
			from.knows(honest.id, victim.id, at)
			var flooders []*flooder
			for range 3 {
				flooders = append(flooders, &flooder{n: from, at: at, address: "203.0.113.7", to: victim.id})
			}
			before, began := victim.bytes.Load(), w.clock.Now()
			for i := range 250 { // 5 s
				handled := w.handled(victim)
				for _, f := range flooders {
					f.say(swarm)
				}
				if i == 125 {
					honest.attempt(swarm, victim.id, 2000, 10)
					testkit.Eventually(t, "the newcomer is heard", func() bool {
						return victim.signals("end", honest.id) == 1 && victim.signals("candidate", honest.id) == 10
					})
				}
				// What waits unread while the clock moves is given up between trackers, or comes as a burst. What a session said last
				// before it was ended may go unread.
				testkit.Eventually(t, "the round is handled", func() bool {
					return w.handled(victim) >= handled+len(flooders) || slices.ContainsFunc(flooders, (*flooder).closed)
				})
				w.clock.Move(20 * time.Millisecond)
			}
			took := w.clock.Now().Sub(began).Seconds()
			var sent int64
			for _, f := range flooders {
				sent += f.sent
			}
			mbits := func(bytes int64) float64 { return float64(bytes) * 8 / 1e6 / took }
			got := mbits(victim.bytes.Load() - before)
			t.Logf("in %.1f s %.1f Mbit/s were sent, %.2f Mbit/s reached the viewer", took, mbits(sent), got)
			if got > 1 || mbits(sent) < 10*got {
				t.Errorf("%.2f Mbit/s of %.1f reach the viewer", got, mbits(sent))
			}
			if refused := w.metrics.Value(defSignalRefused, "pair"); refused == 0 {
				t.Error("what was refused is not counted")
			}
		})
	}
}

// TestFloodsOfManyNetworksAreBounded: sessions of as many subnets as it takes, each within its own allowance.
func TestFloodsOfManyNetworksAreBounded(t *testing.T) {
	w := newWorld(t)
	w.clock.Stop()
	n := w.tracker(func(c *Config) { c.BeatEvery, c.MessagesPerSecond = time.Hour, 50 }) // the clock runs ahead of the beats
	victim := n.visits("198.51.100.1").watches()
	swarm := n.swarmID("demo", testTitle)
	var flooders []*counted
	for i := range 12 {
		f := n.visits(fmt.Sprintf("203.0.%d.7", i)).watches()
		n.knows(f.id, victim.id, n)
		flooders = append(flooders, f)
	}
	before, began := victim.bytes.Load(), w.clock.Now()
	for round := range 100 {
		for _, f := range flooders {
			f.send(offer(swarm, victim.id, newID(), 1000))
		}
		// What waits unread while the clock moves comes as a burst, which sessions are ended for.
		testkit.Eventually(t, "the round is handled", func() bool { return w.handled(victim) == (round+1)*len(flooders) })
		w.clock.Move(100 * time.Millisecond)
	}
	took := w.clock.Now().Sub(began).Seconds()
	got := float64(victim.bytes.Load()-before) * 8 / 1e6 / took
	t.Logf("in %.1f s, %.2f Mbit/s reached the viewer", took, got)
	if refused := w.metrics.Value(defSignalRefused, "receiver"); got > 1 || refused == 0 {
		t.Errorf("%.2f Mbit/s reach the viewer, %v refused for it", got, refused)
	}
}

// TestNewcomersReachAPopularViewer: fifty of them at once, each from an address of its own, and all from behind one.
func TestNewcomersReachAPopularViewer(t *testing.T) {
	for name, address := range map[string]func(i int) string{
		"each from its own address": func(i int) string { return fmt.Sprintf("203.0.%d.7", i) },
		"all behind one address":    func(int) string { return "203.0.113.7" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.tracker(func(c *Config) { c.MessagesPerSecond = 50 })
			popular := n.visits("198.51.100.1").watches()
			swarm := n.swarmID("demo", testTitle)
			for i := range 50 {
				v := n.visits(address(i))
				n.knows(v.id, popular.id, n)
				v.attempt(swarm, popular.id, 2000, 10)
			}
			testkit.Eventually(t, "all were heard", func() bool {
				return popular.signals("offer", signal.ID{}) == 50 && popular.signals("candidate", signal.ID{}) == 500 && popular.signals("end", signal.ID{}) == 50
			})
		})
	}
}

// TestAJoiningViewerWithManyLinksIsHeardAndHears: it offers to sixteen peers; two of them say certificates with their answers, the
// others what they hold.
func TestAJoiningViewerWithManyLinksIsHeardAndHears(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.MessagesPerSecond = 500 }) // the library spreads this over some seconds
	swarm := n.swarmID("demo", testTitle)
	newcomer := n.visits("203.0.113.7").watches()
	said := func(n int) (all []signal.Bytes) {
		for range n {
			all = append(all, make(signal.Bytes, 8192))
		}
		return all
	}
	for i := range 16 {
		p := n.visits(fmt.Sprintf("198.51.100.%d", i)).watches() // neighbors of one subnet
		n.knows(newcomer.id, p.id, n)
		link := newcomer.attempt(swarm, p.id, 2000, 12)
		testkit.Eventually(t, "the offer is heard", func() bool {
			return p.signals("offer", newcomer.id) == 1 && p.signals("candidate", newcomer.id) == 12 && p.signals("end", newcomer.id) == 1
		})
		answer := offer(swarm, newcomer.id, link, 2000)
		answer.Kind, answer.Early, answer.Said = "answer", false, said(1)
		if i < 2 {
			answer.Said = said(4)
		}
		p.send(answer)
		for range 12 {
			p.send(candidate(swarm, newcomer.id, link))
		}
	}
	testkit.Eventually(t, "all answers are heard", func() bool {
		return newcomer.signals("answer", signal.ID{}) == 16 && newcomer.signals("candidate", signal.ID{}) == 16*12
	})
	if newcomer.errors() != 0 || w.metrics.Value(defSignalRefused, "network")+w.metrics.Value(defSignalRefused, "receiver") != 0 {
		t.Errorf("%d errors", newcomer.errors())
	}
}

// TestALinkMayBeginAnew: a peer whose network changes offers again, at once and with all candidates that it may.
func TestALinkMayBeginAnew(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	swarm := n.swarmID("demo", testTitle)
	a, b := n.visits("203.0.113.7").watches(), n.visits("198.51.100.1").watches()
	n.knows(a.id, b.id, n)
	for range 3 {
		a.attempt(swarm, b.id, 3000, 60)
	}
	testkit.Eventually(t, "all is heard", func() bool { return b.signals("offer", a.id) == 3 && b.signals("candidate", a.id) == 180 })
	if a.errors() != 0 {
		t.Errorf("%d errors", a.errors())
	}
}

// TestAnOfferBeyondTheAllowanceIsToldSo, and the session that goes on all the same is ended.
func TestAnOfferBeyondTheAllowanceIsToldSo(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.MessagesPerSecond = 50 })
	swarm := n.swarmID("demo", testTitle)
	b := n.visits("198.51.100.1").watches()
	var last *counted
	for range 5 { // of one subnet, each within what it may say to one peer
		last = n.visits("203.0.113.7").watches()
		n.knows(last.id, b.id, n)
		for range 5 {
			last.send(offer(swarm, b.id, newID(), 16_000))
		}
	}
	testkit.Eventually(t, "some are turned down", func() bool { return last.signals("fail", b.id) > 0 })
	if w.metrics.Value(defSignalRefused, "network") == 0 || last.errors() != 0 {
		t.Errorf("not counted, or %d errors", last.errors())
	}
	for range 200 {
		b, err := signal.Encode(offer(swarm, b.id, newID(), 16_000))
		if err != nil || last.ws.WriteMessage(websocket.TextMessage, b) != nil {
			break
		}
	}
	testkit.Eventually(t, "the session is over", func() bool { return n.sessions.session(last.id) == nil })
}

// TestOneAnswerToAnOwnOfferIsFree: a second one, and one to another link, are charged.
func TestOneAnswerToAnOwnOfferIsFree(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	s := n.enters(netip.MustParseAddr("10.0.1.1"))
	t.Cleanup(func() { s.End(nil) })
	from, link := newID(), newID()
	s.peers.meet(bus.Target{Peer: from, Role: "viewer", Tracker: n.id})
	s.route(bus.Target{Peer: from, Role: "viewer", Tracker: n.id}, offer(n.swarmID("demo", testTitle), from, link, 10))
	answer := &bus.Signal{Tracker: n.id, Signal: signal.Signal{From: from, Role: "viewer", Link: link, Kind: "answer"}}
	huge := int(toSession.bytesAtOnce) + 1
	if s.peers.hears(answer, huge) != "" || s.peers.hears(answer, huge) == "" {
		t.Error("not one answer is free")
	}
}

// TestASessionSaysSoMuchToAll: each peer alone would be sent more.
func TestASessionSaysSoMuchToAll(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	s := n.enters(netip.MustParseAddr("10.0.1.1"))
	t.Cleanup(func() { s.End(nil) })
	said, size, began := 0, int(toPeer.bytesAtOnce), time.Now()
	for range 100 {
		to := newID()
		s.peers.meet(bus.Target{Peer: to, Role: "viewer", Tracker: n.id})
		if s.peers.says(to, size) == "" {
			said += size
		}
	}
	more := int(time.Since(began).Seconds()*float64(fromSession.bytes)) + size // a slow machine gives the session time
	if most := int(fromSession.bytesAtOnce); said > most+more || said < most-size || w.metrics.Value(defSignalRefused, "session") == 0 {
		t.Errorf("%d bytes at once", said)
	}
}

// TestManyNetworksShareAnAllowance: what a session keeps of subnets is bounded, and those whose allowance is whole make room.
func TestManyNetworksShareAnAllowance(t *testing.T) {
	var f Inflow
	now := time.Unix(1000, 0).UnixNano()
	for i := range 3 * maxNetworks {
		f.Take(fmt.Sprint(i), 1000, 50, now)
	}
	if len(f.networks) != maxNetworks+1 || f.networks[""].messages <= f.networks["1"].messages {
		t.Errorf("%d networks, the shared one spent %+v", len(f.networks), f.networks[""])
	}
	f.Take("another", 1000, 50, now+int64(time.Hour))
	if len(f.networks) != 1 {
		t.Errorf("%d networks after an hour", len(f.networks))
	}
}
