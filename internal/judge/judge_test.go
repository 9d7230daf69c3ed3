package judge

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/experiment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestHarmSwitchesASiteOff(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	all := n.audience(0, 60, subnetEach)
	w.clock.Move(time.Minute)
	n.report(all, 6*time.Second)
	w.clock.Move(experiment.Horizon + 3*experimentSlot)
	testkit.Eventually(t, "the site is off", n.isOff)
	v := n.opens(subnetEach(100), "")
	defer v.End(nil)
	if w, _ := v.told(); w.Policy.Role != "off" {
		t.Errorf("a newcomer may be %s", w.Policy.Role)
	}
	w.clock.Move(n.judge.cfg.Pause + time.Second)
	testkit.Eventually(t, "the site is on again", func() bool { return !n.isOff() })
	testkit.Eventually(t, "and its experiment begins anew", func() bool {
		n.judges()
		return w.metrics.Value(defEvidence, "demo", "stall") == 0
	})
}

func TestAGoodSiteStaysOn(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	all := n.audience(0, 60, subnetEach)
	w.clock.Move(time.Minute)
	n.report(all, 0)
	w.over(60)
	testkit.Eventually(t, "the tracker has judged", func() bool {
		n.judges()
		return w.metrics.Value(defEvidence, "demo", "stall") != 0
	})
	if off, _ := n.SiteSwitch("demo"); off {
		t.Error("switched off without harm")
	}
}

// TestOneSubnetCannotSwitchASiteOff: a thousand sockets of one subnet that say the worst are one viewer.
func TestOneSubnetCannotSwitchASiteOff(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	all := n.audience(0, 200, subnetOfAll)
	w.clock.Move(time.Minute)
	n.report(all, time.Minute)
	w.clock.Move(experiment.Horizon + 3*experimentSlot)
	testkit.Eventually(t, "one is counted", func() bool { return w.counted() > 0 })
	testkit.Eventually(t, "the tracker has judged", func() bool {
		n.judges()
		return w.metrics.Value(defEvidence, "demo", "stall") != 0
	})
	if off, _ := n.SiteSwitch("demo"); off || w.counted() != 1 {
		t.Errorf("off: %v; %v viewers were counted", off, w.counted())
	}
}

// TestASessionIsObservedOnce: a session that is resumed is not a new viewer, nor is one that leaves and joins again.
func TestASessionIsObservedOnce(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	s := n.enters(subnetEach(0), "")
	first, swarm := s.told()
	s.say(&signal.Leave{Swarm: swarm})
	w.clock.Move(2 * experiment.Windows[0])
	ticket := first.Ticket
	testkit.Eventually(t, "the session has a ticket of now", func() bool {
		w, _ := s.told()
		ticket = w.Ticket
		return ticket != first.Ticket
	})
	s.join()
	again := n.enters(subnetEach(1), ticket)
	s.End(nil)
	again.End(nil)
	if w, _ := again.told(); w.Session != first.Session || !w.Resumed {
		t.Errorf("the session is not resumed: %+v", w)
	}
	w.over(1)
	n.judge.Maintain(w.clock.Now())
	if w.counted() != 1 {
		t.Errorf("%v viewers were observed", w.counted())
	}
}

// TestASessionThatNeverJoinsHadNoPicture: it knows its group, and must not choose whether to count.
func TestASessionThatNeverJoinsHadNoPicture(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	for i := range 20 {
		n.opens(subnetEach(i), "").End(nil)
	}
	w.over(20)
	n.judge.mu.Lock()
	defer n.judge.mu.Unlock()
	var failed int64
	for _, of := range n.judge.sites["demo"].parts[n.ID()].Windows[0].Counts[experiment.Failure] {
		failed += of[experiment.Levels-1]
	}
	if failed != 20 {
		t.Errorf("%d of 20 sessions had no picture", failed)
	}
}

// TestASubnetCountsOnceAWindow: a viewer of each day counts in the window of its day, and the first alone in that of the week.
func TestASubnetCountsOnceAWindow(t *testing.T) {
	w := newWorld(t)
	n := w.withControlGroup(500)
	week := experiment.Windows[1]
	w.clock.Move(week - time.Duration(w.clock.Now().UnixNano())%week) // a week begins
	for day := range 5 {
		n.opens(subnetEach(0), "").End(nil)
		w.over(day + 1)
		n.judge.mu.Lock()
		seen := n.judge.sites["demo"].parts[n.ID()].Windows
		n.judge.mu.Unlock()
		if seen[0].Counts.Viewers() != 1 || seen[1].Counts.Viewers() != 1 {
			t.Fatalf("on day %d %d viewers count in the day and %d in the week", day, seen[0].Counts.Viewers(), seen[1].Counts.Viewers())
		}
		w.clock.Move(experiment.Windows[0])
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
		testkit.Eventually(t, "trackers know each other", func() bool { return n.Live() == 2 })
	}
	var halves [2][]*viewer
	for i, n := range nodes {
		halves[i] = n.audience(30*i, 30, subnetEach)
	}
	w.clock.Move(time.Minute)
	for i, n := range nodes {
		n.report(halves[i], 6*time.Second)
	}
	w.clock.Move(experiment.Horizon + 3*experimentSlot)
	testkit.Eventually(t, "the site is off everywhere", func() bool {
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
