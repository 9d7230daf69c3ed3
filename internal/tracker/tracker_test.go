package tracker

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

var testPlan = &signal.Plan{V: 1, Data: 2, Message: 16384}

func TestTwoViewersMeetAndSignal(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		w := newWorld(t)
		nodes := []*node{w.tracker(nil)}
		if replicas == 2 {
			nodes = append(nodes, w.tracker(nil))
			know(t, nodes...)
		}
		a, b := nodes[0].viewer(""), nodes[len(nodes)-1].viewer("")
		if j := a.join(); j.Request != 7 || j.Viewers != 1 {
			t.Errorf("%d replicas: first joined as %+v", replicas, j)
		}
		swarm := b.join().Swarm
		met := expect[*signal.Introduce](b)
		if len(met.Peers) != 1 || met.Peers[0] != (signal.Peer{Peer: a.id, Role: "viewer"}) {
			t.Fatalf("%d replicas: newcomer met %+v", replicas, met.Peers)
		}
		link := newID()
		b.send(&signal.Signal{Swarm: swarm, To: a.id, Link: link, Kind: "offer", SDP: "v=0", Plan: testPlan})
		offer := expect[*signal.Signal](a)
		if offer.From != b.id || offer.Role != "viewer" || offer.Link != link || *offer.Plan != *testPlan {
			t.Errorf("%d replicas: offer arrived as %+v", replicas, offer)
		}
		a.send(&signal.Signal{Swarm: swarm, To: b.id, Link: link, Kind: "answer", SDP: "v=0", Plan: testPlan})
		if answer := expect[*signal.Signal](b); answer.From != a.id || answer.Kind != "answer" {
			t.Errorf("%d replicas: answer arrived as %+v", replicas, answer)
		}
	}
}

// know waits until all trackers have heard of each other.
func know(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		testkit.Eventually(t, "trackers hear each other", func() bool { return n.roster.live() == len(nodes) })
	}
}

func TestStrangersCannotSignal(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	a, b := n.viewer(""), n.viewer("")
	swarm := a.join().Swarm
	b.send(&signal.Signal{Request: 3, Swarm: swarm, To: a.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	if e := expect[*signal.Error](b); e.Code != "not-joined" || e.Request != 3 {
		t.Errorf("outside the swarm: %+v", e)
	}
	// The first viewer was not introduced to the second: the tracker chooses which of the two offers.
	b.join()
	a.send(&signal.Signal{Swarm: swarm, To: b.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	if e := expect[*signal.Error](a); e.Code != "not-introduced" {
		t.Errorf("not introduced: %+v", e)
	}
}

func TestSeedIsIntroducedWithItsTitle(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	seed, received := w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return len(n.roster.seedsFor("demo", seed)) == 1 })
	v := n.viewer("")
	swarm := v.join().Swarm
	if p := expect[*signal.Introduce](v).Peers; len(p) != 1 || p[0] != (signal.Peer{Peer: seed, Role: "seed"}) {
		t.Fatalf("introduced to %+v", p)
	}
	title := receive(t, received)
	want := bus.Title{Site: "demo", Title: testTitle, Manifest: testManifest, Swarm: swarm, Viewers: 1, Credited: new(int64)}
	if title.Kind != bus.KindTitle || !reflect.DeepEqual(*title.Title, want) {
		t.Errorf("seed was told %+v", title.Title)
	}
	v.send(&signal.Signal{Swarm: swarm, To: seed, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	offer := receive(t, received)
	if offer.Kind != bus.KindSignal || offer.Signal.From != v.id || offer.Title == nil || offer.Title.Swarm != swarm {
		t.Fatalf("offer arrived as %+v", offer)
	}
	if offer.Subnet != n.hashed(netip.MustParseAddr("127.0.0.1"), 24, 48) || offer.Subject != "" {
		t.Errorf("the seed is told subnet %q and subject %q of the viewer", offer.Subnet, offer.Subject)
	}
	back, err := bus.Encode(&bus.Delivery{Kind: bus.KindSignal, Signal: &bus.Signal{Signal: signal.Signal{
		Swarm: swarm, From: seed, To: v.id, Role: "seed", Link: offer.Signal.Link, Kind: "answer", SDP: "v=0", Plan: testPlan,
	}}})
	if err == nil {
		err = w.bus.Publish(bus.SubjectDeliver(offer.Signal.Tracker), back)
	}
	if err != nil {
		t.Fatal(err)
	}
	if answer := expect[*signal.Signal](v); answer.From != seed || answer.Role != "seed" {
		t.Errorf("answer arrived as %+v", answer)
	}
}

func TestReadyOfferReachesThePeerThatTheHomePicks(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	a, b := n.viewer(""), n.viewer("")
	a.join()
	link := newID()
	b.send(&signal.Join{Title: testTitle, Role: "full", Want: 8, Offers: []signal.Offer{{Link: link, SDP: "v=0", Plan: testPlan}}})
	if s := expect[*signal.Signal](a); s.From != b.id || s.Link != link {
		t.Errorf("ready offer arrived as %+v", s)
	}
	j := expect[*signal.Joined](b)
	if len(j.Offered) != 1 || j.Offered[0] != (signal.Offered{Link: link, Peer: a.id, Role: "viewer"}) {
		t.Errorf("the joiner is told that it went to %+v", j.Offered)
	}
	b.send(&signal.Signal{Swarm: j.Swarm, To: a.id, Link: link, Kind: "candidate", Candidate: "candidate:1"})
	if s := expect[*signal.Signal](a); s.Kind != "candidate" || s.Link != link {
		t.Errorf("its candidate arrived as %+v", s)
	}
}

// ahead joins right behind its hello, in front of the welcome, with an offer.
func (n *node) ahead(link signal.ID) *viewer {
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Client: "test/1", Site: "demo"})
	v.send(&signal.Join{
		Request: 3, Title: testTitle, Manifest: testManifest, Role: "full", Want: 8, Ahead: true,
		Offers: []signal.Offer{{Link: link, SDP: "v=0", Plan: testPlan, Early: true, Wanted: []signal.ID{{7}}}},
	})
	v.id = expect[*signal.Welcome](v).Session
	return v
}

func TestAJoinAheadOfTheWelcomeIsTakenWithItsOffer(t *testing.T) {
	n := newWorld(t).tracker(nil)
	first, link := n.viewer(""), newID()
	first.join()
	late := n.ahead(link)
	expect[*signal.Joined](late)
	if s := expect[*signal.Signal](first); s.From != late.id || s.Link != link || !s.Early || len(s.Wanted) != 1 {
		t.Errorf("the offer arrived as %+v", s)
	}
}

func TestAnOfferThatKnewNothingOfICEServersIsKeptBack(t *testing.T) {
	n := newWorld(t).tracker(func(c *Config) { c.ICEServers = []signal.ICEServer{{URLs: []string{"stun:192.0.2.1"}}} })
	first := n.viewer("")
	first.join()
	if m := expect[*signal.Introduce](n.ahead(newID())); len(m.Peers) != 1 || m.Peers[0].Peer != first.id {
		t.Errorf("introduced to %+v", m.Peers)
	}
}

func TestASiteWithRulesTakesNoGuesses(t *testing.T) {
	n := newWorld(t).tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Key: configured.KeyRule{Path: "/t/{}/"}})
	})
	late := n.ahead(newID())
	if e := expect[*signal.Error](late); e.Code != "bad-title" || e.Request != 3 {
		t.Errorf("%+v", e)
	}
	late.join()
}

func TestKeysOfSeedsReachViewers(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	v := n.viewer("")
	seed, _ := w.seed()
	if k := expect[*signal.Keys](v).VerifyKeys; len(k) != 1 || string(k[0].KeyID) != string(seed[:8]) {
		t.Errorf("pushed %+v", k)
	}
	later := n.socket()
	later.send(&signal.Hello{Version: 1})
	if k := expect[*signal.Welcome](later).VerifyKeys; len(k) != 1 {
		t.Errorf("welcomed with %+v", k)
	}
}

func TestRevocationsReachSessionsAndNewReplicas(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	v := n.viewer("")
	want := signal.Revocation{Site: "demo", Prefix: "/media/", MinIssuedAt: time.Now().UnixMilli()}
	w.revoke(want)
	if r := expect[*signal.Revoke](v).Revocations; len(r) != 1 || r[0].Prefix != want.Prefix {
		t.Errorf("pushed %+v", r)
	}
	late := w.tracker(nil).socket()
	late.send(&signal.Hello{Version: 1})
	if r := expect[*signal.Welcome](late).Revocations; len(r) != 1 || r[0].MinIssuedAt != want.MinIssuedAt {
		t.Errorf("a new replica welcomes with %+v", r)
	}
}

func TestTicketResumesAtAnotherTracker(t *testing.T) {
	w := newWorld(t)
	a, b := w.tracker(nil), w.tracker(nil)
	first := a.viewer("")
	second := b.viewer(first.ticket)
	if second.id != first.id {
		t.Errorf("resumed as %s, was %s", second.id, first.id)
	}
	if e := expect[*signal.Error](first); e.Code != "replaced" {
		t.Errorf("old socket got %+v", e)
	}
	if code := first.closed(); code != closePolicy {
		t.Errorf("old socket closed with %d", code)
	}
	w.clock.Move(time.Hour)
	if third := b.viewer(second.ticket); third.id == second.id {
		t.Error("an expired ticket was honored")
	}
	if fourth := b.viewer(strings.Repeat("A", 100)); fourth.id.IsZero() {
		t.Error("a forged ticket stood in the way of a new session")
	}
}

func TestHandshakeOfForeignPageIsRefused(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	_, r, err := n.dial("https://evil.example")
	if err == nil || r.StatusCode != 403 {
		t.Fatalf("got %v, %v", r, err)
	}
	_ = r.Body.Close()
	if got := w.metrics.Value(defRejected, "origin"); got != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestBadMessagesEndTheSession(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	for range maxBad {
		if err := v.ws.WriteMessage(websocket.TextMessage, []byte(`{"type":7}`)); err != nil {
			t.Fatal(err)
		}
		if e := expect[*signal.Error](v); e.Code != "bad-message" || e.Hint == "" {
			t.Errorf("got %+v", e)
		}
	}
	if code := v.closed(); code != closePolicy {
		t.Errorf("closed with %d", code)
	}
}

func TestOversizedMessageEndsTheSession(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	_ = v.ws.WriteMessage(websocket.TextMessage, make([]byte, signal.MaxMessage+1))
	if code := v.closed(); code != websocket.CloseMessageTooBig {
		t.Errorf("closed with %d", code)
	}
	testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defRejected, "oversized") == 1 })
}

func TestFloodIsRefusedAndEnded(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(func(c *Config) { c.MessagesPerSecond = 1 }).viewer("")
	for range maxRateOver + 10 {
		if v.ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"leave","swarm":"AAAAAAAAAAAAAAAAAAAAAA"}`)) != nil {
			break
		}
	}
	if e := expect[*signal.Error](v); e.Code != "not-joined" && e.Code != "rate-limited" {
		t.Errorf("got %+v", e)
	}
	v.closed()
	testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defErrors, "rate-limited") > maxRateOver })
}

func TestAddressThatConnectsTooOftenIsRefused(t *testing.T) {
	w := newWorld(t)
	now := time.Now() // stands still: a slow machine earns no further connects
	n := w.tracker(func(c *Config) { c.ConnectsPerSecond, c.Now = 1, func() time.Time { return now } })
	for range 5 {
		n.viewer("")
	}
	last := n.socket()
	if e := expect[*signal.Error](last); e.Code != "overloaded" || e.RetryAfterMs == 0 {
		t.Errorf("got %+v", e)
	}
	if code := last.closed(); code != closeOverloaded {
		t.Errorf("closed with %d", code)
	}
}

func TestSilentSocketIsClosed(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(func(c *Config) { c.HelloTimeout = time.Millisecond }).socket()
	v.closed()
	testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defRejected, "hello-timeout") == 1 })
}

func TestDrainSpreadsTheReturn(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.DrainSpread = 10 * time.Second })
	viewers := []*viewer{n.viewer(""), n.viewer(""), n.viewer("")}
	n.Drain()
	seen := map[int64]bool{}
	for _, v := range viewers {
		m := expect[*signal.Reconnect](v)
		if m.AfterMs < 1000 || m.AfterMs > 10_000 || seen[m.AfterMs] {
			t.Errorf("come back after %d ms", m.AfterMs)
		}
		seen[m.AfterMs] = true
		if code := v.closed(); code != closeDraining {
			t.Errorf("closed with %d", code)
		}
	}
	if n.Ready() == nil {
		t.Error("a draining tracker says that it is ready")
	}
}

func TestSwarmMovesWhenItsHomeDies(t *testing.T) {
	w := newWorld(t)
	a, b := w.tracker(nil), w.tracker(nil)
	know(t, a, b)
	swarm := a.swarmID("demo", testTitle)
	home, other := a, b
	if a.roster.homeOf(swarm) != a.ID() {
		home, other = b, a
	}
	v := other.viewer("")
	v.join()
	_ = home.Close()
	testkit.Eventually(t, "the other tracker takes the swarm home", func() bool {
		other.home.mu.Lock()
		defer other.home.mu.Unlock()
		s := other.home.swarms[swarm]
		return s != nil && s.Len() == 1
	})
	late := other.viewer("")
	late.join()
	if p := expect[*signal.Introduce](late).Peers; len(p) != 1 || p[0].Peer != v.id {
		t.Errorf("introduced to %+v", p)
	}
}

func TestStatisticsAreClamped(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	swarm := v.join().Swarm
	v.send(&signal.Stats{Swarm: swarm, Interval: 10_000, Bytes: map[string]int64{"peer": 1000, "origin": 1 << 50}, PlayedMs: 1500, StartupMs: 700})
	testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defReceived, "demo", "peer", "direct", "peer") == 1000 })
	testkit.Eventually(t, "clamped", func() bool { return w.metrics.Value(defClamped) == 1 })
	if got := w.metrics.Value(defReceived, "demo", "origin", "direct", "peer"); got <= 0 || got > 3*maxBytesPerSecond {
		t.Errorf("origin bytes: %v", got)
	}
	testkit.Eventually(t, "startup observed", func() bool { return w.metrics.Count(defStartup, "demo", "peer") == 1 })
}

// TestLagOfLiveStreamsIsTheMeanOfAReport: one that claims more than a day is cut.
func TestLagOfLiveStreamsIsTheMeanOfAReport(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	swarm := v.join().Swarm
	for i, s := range []signal.Stats{{LiveLag: 7500}, {LiveMs: 1000, LiveLag: 7500}, {LiveMs: 1, LiveLag: 1 << 50}} {
		w.clock.Move(10 * time.Second)
		s.Swarm, s.Interval, s.Switches = swarm, 10_000, 1
		v.send(&s)
		testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defSwitches, "demo", "peer") == float64(i+1) })
	}
	testkit.Eventually(t, "one is beyond a day", func() bool { return w.metrics.Value(defClamped) == 1 })
	if n := w.metrics.Count(defLiveLag, "demo", "peer"); n != 2 {
		t.Errorf("%v reports of two have a lag", n)
	}
}
