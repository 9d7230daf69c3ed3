package tracker

import (
	"crypto/sha256"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/experiment"
	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	experimentSlot  = 10 * time.Second // viewers whose sessions began in the same one are counted at the same moment
	experimentEvery = 10 * time.Second // what is known is told and judged
	// subnetEvery is how often one viewer of a subnet is observed, in the whole cluster. What the viewers of a few subnets
	// claim in a window is too little to switch a site off (internal/experiment.TestLiesOfAFewSubnetsAreNotEnough).
	subnetEvery = 24 * time.Hour
	maxSubnets  = 100_000 // that are remembered; beyond, the one that was taken first is forgotten
)

// experiments compare the viewers of each site with its control group.
type experiments struct {
	*replica
	switches *switches

	mu      sync.Mutex
	sites   map[string]*siteExperiment // guarded by mu; those that have both groups
	subnets recent                     // guarded by mu: of which a viewer was taken
	told    time.Time                  // guarded by mu
}

// siteExperiment is one site's. Guarded by experiments.mu.
type siteExperiment struct {
	permille int
	home     signal.ID // what the tracker that decides is found by
	since    time.Time // when the site was last switched: a session that began before does not count
	// pending are viewers that were watched to their end and wait for their slot's, so that nobody is counted sooner for what
	// became of him.
	pending map[int64]*experiment.Counts
	parts   map[signal.ID]*bus.ExperimentPart // by tracker, this one among them
}

// watched is what the experiment of a site sees of a session.
type watched struct {
	experiments *experiments

	mu     sync.Mutex
	viewer *observed // guarded by mu; nil: nothing, or not any more
}

// observed is a viewer under observation. Guarded by watched.mu.
type observed struct {
	began   time.Time
	variant experiment.Variant
	seen    experiment.Seen
}

func newExperiments(r *replica, by *switches) *experiments {
	t := &experiments{replica: r, switches: by, sites: map[string]*siteExperiment{}, subnets: recent{most: maxSubnets}}
	for _, s := range r.cfg.Sites {
		permille := s.Config().Policy.ControlGroupPermille
		if permille <= 0 || permille >= 1000 {
			continue
		}
		key := sha256.Sum256([]byte("leeway trial " + s.Name()))
		t.sites[s.Name()] = &siteExperiment{permille: permille, home: signal.ID(key[:16]), pending: map[int64]*experiment.Counts{}, parts: map[signal.ID]*bus.ExperimentPart{}}
	}
	return t
}

// watch begins to observe a viewer, unless another of its subnet was taken of late. It is called for a new session before the
// welcome says which group was drawn: a viewer that knows its group could choose to be observed in one of them alone. For
// the same reason a viewer that leaves at once, or never joins a swarm, counts as one that had no picture.
func (w *watched) watch(site string, from netip.Addr, policy *signal.Policy, now time.Time) {
	if policy.Role == configured.RoleOff || !w.experiments.takes(site, from, now) {
		return
	}
	viewer := &observed{began: now, variant: experiment.Peer}
	if policy.ControlGroup {
		viewer.variant = experiment.Control
	}
	w.mu.Lock()
	w.viewer = viewer
	w.mu.Unlock()
}

// subnetEvery is how often this tracker takes a viewer of one subnet, who may come to any.
func (t *experiments) subnetEvery() time.Duration {
	return subnetEvery * time.Duration(max(1, t.Live()))
}

func (t *experiments) takes(site string, a netip.Addr, now time.Time) bool {
	every := t.subnetEvery()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sites[site] == nil {
		return false
	}
	return t.subnets.take(subnetOf(a), now, every)
}

// subnetOf is what counts as one: /24, or /48 in IPv6.
func subnetOf(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits) // an address that is none has the prefix that is none
	return p
}

// witness takes over what a watched viewer reports; figures are in seconds and clamped.
func (w *watched) witness(played, stalled, startup float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.viewer == nil {
		return
	}
	seen := &w.viewer.seen
	seen.PlayedMs += int64(played * 1000)
	seen.StalledMs += int64(stalled * 1000)
	if seen.StartupMs == 0 {
		seen.StartupMs = int64(startup * 1000)
	}
}

// unwatch ends a viewer's observation when its time is over, or the session is.
func (w *watched) unwatch(site string, now time.Time, ended bool) {
	w.mu.Lock()
	viewer := w.viewer
	over := viewer != nil && (ended || now.Sub(viewer.began) >= experiment.Horizon)
	if over {
		w.viewer = nil
	}
	w.mu.Unlock()
	if over {
		w.experiments.observed(site, viewer)
	}
}

// observed takes in a viewer whose observation is over.
func (t *experiments) observed(site string, viewer *observed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st, slot := t.sites[site], viewer.began.UnixMilli()/experimentSlot.Milliseconds()
	if viewer.began.Before(st.since) {
		return
	}
	if st.pending[slot] == nil {
		st.pending[slot] = &experiment.Counts{}
	}
	st.pending[slot].Observe(viewer.variant, viewer.seen)
}

// maintain counts viewers whose time is over; now and then it tells others and judges.
func (t *experiments) maintain(now time.Time) {
	every := t.subnetEvery()
	since := map[string]time.Time{}
	for _, s := range t.cfg.Sites {
		_, since[s.Name()] = t.switches.siteSwitch(s.Name())
	}
	var tell []*bus.Experiment
	t.mu.Lock()
	due := now.Sub(t.told) >= experimentEvery
	if due {
		t.told = now
		t.subnets.expire(now, every)
	}
	for site, st := range t.sites {
		if !st.since.Equal(since[site]) {
			st.begin(since[site])
		}
		for variant, n := range st.count(t.id, now) {
			if n > 0 {
				t.cfg.Metrics.Add(defExperimentViewers, float64(n), site, metric.Variants[variant])
			}
		}
		if due {
			st.forget(now)
			tell = append(tell, st.message(site))
		}
	}
	t.mu.Unlock()
	for _, m := range tell {
		if len(m.Parts) > 0 {
			t.publish(bus.SubjectExperiment, m)
		}
		t.judge(m, now)
	}
}

// begin forgets everything.
func (st *siteExperiment) begin(since time.Time) {
	st.since = since
	clear(st.pending)
	clear(st.parts)
}

// count moves slots that are over from pending into what this tracker has observed, and returns how many viewers that were, by
// variant. A slot's last viewer is watched until a horizon after the slot's end, and each session is looked at once a beat.
func (st *siteExperiment) count(self signal.ID, now time.Time) (n [experiment.Variants]int64) {
	for slot, counts := range st.pending {
		began := time.UnixMilli(slot * experimentSlot.Milliseconds())
		if now.Before(began.Add(2*experimentSlot + experiment.Horizon)) {
			continue
		}
		delete(st.pending, slot)
		if st.parts[self] == nil {
			st.parts[self] = &bus.ExperimentPart{Tracker: self}
		}
		for i := range experiment.Windows {
			w := &st.parts[self].Windows[i]
			switch number := windowOf(i, began); {
			case number > w.Number:
				*w = bus.ExperimentWindow{Number: number, Counts: *counts}
			case number == w.Number:
				w.Counts.Add(counts)
			}
		}
		for v := range n {
			for _, m := range counts[experiment.Failure][v] {
				n[v] += m
			}
		}
	}
	return n
}

func windowOf(i int, at time.Time) int64 {
	return at.UnixMilli() / experiment.Windows[i].Milliseconds()
}

// forget drops trackers of which nothing counts any more.
func (st *siteExperiment) forget(now time.Time) {
	for id, p := range st.parts {
		over := true
		for i := range experiment.Windows {
			over = over && p.Windows[i].Number < windowOf(i, now)
		}
		if over {
			delete(st.parts, id)
		}
	}
}

func (st *siteExperiment) message(site string) *bus.Experiment {
	m := &bus.Experiment{Site: site, Permille: st.permille}
	if !st.since.IsZero() {
		m.SinceMs = st.since.UnixMilli()
	}
	for _, p := range st.parts {
		m.Parts = append(m.Parts, *p)
	}
	return m
}

// onExperiment hears what others have observed.
func (t *experiments) onExperiment(data []byte, _ func([]byte) error) {
	var m bus.Experiment
	if !t.decode(data, &m) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.sites[m.Site]
	if st == nil || st.permille != m.Permille || st.message(m.Site).SinceMs != m.SinceMs {
		return
	}
	for i := range m.Parts {
		st.hear(&m.Parts[i], t.id)
	}
}

// hear keeps the larger of what is known of a tracker and what is said of it: its counts only grow.
func (st *siteExperiment) hear(p *bus.ExperimentPart, self signal.ID) {
	have := st.parts[p.Tracker]
	switch {
	case p.Tracker == self:
		return
	case have == nil && len(st.parts) >= bus.MaxExperimentParts-1: // one is this tracker's own
		return
	case have == nil:
		have = &bus.ExperimentPart{Tracker: p.Tracker}
		st.parts[p.Tracker] = have
	}
	for i := range p.Windows {
		w, heard := &have.Windows[i], &p.Windows[i]
		if heard.Number > w.Number || heard.Number == w.Number && heard.Counts.Viewers() > w.Counts.Viewers() {
			*w = *heard
		}
	}
}

// judge says how strong the evidence is; the site's home, of all trackers the only one, switches peer delivery off where it is
// strong enough.
func (t *experiments) judge(m *bus.Experiment, now time.Time) {
	strongest := [experiment.Tests]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	for i := range experiment.Windows {
		var all experiment.Counts
		for _, p := range m.Parts {
			if w := &p.Windows[i]; w.Number == windowOf(i, now) {
				all.Add(&w.Counts)
			}
		}
		for test, e := range all.Evidence(m.Permille) {
			strongest[test] = max(strongest[test], e/experiment.Threshold)
		}
	}
	for test, e := range strongest {
		t.cfg.Metrics.Set(defExperimentEvidence, e, m.Site, experiment.Names[test])
	}
	if t.HomeOf(t.sites[m.Site].home) != t.id {
		return
	}
	for test, e := range strongest {
		if e < 1 {
			continue
		}
		t.cfg.Log.Error("viewers with peers are worse off than the control group: peer delivery is switched off", "site", m.Site, "test", experiment.Names[test], "evidence", e, "for", t.cfg.HarmPause)
		if err := t.switches.Switch(m.Site, true, cluster.ByHarm, now.Add(t.cfg.HarmPause)); err != nil {
			t.cfg.Log.Error("peer delivery not switched off", "site", m.Site, "error", err)
		}
		return
	}
}
