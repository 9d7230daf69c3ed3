package tracker

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestARulingFollowsTheSwitchesOnceItWasSaid(t *testing.T) {
	n := newWorld(t).tracker(nil)
	by, site := n.switches, n.sites["demo"]
	var r ruling
	if p := r.decide(site, signal.ID{1}, nil, false, by); p.Role != configured.RoleFull || r.allowed() != p {
		t.Errorf("decided %+v, allows %+v", p, r.allowed())
	}
	by.changes.Add(1)
	if r.stale(by) {
		t.Error("a policy that was not said yet is said again")
	}
	r.welcome()
	if !r.stale(by) {
		t.Error("a switch that changed before the welcome is missed")
	}
	by.mu.Lock()
	by.configured["demo"] = true
	by.mu.Unlock()
	if p := r.decide(site, signal.ID{1}, nil, false, by); p.Role != configured.RoleOff || r.allowed().Role != configured.RoleOff || r.stale(by) {
		t.Errorf("a site that is off decides %+v, stale %v", p, r.stale(by))
	}
	by.mu.Lock()
	by.configured["demo"] = false
	by.mu.Unlock()
	if p := r.decide(site, signal.ID{1}, &access.Grant{Role: configured.RoleLeech}, false, by); p.Role != configured.RoleLeech {
		t.Errorf("a token for a leech has the role %s", p.Role)
	}
}

func TestRoleOfAViewerForOthers(t *testing.T) {
	for _, c := range []struct {
		policy signal.Policy
		asked  string
		want   string
	}{
		{signal.Policy{Role: configured.RoleFull}, configured.RoleFull, configured.RoleFull},
		{signal.Policy{Role: configured.RoleFull}, configured.RoleLeech, configured.RoleLeech},
		{signal.Policy{Role: configured.RoleLeech}, configured.RoleFull, configured.RoleLeech},
		{signal.Policy{Role: configured.RoleOff}, configured.RoleFull, configured.RoleOff},
		{signal.Policy{Role: configured.RoleFull, ControlGroup: true}, configured.RoleFull, configured.RoleOff},
	} {
		if got := roleOf(c.policy, c.asked); got != c.want {
			t.Errorf("%+v asks for %s: %s, want %s", c.policy, c.asked, got, c.want)
		}
	}
}

func TestAPlaceIsHeldAtTheHomeOfItsSubject(t *testing.T) {
	n := newWorld(t).tracker(func(c *Config) { c.MaxPerSubject = 1 })
	asks := &asker{replica: n.replica, home: n.home}
	now, subject := n.cfg.Now(), signal.ID{7}
	first, second := place{asker: asks}, place{asker: asks}
	if code := first.enter(signal.ID{1}, subject, now); code != "" {
		t.Fatalf("the first is refused: %s", code)
	}
	if first.home != n.id || first.hash() == "" {
		t.Errorf("held at %s as %q", first.home, first.hash())
	}
	if code := second.enter(signal.ID{2}, subject, now); code == "" {
		t.Error("a second is let in where one may be")
	}
	// It says that it is there once in an update's time, and at once where the home is another.
	seen := func(at time.Time, home signal.ID) bool {
		first.seen, first.home = now, home
		first.stay(at)
		return first.seen.Equal(at)
	}
	interval := n.cfg.UpdateInterval
	if seen(now.Add(interval), n.id) || !seen(now.Add(interval+1), n.id) || !seen(now.Add(1), signal.ID{9}) || first.home != n.id {
		t.Errorf("said at %v, at home %s", first.seen, first.home)
	}
	first.quit()
	if code := second.enter(signal.ID{2}, subject, now); code != "" {
		t.Errorf("after the first has left the second is refused: %s", code)
	}
	var none place
	none.stay(now)
	none.quit()
	if none.hash() != "" {
		t.Error("without a subject there is a hash")
	}
}

func TestAPlaceWithoutAnAnswerIsGranted(t *testing.T) {
	n := newWorld(t).tracker(nil)
	other := signal.ID{9}
	n.roster.tracker(bus.TrackerBeat{Tracker: other}, n.cfg.Now())
	asks := &asker{replica: n.replica, home: n.home}
	for i := range byte(64) { // one of them has its home at the other
		p := place{asker: asks}
		if code := p.enter(signal.ID{1}, signal.ID{i + 1}, n.cfg.Now()); code != "" {
			t.Fatalf("refused: %s", code)
		}
		if p.home == other {
			return
		}
	}
	t.Error("no subject has its home at the other tracker")
}
