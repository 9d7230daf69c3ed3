package tracker

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// kill ends a tracker as a crash does: no last beat, no word to its viewers' swarms.
func (n *node) kill() {
	n.run.cancel()
	n.unsubscribe()
}

// members is how many members a tracker counts in a swarm of its own.
func (n *node) members(id signal.ID) int {
	n.home.mu.Lock()
	defer n.home.mu.Unlock()
	if s := n.home.swarms[id]; s != nil {
		return s.Len()
	}
	return 0
}

// homed returns two trackers that know each other, the first being home to the test's swarm.
func homed(t *testing.T, w *world, change func(*Config)) (home, other *node) {
	t.Helper()
	a, b := w.tracker(change), w.tracker(change)
	know(t, a, b)
	if a.roster.homeOf(a.swarmID("demo", testTitle)) == a.ID() {
		return a, b
	}
	return b, a
}

func TestKilledHomeIsPassedOverAtOnce(t *testing.T) {
	w := newWorld(t)
	home, other := homed(t, w, func(c *Config) { c.BeatEvery = time.Hour }) // no beat will heal anything
	v := other.viewer("")
	swarm := v.join().Swarm
	home.kill()
	v.send(&signal.Update{Swarm: swarm, Want: 4}) // the update finds no member, the next home takes the member in
	testkit.Eventually(t, "member at the next home", func() bool { return other.members(swarm) == 1 })
	late := other.viewer("")
	if j := late.join(); j.Viewers != 2 {
		t.Errorf("joined as %+v", j)
	}
	if p := expect[*signal.Introduce](late).Peers; len(p) != 1 || p[0].Peer != v.id {
		t.Errorf("introduced to %+v", p)
	}
}

func TestKilledHomeIsReplacedWhenItsBeatsEnd(t *testing.T) {
	w := newWorld(t)
	home, other := homed(t, w, nil)
	v := other.viewer("")
	swarm := v.join().Swarm
	home.kill()
	// No message comes: only time tells.
	testkit.Eventually(t, "the other tracker takes the swarm home", func() bool { return other.members(swarm) == 1 })
}

func TestSwarmsMoveToANewTracker(t *testing.T) {
	w := newWorld(t)
	first := w.tracker(nil)
	var swarms []signal.ID
	for i := range 16 { // of which the newcomer ranks first for about half
		v := first.viewer("")
		v.send(&signal.Join{Title: strconv.Itoa(i), Role: "full"})
		swarms = append(swarms, expect[*signal.Joined](v).Swarm)
	}
	second := w.tracker(nil)
	testkit.Eventually(t, "every swarm is where it belongs", func() bool {
		moved := 0
		for _, id := range swarms {
			if second.roster.homeOf(id) == second.ID() {
				moved++
				if second.members(id) != 1 || first.members(id) != 0 {
					return false
				}
			} else if first.members(id) != 1 || second.members(id) != 0 {
				return false
			}
		}
		return moved > 0
	})
}

func TestLateLeaveDoesNotRemoveAMovedSession(t *testing.T) {
	w := newWorld(t)
	a, b := w.tracker(nil), w.tracker(nil)
	know(t, a, b)
	first := a.viewer("")
	swarm := first.join().Swarm
	moved := b.viewer(first.ticket)
	moved.join()
	first.closed() // the first tracker has told the home by now, or will
	testkit.Eventually(t, "the old socket's session ends", func() bool { return a.sessions.session(first.id) == nil })
	late := a.viewer("")
	if j := late.join(); j.Viewers != 2 {
		t.Errorf("joined as %+v", j)
	}
	if p := expect[*signal.Introduce](late).Peers; len(p) != 1 || p[0].Peer != moved.id {
		t.Errorf("introduced to %+v", p)
	}
	late.send(&signal.Signal{Swarm: swarm, To: moved.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	if s := expect[*signal.Signal](moved); s.From != late.id {
		t.Errorf("offer arrived as %+v", s)
	}
}

func TestTicketsAreRenewedBeforeTheyExpire(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	v := n.viewer("")
	for range 5 { // an hour of play, and then the socket is lost
		w.clock.Move(12 * time.Minute)
		v.ticket = expect[*signal.Ticket](v).Ticket
	}
	_ = v.ws.Close()
	w.clock.Move(9 * time.Minute)
	if again := n.viewer(v.ticket); again.id != v.id {
		t.Error("nine minutes after the loss the session was forgotten")
	}
}

func TestSignalsToPeersThatAreGoneComeBack(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.BeatEvery = time.Hour })
	a, b := n.viewer(""), n.viewer("")
	a.join()
	swarm := b.join().Swarm
	expect[*signal.Introduce](b)
	_ = a.ws.Close()
	testkit.Eventually(t, "gone", func() bool { return n.sessions.session(a.id) == nil })
	offer := &signal.Signal{Swarm: swarm, To: a.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan}
	b.send(offer)
	if s := expect[*signal.Signal](b); s.Kind != "fail" || s.Reason != "gone" || s.From != a.id || s.Link != offer.Link {
		t.Errorf("a viewer that is gone: %+v", s)
	}
	seed := newID()
	w.beatSeed(seed)
	testkit.Eventually(t, "the seed is known", func() bool { return len(n.roster.seedsFor("demo", seed)) == 1 })
	b.send(&signal.Update{Swarm: swarm, Want: 4})
	expect[*signal.Introduce](b)
	n.roster.expire(w.clock.Now().Add(24 * time.Hour))
	offer.To = seed
	b.send(offer)
	if s := expect[*signal.Signal](b); s.Kind != "fail" || s.Reason != "gone" || s.Role != "seed" {
		t.Errorf("a seed that is gone: %+v", s)
	}
}

func TestFailedLinkIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	a, b := n.viewer(""), n.viewer("")
	a.join()
	id := b.join().Swarm
	expect[*signal.Introduce](b)
	b.send(&signal.Signal{Swarm: id, To: a.id, Link: newID(), Kind: "fail", Reason: "timeout"})
	if s := expect[*signal.Signal](a); s.Reason != "timeout" {
		t.Errorf("got %+v", s)
	}
	testkit.Eventually(t, "the home knows", func() bool {
		n.home.mu.Lock()
		defer n.home.mu.Unlock()
		return n.home.swarms[id].HasFailed(a.id, b.id)
	})
}

func TestManifestsOfOtherTitlesAreRefused(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Title: configured.Titles{Explicit: []configured.Binding{{Title: "big-buck-bunny", Manifests: []string{testManifest}}}}})
	}).viewer("")
	for _, m := range []signal.Join{
		{Title: "big-buck-bunny", Manifest: "/media/other/master.m3u8"},
		{Title: "another-name", Manifest: testManifest},
		{Title: "/media/bbb", Manifest: "/media/other/master.m3u8"},
		{Title: "/media/bbb", Manifest: "/media/bbb/../bbb/master.m3u8"},
		{Title: "/media/bbb", Manifest: "/media/bbb/master.m3u8?lang=de"},
		{Title: "/media/bbb", Manifest: "master.m3u8"},
		{Title: "a\x01b"},
	} {
		m.Role = "full"
		v.send(&m)
		if e := expect[*signal.Error](v); e.Code != "bad-title" || e.Hint == "" {
			t.Errorf("%q with %q: %+v", m.Title, m.Manifest, e)
		}
	}
	for _, m := range []signal.Join{
		{Title: "/media/bbb", Manifest: testManifest},
		{Title: "/media/bbb?lang=de", Manifest: testManifest},
		{Title: "big-buck-bunny", Manifest: testManifest},
		{Title: "/anything"},
	} {
		m.Role = "full"
		v.send(&m)
		expect[*signal.Joined](v)
	}
	v.send(&signal.Join{Title: "one more", Role: "full"})
	if e := expect[*signal.Error](v); e.Code != "too-many-swarms" {
		t.Errorf("the fifth swarm: %+v", e)
	}
}

// TestAFullSwarmTakesNoMoreIn: members behind one address cannot be parted, so that their part is full at some point.
func TestAFullSwarmTakesNoMoreIn(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.MaxMembers = 1 })
	for range 2 * (cluster.MaxLevel + 1) {
		n.viewer("").send(&signal.Join{Title: testTitle, Manifest: testManifest, Role: "full"})
	}
	v := n.viewer("")
	v.send(&signal.Join{Request: 9, Title: testTitle, Manifest: testManifest, Role: "full", Want: 1})
	if e := expect[*signal.Error](v); e.Code != "swarm-full" || e.Request != 9 || e.RetryAfterMs == 0 {
		t.Errorf("got %+v", e)
	}
}

// TestThrottledTabsStayMembers lets a viewer be silent while its socket lives.
func TestThrottledTabsStayMembers(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	v := n.viewer("")
	swarm := v.join().Swarm
	s := n.sessions.session(v.id)
	for range 10 {
		w.clock.Move(11 * time.Second)
		s.maintain(w.clock.Now())
		testkit.Eventually(t, "the home heard", func() bool {
			n.home.maintain(w.clock.Now())
			return n.members(swarm) == 1
		})
	}
}

func TestTheControlGroupMeetsNoPeer(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Policy: configured.Policy{ControlGroupPermille: 1000}})
	})
	a, b := n.viewer(""), n.viewer("")
	a.join()
	swarm := b.join().Swarm
	b.send(&signal.Update{Swarm: swarm, Want: 8})
	b.send(&signal.Stats{Request: 1, Swarm: swarm, Interval: 1000, Bytes: map[string]int64{"origin": 5}})
	testkit.Eventually(t, "counted apart", func() bool { return w.metrics.Value(defReceived, "demo", "origin", "direct", "control") == 5 })
	if got := w.metrics.Value(defIntroductions, "viewer"); got != 0 {
		t.Errorf("%v introductions", got)
	}
}

func TestManySmallReportsClaimNoMoreThanOne(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	swarm := v.join().Swarm
	began := time.Now()
	const reports = 200
	for i := range reports {
		switch i % 3 { // a new membership is no new allowance
		case 1:
			v.join()
		case 2:
			v.send(&signal.Leave{Swarm: swarm})
			v.join()
		}
		v.send(&signal.Stats{
			Swarm: swarm, Interval: 600_000, Bytes: map[string]int64{"peer": 1 << 40}, PlayedMs: 1 << 40, Stalls: 1 << 40, StartupMs: 300,
		})
	}
	testkit.Eventually(t, "all handled", func() bool { return w.metrics.Count(defHandle, "stats") == reports })
	seconds := (2*reportSlack + 2*time.Since(began)).Seconds()
	for _, c := range []struct {
		def    *metric.Def
		labels []string
		most   float64
	}{
		{defReceived, []string{"demo", "peer", "direct", "peer"}, maxBytesPerSecond * seconds},
		{defPlayed, []string{"demo", "peer"}, 2 * seconds},
		{defStalls, []string{"demo", "peer"}, maxCount/10*seconds + reports},
	} {
		if got := w.metrics.Value(c.def, c.labels...); got > c.most {
			t.Errorf("%s: %.0f were believed, at most %.0f are possible", c.def.Name, got, c.most)
		}
	}
	if n := w.metrics.Count(defStartup, "demo", "peer"); n > 1+reports/3 {
		t.Errorf("%d startups of %d memberships", n, 1+reports/3)
	}
}

// TestSlowReaderLosesItsSocket floods a viewer that does not read with what others make the tracker say.
func TestSlowReaderLosesItsSocket(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.BeatEvery = time.Hour })
	slow, fast := n.viewer(""), n.viewer("")
	slow.join()
	swarm := fast.join().Swarm
	expect[*signal.Introduce](fast)
	sdp := strings.Repeat("x", signal.MaxSDP)
	for i := 0; i < 100_000 && n.sessions.session(slow.id) != nil; i++ {
		b, err := signal.Encode(&signal.Signal{Swarm: swarm, To: slow.id, Link: newID(), Kind: "offer", SDP: sdp, Plan: testPlan})
		if err != nil {
			t.Fatal(err)
		}
		_ = fast.ws.WriteMessage(websocket.TextMessage, b)
		w.clock.Move(2 * time.Second) // within what one may say to another
		if i%4 == 3 {                 // no more at once, either
			fast.join()
		}
	}
	testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defRejected, "slow") == 1 })
	if n.sessions.session(fast.id) == nil {
		t.Error("the one that reads lost its socket too")
	}
}

func TestDrainingTrackerTurnsNewcomersAway(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	n.Drain()
	v := n.socket()
	if e := expect[*signal.Error](v); e.Code != "draining" || e.RetryAfterMs == 0 {
		t.Errorf("got %+v", e)
	}
	if code := v.closed(); code != closeDraining {
		t.Errorf("closed with %d", code)
	}
}

// TestLogsAndBusHoldNoAddress reads everything that a join makes a tracker write.
func TestLogsAndBusHoldNoAddress(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var said bytes.Buffer
	n := w.tracker(func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(lockedWriter{&mu, &said}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	stop, err := w.bus.Subscribe("leeway.v1.>", func(_ string, data []byte, _ func([]byte) error) {
		_, _ = lockedWriter{&mu, &said}.Write(data)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	know(t, n, w.tracker(nil)) // one of the two has to ask the other for half of the titles
	for i := range 16 {
		n.viewer("").send(&signal.Join{Title: strconv.Itoa(i), Role: "full"})
	}
	testkit.Eventually(t, "the bus was heard", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(said.String(), `"op":"join"`)
	})
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(said.String(), "127.0.0.1") {
		t.Errorf("an address was told: %s", said.String())
	}
	if a := n.hashed(netip.MustParseAddr("192.0.2.7"), 24, 48); a != n.hashed(netip.MustParseAddr("192.0.2.9"), 24, 48) || a == n.hashed(netip.MustParseAddr("192.0.3.7"), 24, 48) {
		t.Error("subnets are not told apart by their hashes")
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
