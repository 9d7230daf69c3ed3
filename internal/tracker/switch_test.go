package tracker

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// say publishes statements as an admin port does.
func (w *world) say(list ...bus.Switch) {
	w.t.Helper()
	b, err := bus.Encode(&bus.RevokeMessage{Revocations: []signal.Revocation{}, Switches: list})
	if err == nil {
		err = w.bus.Publish(bus.SubjectRevoke, b)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// meets has a viewer ask for company until it and another are introduced, whichever is to offer. Nothing else can be expected of
// them afterwards.
func (v *viewer) meets(swarm signal.ID, other *viewer) {
	v.t.Helper()
	met := make(chan error, 2)
	hear := func(by *viewer, of signal.ID) {
		for {
			_, b, err := by.ws.ReadMessage()
			if err != nil {
				met <- err
				return
			}
			m, _ := signal.Decode(b)
			if i, ok := m.(*signal.Introduce); ok && slices.ContainsFunc(i.Peers, func(p signal.Peer) bool { return p.Peer == of }) {
				met <- nil
				return
			}
		}
	}
	for _, pair := range [][2]*viewer{{v, other}, {other, v}} {
		_ = pair[0].ws.SetReadDeadline(time.Now().Add(testkit.Patience))
		go hear(pair[0], pair[1].id)
	}
	testkit.Eventually(v.t, "the viewers are introduced", func() bool {
		v.send(&signal.Update{Swarm: swarm, Want: 8})
		select {
		case err := <-met:
			if err != nil {
				v.t.Fatal(err)
			}
			return true
		default:
			return false
		}
	})
}

func (v *viewer) role() string {
	v.t.Helper()
	return expect[*signal.SetPolicy](v).Policy.Role
}

func TestASwitchReachesTheSessionsOfAllTrackers(t *testing.T) {
	w := newWorld(t)
	a, b := w.tracker(nil), w.tracker(nil)
	one, two := a.viewer(""), b.viewer("")
	swarm := one.join().Swarm
	two.join()
	w.say(a.Statements("demo", true, cluster.ByOperator, time.Time{})...)
	for _, v := range []*viewer{one, two} {
		if role := v.role(); role != "off" {
			t.Errorf("role %s", role)
		}
	}
	three := b.socket()
	three.send(&signal.Hello{Version: 1, Site: "demo"})
	welcome := expect[*signal.Welcome](three)
	if three.id = welcome.Session; welcome.Policy.Role != "off" {
		t.Errorf("a newcomer is told role %s", welcome.Policy.Role)
	}
	// It says what it was told to be, as libraries do, and is something else when the site is on again.
	testkit.Eventually(t, "no session takes part", func() bool {
		three.send(&signal.Join{Request: 7, Title: testTitle, Manifest: testManifest, Role: "off", Want: 0})
		return expect[*signal.Joined](three).Viewers == 0
	})
	w.say(b.Statements("demo", false, cluster.ByOperator, time.Time{})...)
	for _, v := range []*viewer{one, two, three} {
		if role := v.role(); role != "full" {
			t.Errorf("role %s", role)
		}
	}
	three.meets(swarm, two)
}

func TestATrackerThatComesLaterKnowsTheSwitch(t *testing.T) {
	w := newWorld(t)
	a, cutOff := w.tracker(nil), w.tracker(nil)
	a.switches.take(a.Statements("demo", true, cluster.ByOperator, time.Time{})) // and no other tracker heard it
	v := cutOff.viewer("")
	w.clock.Move(revokeAgain)
	if role := v.role(); role != "off" {
		t.Errorf("role %s", role)
	}
	later := w.tracker(nil)
	if !later.off("demo") {
		t.Error("it was not asked for at the start")
	}
	for _, n := range []*node{a, cutOff, later} {
		testkit.Eventually(t, "the metric says so", func() bool { return n.off("demo") })
	}
	if got := w.metrics.Value(defOff, "demo", cluster.ByOperator); got != 1 {
		t.Errorf("leeway_tracker_delivery_off is %v", got)
	}
}

func TestASwitchEndsAtItsTime(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	v := n.viewer("")
	began := w.clock.Now()
	if err := n.Switch("demo", true, cluster.ByHarm, began.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if role := v.role(); role != "off" {
		t.Errorf("role %s", role)
	}
	if off, since := n.SiteSwitch("demo"); !off || since.Before(began.Add(-time.Millisecond)) {
		t.Errorf("off %v since %v", off, since)
	}
	w.clock.Move(24*time.Hour + time.Second)
	if role := v.role(); role != "full" {
		t.Errorf("role %s", role)
	}
	if off, since := n.SiteSwitch("demo"); off || since.UnixMilli() != began.Add(24*time.Hour).UnixMilli() {
		t.Errorf("off %v since %v", off, since)
	}
	if n.Switch("other", true, cluster.ByHarm, time.Time{}) == nil || n.Switch("demo", true, "mood", time.Time{}) == nil {
		t.Error("no such site, or no such reason")
	}
}

func TestConfigurationSwitchesItsOwnProcess(t *testing.T) {
	w := newWorld(t)
	a, b := w.tracker(nil), w.tracker(nil)
	v := a.viewer("")
	a.Configure("demo", true)
	if role := v.role(); role != "off" || b.off("demo") {
		t.Errorf("role %s, the other tracker is off: %v", role, b.off("demo"))
	}
	// An operator's command does not lift what the file says.
	w.say(b.Statements("demo", false, cluster.ByOperator, time.Time{})...)
	a.Configure("demo", true)
	if !a.off("demo") {
		t.Error("on, by command")
	}
	a.Configure("demo", false)
	if role := v.role(); role != "full" {
		t.Errorf("role %s", role)
	}
}

// TestARefusalWhileOffSaysNothingOfThePair: pairs that failed are not introduced again, and these two are to be.
func TestARefusalWhileOffSaysNothingOfThePair(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	one, two := n.viewer(""), n.viewer("")
	one.join()
	swarm := two.join().Swarm
	one.send(&signal.Update{Swarm: swarm, Want: 8})
	link := newID()
	two.send(&signal.Signal{Swarm: swarm, To: one.id, Link: link, Kind: "offer", SDP: "v=0", Plan: &signal.Plan{V: 1, Data: 1, Message: 16384}})
	expect[*signal.Signal](one)
	n.Configure("demo", true)
	one.role()
	two.role()
	one.send(&signal.Signal{Swarm: swarm, To: two.id, Link: link, Kind: "fail", Reason: "refused"})
	if m := expect[*signal.Signal](two); m.Kind != "fail" {
		t.Errorf("%+v", m)
	}
	n.Configure("demo", false)
	one.role()
	two.role()
	w.clock.Move(2 * time.Minute)
	two.meets(swarm, one)
}
