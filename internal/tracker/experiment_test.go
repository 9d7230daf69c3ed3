package tracker

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/experiment"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// nowhere takes what the tracker sends.
type nowhere struct{}

func (nowhere) Write([]byte) error { return nil }
func (nowhere) Close(int, string)  {}

// withControlGroup is a tracker whose site has a control group of so many.
func (w *world) withControlGroup(permille int) *node {
	return w.tracker(func(c *Config) {
		s, err := configured.New(configured.Config{
			Name: "demo", Hosts: []string{"video.example.com"}, Policy: configured.Policy{ControlGroupPermille: permille},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		c.Sites = []*configured.Site{s}
	})
}

// say has a session receive a message.
func (n *node) say(s *session, m signal.Message) {
	n.world.t.Helper()
	b, err := signal.Encode(m)
	if err != nil {
		n.world.t.Fatal(err)
	}
	if !s.Receive(b) {
		n.world.t.Errorf("%T ended the session", m)
	}
}

// audience joins viewers from an address each, of a subnet of its own or all of one.
func (n *node) audience(first, count int, address func(i int) netip.Addr) (all []*session) {
	n.world.t.Helper()
	for i := first; i < first+count; i++ {
		s := n.enters(address(i), "")
		n.world.t.Cleanup(func() { s.End(nil) })
		all = append(all, s)
	}
	return all
}

// enters opens a session and joins the film.
func (n *node) enters(from netip.Addr, ticket string) *session {
	n.world.t.Helper()
	s := n.Accept(nowhere{}, Visitor{Origin: testOrigin, Address: from}).(*session)
	n.say(s, &signal.Hello{Version: 1, Client: "test/1", Site: "demo", Ticket: ticket})
	n.say(s, &signal.Join{Title: testTitle, Manifest: testManifest, Role: "full"})
	return s
}

func subnetEach(i int) netip.Addr  { return netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}) }
func subnetOfAll(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

// report says a minute of play; those with peers stalled for a part of it.
func (n *node) report(all []*session, stalled time.Duration) {
	n.world.t.Helper()
	for _, s := range all {
		m := &signal.Stats{Swarm: n.swarmID("demo", testTitle), Interval: 60_000, PlayedMs: 60_000, StartupMs: 400}
		if !s.rule.allowed().ControlGroup {
			m.StallMs, m.Stalls = stalled.Milliseconds(), 1
		}
		n.say(s, m)
	}
}

// isOff has the tracker tell and judge at its next beat, and says what came of the ones before.
func (n *node) isOff() bool {
	n.judges()
	off, _ := n.siteSwitch("demo")
	return off
}

func (n *node) judges() {
	n.experiments.mu.Lock()
	defer n.experiments.mu.Unlock()
	n.experiments.told = time.Time{}
}

func (w *world) counted() float64 {
	return w.metrics.Value(defExperimentViewers, "demo", "peer") + w.metrics.Value(defExperimentViewers, "demo", "control")
}

// over lets the viewers' time pass.
func (w *world) over(viewers int) {
	w.t.Helper()
	w.clock.move(experiment.Horizon + 3*experimentSlot)
	eventually(w.t, "everybody is counted", func() bool { return w.counted() == float64(viewers) })
}

func TestHarmSwitchesASiteOff(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	all := n.audience(0, 60, subnetEach)
	w.clock.move(time.Minute)
	n.report(all, 6*time.Second)
	w.clock.move(experiment.Horizon + 3*experimentSlot)
	eventually(t, "the site is off", n.isOff)
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo"})
	if p := expect[*signal.Welcome](v).Policy; p.Role != "off" {
		t.Errorf("a newcomer may be %s", p.Role)
	}
	w.clock.move(n.cfg.HarmPause + time.Second)
	eventually(t, "the site is on again", func() bool { return !n.isOff() })
	eventually(t, "and its experiment begins anew", func() bool {
		n.judges()
		return w.metrics.Value(defExperimentEvidence, "demo", "stall") == 0
	})
}

func TestAGoodSiteStaysOn(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	all := n.audience(0, 60, subnetEach)
	w.clock.move(time.Minute)
	n.report(all, 0)
	w.over(60)
	eventually(t, "the tracker has judged", func() bool {
		n.judges()
		return w.metrics.Value(defExperimentEvidence, "demo", "stall") != 0
	})
	if off, _ := n.siteSwitch("demo"); off {
		t.Error("switched off without harm")
	}
}

// TestOneSubnetCannotSwitchASiteOff: a thousand sockets of one subnet that say the worst are one viewer.
func TestOneSubnetCannotSwitchASiteOff(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	all := n.audience(0, 200, subnetOfAll)
	w.clock.move(time.Minute)
	n.report(all, time.Minute)
	w.clock.move(experiment.Horizon + 3*experimentSlot)
	eventually(t, "one is counted", func() bool { return w.counted() > 0 })
	eventually(t, "the tracker has judged", func() bool {
		n.judges()
		return w.metrics.Value(defExperimentEvidence, "demo", "stall") != 0
	})
	if off, _ := n.siteSwitch("demo"); off || w.counted() != 1 {
		t.Errorf("off: %v; %v viewers were counted", off, w.counted())
	}
}

// TestWhoIsObserved: a session that is resumed is not a new viewer, nor is one that leaves and joins again.
func TestWhoIsObserved(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	s := n.enters(subnetEach(0), "")
	n.say(s, &signal.Leave{Swarm: n.swarmID("demo", testTitle)})
	w.clock.move(2 * subnetEvery)
	n.say(s, &signal.Join{Title: testTitle, Manifest: testManifest, Role: "full"})
	again := n.enters(subnetEach(1), s.ticket(w.clock.now()))
	t.Cleanup(func() { again.End(nil) })
	s.End(nil)
	if again.id != s.id || again.watched.viewer != nil {
		t.Errorf("a resumed session is watched: %+v", again.watched.viewer)
	}
	w.over(1)
}

// TestASessionThatNeverJoinsHadNoPicture: it knows its group, and must not choose whether to count.
func TestASessionThatNeverJoinsHadNoPicture(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	for i := range 20 {
		s := n.Accept(nowhere{}, Visitor{Origin: testOrigin, Address: subnetEach(i)}).(*session)
		n.say(s, &signal.Hello{Version: 1, Client: "test/1", Site: "demo"})
		s.End(nil)
	}
	w.over(20)
	n.experiments.mu.Lock()
	defer n.experiments.mu.Unlock()
	var failed int64
	for _, of := range n.experiments.sites["demo"].parts[n.id].Windows[0].Counts[experiment.Failure] {
		failed += of[experiment.Levels-1]
	}
	if failed != 20 {
		t.Errorf("%d of 20 sessions had no picture", failed)
	}
}

func TestTheOldestNetworkIsForgottenFirst(t *testing.T) {
	r, now := recent{most: 3}, time.Unix(1000, 0)
	take := func(i int, in time.Duration) bool { return r.take(subnetOf(subnetEach(i)), now.Add(in), time.Hour) }
	for i := range 3 {
		if !take(i, time.Duration(i)) || take(i, time.Duration(i)) {
			t.Errorf("network %d is not taken once", i)
		}
	}
	if !take(3, 4) || take(1, 5) || !take(0, 6) || len(r.taken) != 3 || len(r.order) != 3 {
		t.Errorf("a fourth: %v", r)
	}
	if !take(2, time.Hour+2) {
		t.Error("its time is over, and it is not taken again")
	}
	r.expire(now.Add(3*time.Hour), time.Hour)
	if len(r.taken) != 0 || len(r.order) != 0 {
		t.Errorf("not forgotten: %v", r)
	}
}

// TestTrackersAddUpWhatTheySaw: each has half of the viewers, both know of all, one decides.
func TestTrackersAddUpWhatTheySaw(t *testing.T) {
	w := newWorld(t)
	nodes := []*node{w.withControlGroup(500), w.withControlGroup(500)}
	for _, n := range nodes {
		eventually(t, "trackers know each other", func() bool { return n.roster.live() == 2 })
	}
	var halves [2][]*session
	for i, n := range nodes {
		halves[i] = n.audience(30*i, 30, subnetEach)
	}
	w.clock.move(time.Minute)
	for i, n := range nodes {
		n.report(halves[i], 6*time.Second)
	}
	w.clock.move(experiment.Horizon + 3*experimentSlot)
	eventually(t, "the site is off everywhere", func() bool {
		one, two := nodes[0].isOff(), nodes[1].isOff()
		return one && two
	})
}

// TestHearsayInAnyOrder: what is known of a tracker is the most that was ever said of it.
func TestHearsayInAnyOrder(t *testing.T) {
	other := signal.ID{9}
	var said []*bus.ExperimentPart
	for number := range int64(3) {
		p := bus.ExperimentPart{Tracker: other}
		p.Windows[0].Number, p.Windows[1].Number = number, 1
		for range 4 {
			p.Windows[0].Counts.Observe(experiment.Peer, experiment.Seen{PlayedMs: 1})
			p.Windows[1].Counts.Observe(experiment.Control, experiment.Seen{PlayedMs: 1})
			copied := p
			said = append(said, &copied)
		}
	}
	last := said[len(said)-1]
	for seed := range uint64(20) {
		st := &siteExperiment{parts: map[signal.ID]*bus.ExperimentPart{}}
		r := rand.New(rand.NewPCG(seed, 0))
		for _, i := range append(r.Perm(len(said)), r.Perm(len(said))...) {
			st.hear(said[i], signal.ID{1})
		}
		if *st.parts[other] != *last {
			t.Fatalf("order %d ends at %+v", seed, st.parts[other])
		}
	}
}

func TestTrackersBeyondTheBoundAreNotRemembered(t *testing.T) {
	st := &siteExperiment{permille: 30, parts: map[signal.ID]*bus.ExperimentPart{}}
	for i := range 2 * bus.MaxExperimentParts {
		st.hear(&bus.ExperimentPart{Tracker: signal.ID{1, byte(i)}}, signal.ID{1, 200})
	}
	st.parts[signal.ID{1, 200}] = &bus.ExperimentPart{Tracker: signal.ID{1, 200}}
	if m := st.message("demo"); m.Validate() != nil {
		t.Errorf("%d parts: %v", len(m.Parts), m.Validate())
	}
	st.forget(time.Now())
	if len(st.parts) != 0 {
		t.Errorf("%d are left of windows long ago", len(st.parts))
	}
}
