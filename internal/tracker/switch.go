package tracker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// byConfiguration is the reason of a site that is off in the configuration of this process.
const byConfiguration = "configuration"

// offReasons is the closed set of the metric.
var offReasons = append(slices.Clone(cluster.SwitchReasons), byConfiguration)

// switches is where peer delivery is off.
type switches struct {
	changes atomic.Int64 // of what Tracker.off says; sessions compare

	mu         sync.Mutex
	held       cluster.Switches // guarded by mu
	configured map[string]bool  // guarded by mu: off by the configuration
	was        map[string]bool  // guarded by mu: what off last said
}

func (s *switches) list() []bus.Switch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bus.Switches(s.held.List())
}

// off says whether peer delivery of a site is off.
func (t *Tracker) off(site string) bool {
	now := t.cfg.Now()
	t.switches.mu.Lock()
	defer t.switches.mu.Unlock()
	return t.switches.off(site, now)
}

// off is under mu.
func (s *switches) off(site string, now time.Time) bool {
	return s.configured[site] || s.held.Off(site, now)
}

// siteSwitch says whether peer delivery of a site is switched off, and when that last changed; zero if it never did.
func (t *Tracker) siteSwitch(site string) (off bool, since time.Time) {
	now := t.cfg.Now()
	t.switches.mu.Lock()
	defer t.switches.mu.Unlock()
	return t.switches.off(site, now), t.switches.held.Since(site, now)
}

// Configure says whether the configuration has peer delivery of a site off, for this process alone.
func (t *Tracker) Configure(site string, off bool) {
	t.switches.mu.Lock()
	if t.switches.configured == nil {
		t.switches.configured, t.switches.was = map[string]bool{}, map[string]bool{}
	}
	t.switches.configured[site] = off
	t.switches.mu.Unlock()
	t.settle(t.cfg.Now())
}

// Statements switch a site when all replicas have heard them (cluster.Switches.Say).
func (t *Tracker) Statements(site string, off bool, reason string, until time.Time) []bus.Switch {
	now := t.cfg.Now()
	t.switches.mu.Lock()
	defer t.switches.mu.Unlock()
	return bus.Switches(t.switches.held.Say(site, off, reason, until, now))
}

// Switch switches peer delivery of a site off or on at all trackers and seeds, for a reason of cluster.SwitchReasons. A site
// that is off goes on again at until, or, where that is zero, when somebody says so.
func (t *Tracker) Switch(site string, off bool, reason string, until time.Time) error {
	if t.sites[site] == nil || !slices.Contains(cluster.SwitchReasons, reason) {
		return fmt.Errorf("tracker: switch site %q for reason %q: one of them is unknown", site, reason)
	}
	said := t.Statements(site, off, reason, until)
	t.takeSwitches(said)
	t.publish(bus.SubjectRevoke, &bus.RevokeMessage{Revocations: []signal.Revocation{}, Switches: said})
	return nil
}

// takeSwitches takes statements in, as far as they are of sites that this tracker serves, and says whether one was new.
func (t *Tracker) takeSwitches(list []bus.Switch) (news bool) {
	t.switches.mu.Lock()
	for _, w := range list {
		if t.sites[w.Site] != nil && t.switches.held.Set(w.Statement()) {
			news = true
		}
	}
	t.switches.mu.Unlock()
	if news {
		t.settle(t.cfg.Now())
	}
	return news
}

// settle notices what has changed: sessions follow within a beat, in turns (session.obey).
func (t *Tracker) settle(now time.Time) {
	changed := false
	t.switches.mu.Lock()
	for site := range t.sites {
		for _, reason := range offReasons {
			off := t.switches.held.OffBy(site, reason, now) || reason == byConfiguration && t.switches.configured[site]
			t.cfg.Metrics.Set(defOff, gauge(off), site, reason)
		}
		if off := t.switches.off(site, now); off != t.switches.was[site] {
			t.switches.was[site], changed = off, true
			t.cfg.Log.Warn("peer delivery of a site was switched", "site", site, "off", off)
		}
	}
	t.switches.mu.Unlock()
	if changed {
		t.switches.changes.Add(1)
	}
}

func gauge(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// allowed is the session's policy.
func (s *session) allowed() signal.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policy
}

// decide makes the session's policy of what its site, token and switches say now.
func (s *session) decide() signal.Policy {
	changes := s.t.switches.changes.Load() // first: what changes meanwhile is looked at once more
	off := s.t.off(s.site.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy, s.switched = policyOf(s.site, s.id, s.grant), changes
	if off {
		s.policy.Role = configured.RoleOff
	}
	return s.policy
}

// abide has the viewer and the homes of its swarms know the policy of now, where it is another.
func (s *session) abide(reason string) {
	s.ruling.Lock()
	before := s.allowed()
	policy := s.decide()
	if policy != before {
		s.send(&signal.SetPolicy{Policy: policy})
	}
	s.ruling.Unlock()
	group := s.group()
	var moved []*membership
	s.mu.Lock()
	for _, member := range s.swarms {
		if role := roleOf(policy, member.asked); member.join.Group != group || member.join.Role != role {
			member.join.Group, member.join.Role = group, role
			moved = append(moved, member)
		}
	}
	s.mu.Unlock()
	for _, member := range moved {
		s.rejoin(member, reason)
	}
}

// obey follows a switch of the site. Sessions take turns at being maintained, so that not all viewers of a large site close
// their links, or come for new ones, in one moment.
func (s *session) obey() {
	s.mu.Lock()
	due := s.welcomed && s.switched != s.t.switches.changes.Load()
	s.mu.Unlock()
	if due {
		s.abide("switch")
	}
}
