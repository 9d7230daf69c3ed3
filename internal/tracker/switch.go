package tracker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// byConfiguration is the reason of a site that is off in the configuration of this process.
const byConfiguration = "configuration"

// offReasons is the closed set of the metric.
var offReasons = append(slices.Clone(cluster.SwitchReasons), byConfiguration)

// switches is where peer delivery is off.
type switches struct {
	*replica
	changes atomic.Int64 // of what off says; sessions compare

	mu         sync.Mutex
	held       cluster.Switches // guarded by mu
	configured map[string]bool  // guarded by mu: off by the configuration
	was        map[string]bool  // guarded by mu: what off last said
}

func newSwitches(r *replica) *switches {
	s := &switches{replica: r, configured: map[string]bool{}, was: map[string]bool{}}
	for name, site := range r.sites {
		s.configured[name] = site.Config().Off
	}
	s.settle(r.cfg.Now())
	return s
}

func (s *switches) list() []bus.Switch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bus.Switches(s.held.List())
}

// off says whether peer delivery of a site is off.
func (s *switches) off(site string) bool {
	off, _ := s.SiteSwitch(site)
	return off
}

// isOff is off, at a time. Under mu.
func (s *switches) isOff(site string, now time.Time) bool {
	return s.configured[site] || s.held.Off(site, now)
}

// SiteSwitch says whether peer delivery of a site is switched off, and when that last changed; zero if it never did.
func (s *switches) SiteSwitch(site string) (off bool, since time.Time) {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isOff(site, now), s.held.Since(site, now)
}

// Configure says whether the configuration has peer delivery of a site off, for this process alone.
func (s *switches) Configure(site string, off bool) {
	s.mu.Lock()
	s.configured[site] = off
	s.mu.Unlock()
	s.settle(s.cfg.Now())
}

// Statements switch a site when all replicas have heard them (cluster.Switches.Say).
func (s *switches) Statements(site string, off bool, reason string, until time.Time) []bus.Switch {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return bus.Switches(s.held.Say(site, off, reason, until, now))
}

// Switch switches peer delivery of a site off or on at all trackers and seeds, for a reason of cluster.SwitchReasons. A site
// that is off goes on again at until, or, where that is zero, when an operator says so.
func (s *switches) Switch(site string, off bool, reason string, until time.Time) error {
	if s.sites[site] == nil || !slices.Contains(cluster.SwitchReasons, reason) {
		return fmt.Errorf("tracker: switch site %q for reason %q: one of them is unknown", site, reason)
	}
	said := s.Statements(site, off, reason, until)
	s.take(said)
	s.Publish(bus.SubjectRevoke, &bus.RevokeMessage{Revocations: []signal.Revocation{}, Switches: said})
	return nil
}

// take takes statements in, as far as they are of sites that this tracker serves, and says whether one was new.
func (s *switches) take(list []bus.Switch) (news bool) {
	s.mu.Lock()
	for _, w := range list {
		if s.sites[w.Site] != nil && s.held.Set(w.Statement()) {
			news = true
		}
	}
	s.mu.Unlock()
	if news {
		s.settle(s.cfg.Now())
	}
	return news
}

// settle notices what has changed: sessions follow within a beat, in turns (session.obey).
func (s *switches) settle(now time.Time) {
	changed := false
	s.mu.Lock()
	for site := range s.sites {
		for _, reason := range offReasons {
			off := s.held.OffBy(site, reason, now) || reason == byConfiguration && s.configured[site]
			s.cfg.Metrics.Set(defOff, gauge(off), site, reason)
		}
		if off := s.isOff(site, now); off != s.was[site] {
			s.was[site], changed = off, true
			s.cfg.Log.Warn("peer delivery of a site was switched", "site", site, "off", off)
		}
	}
	s.mu.Unlock()
	if changed {
		s.changes.Add(1)
	}
}

func gauge(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// abide has the viewer and the homes of its swarms know the policy of now, where it is another.
func (s *session) abide(reason string) {
	s.rule.saying.Lock()
	before := s.rule.allowed()
	policy := s.rule.decide(s.site, s.id, s.permit.granted(), s.t.heldBack(s.site, s.permit.subject(), s.visitor.Visitor), s.t.switches)
	if policy != before {
		s.send(&signal.SetPolicy{Policy: policy})
	}
	s.rule.saying.Unlock()
	s.swarms.regroup(s.permit.group(), policy, reason)
}
