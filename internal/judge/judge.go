// Package judge is the room of the judge beside a tracker (spec/experiment.md). It observes viewers of each site, adds up what the judges
// of all trackers have seen, and switches peer delivery off where viewers with peers are worse off than the control group. The tracker
// knows it by the port tracker.Judge and runs without it.
//
// Lock order: no lock is held together with another, and none while the tracker is called.
package judge

import (
	"cmp"
	"crypto/sha256"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/experiment"
	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	experimentSlot  = 10 * time.Second // viewers whose sessions began in the same one are counted at the same moment
	experimentEvery = 10 * time.Second // what is known is told and judged
	maxSubnets      = 100_000          // that are remembered for each window; beyond, the one that was taken first is forgotten
)

// DefaultPause is Config.Pause where none is given.
const DefaultPause = 24 * time.Hour

// Config of a judge.
type Config struct {
	Pause time.Duration // for which peer delivery is off at a site where it proved to hurt; 0: DefaultPause
}

// Host is what the room needs of its tracker.
type Host interface {
	ID() signal.ID
	Settings() *tracker.Config
	// Live counts the trackers that this one hears, itself among them.
	Live() int
	// HomeOf is the tracker that what has a key has its home at.
	HomeOf(key signal.ID) signal.ID
	// Publish sends a message to all trackers.
	Publish(subject string, m bus.Message)
	// SiteSwitch says whether peer delivery of a site is off, and when that last changed.
	SiteSwitch(site string) (off bool, since time.Time)
	// Switch switches peer delivery of a site at all trackers and seeds.
	Switch(site string, off bool, reason string, until time.Time) error
}

// Judge compares the viewers of each site with its control group.
type Judge struct {
	cfg  Config
	of   *tracker.Config
	host Host

	mu      sync.Mutex
	sites   map[string]*siteExperiment      // guarded by mu; those that have both groups
	subnets [len(experiment.Windows)]recent // guarded by mu: of which a viewer was taken, by window
	told    time.Time                       // guarded by mu
}

var (
	defViewers = &metric.Def{
		Name: "leeway_tracker_trial_viewers_total", Help: "Viewers whose first minutes the experiment of their site has counted", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "variant", Values: metric.Variants[:experiment.Variants]}},
	}
	defEvidence = &metric.Def{
		Name: "leeway_tracker_trial_evidence_ratio", Help: "How strongly viewers with peers seem worse off; 1 switches peer delivery off", Kind: metric.Gauge,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: experiment.Names[:]}},
	}
)

// Metrics lists what a judge counts.
func Metrics() []*metric.Def { return []*metric.Def{defViewers, defEvidence} }

// siteExperiment is one site's. Guarded by Judge.mu.
type siteExperiment struct {
	permille int
	home     signal.ID // what the tracker that decides is found by
	since    time.Time // when the site was last switched: a session that began before does not count
	// pending are viewers whose observation is over and whose slot's is not: when a viewer is counted does not depend on how it fared.
	pending map[int64]*slotCounts
	parts   map[signal.ID]*bus.ExperimentPart // by tracker, this one among them
}

// slotCounts are the counts of one slot's viewers, by window.
type slotCounts [len(experiment.Windows)]experiment.Counts

// observer implements tracker.Observer.
type observer struct {
	judge *Judge

	mu     sync.Mutex
	viewer *observed // guarded by mu; nil: nothing, or not any more
}

// observed is a viewer under observation. Guarded by observer.mu.
type observed struct {
	began   time.Time
	windows int // it counts in the first so many of experiment.Windows
	variant experiment.Variant
	seen    experiment.Seen
}

// New is the judge of a tracker.
func New(cfg Config, host Host) *Judge {
	cfg.Pause = cmp.Or(cfg.Pause, DefaultPause)
	j := &Judge{cfg: cfg, of: host.Settings(), host: host, sites: map[string]*siteExperiment{}}
	for i := range j.subnets {
		j.subnets[i].most = maxSubnets
	}
	for _, s := range j.of.Sites {
		permille := s.Config().Policy.ControlGroupPermille
		if permille <= 0 || permille >= 1000 {
			continue
		}
		key := sha256.Sum256([]byte("leeway trial " + s.Name()))
		j.sites[s.Name()] = &siteExperiment{permille: permille, home: signal.ID(key[:16]), pending: map[int64]*slotCounts{}, parts: map[signal.ID]*bus.ExperimentPart{}}
	}
	return j
}

// Observer implements tracker.Judge.
func (j *Judge) Observer() tracker.Observer { return &observer{judge: j} }

// Begin implements tracker.Observer. A viewer is not observed if another of its subnet was taken of late. One that
// leaves at once, or never joins a swarm, counts as one that had no picture: it knows its group, and must not choose whether to count.
func (o *observer) Begin(site string, from netip.Addr, policy *signal.Policy, now time.Time) {
	if policy.Role == configured.RoleOff {
		return
	}
	windows := o.judge.takes(site, from, now)
	if windows == 0 {
		return
	}
	viewer := &observed{began: now, windows: windows, variant: experiment.Peer}
	if policy.ControlGroup {
		viewer.variant = experiment.Control
	}
	o.mu.Lock()
	o.viewer = viewer
	o.mu.Unlock()
}

// takes says in how many windows, the shortest first, a viewer counts: in those in which this tracker has taken none of its subnet.
// What the viewers of a few subnets claim is so too little to switch a site off (internal/experiment.TestLiesOfAFewSubnetsAreNotEnough).
func (j *Judge) takes(site string, a netip.Addr, now time.Time) (windows int) {
	live := j.live()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sites[site] == nil {
		return 0
	}
	for windows < len(j.subnets) && j.subnets[windows].take(subnetOf(a), now, live*experiment.Windows[windows]) {
		windows++
	}
	return windows
}

// live counts the trackers to which the viewers of one subnet may come.
func (j *Judge) live() time.Duration { return time.Duration(max(1, j.host.Live())) }

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

// Report implements tracker.Observer.
func (o *observer) Report(played, stalled, startup float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.viewer == nil {
		return
	}
	seen := &o.viewer.seen
	seen.PlayedMs += int64(played * 1000)
	seen.StalledMs += int64(stalled * 1000)
	if seen.StartupMs == 0 {
		seen.StartupMs = int64(startup * 1000)
	}
}

// Look implements tracker.Observer. It ends a viewer's observation when its time is over, or the session is.
func (o *observer) Look(site string, now time.Time, ended bool) {
	o.mu.Lock()
	viewer := o.viewer
	over := viewer != nil && (ended || now.Sub(viewer.began) >= experiment.Horizon)
	if over {
		o.viewer = nil
	}
	o.mu.Unlock()
	if over {
		o.judge.observed(site, viewer)
	}
}

// observed takes in a viewer whose observation is over.
func (j *Judge) observed(site string, viewer *observed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	st, slot := j.sites[site], viewer.began.UnixMilli()/experimentSlot.Milliseconds()
	if viewer.began.Before(st.since) {
		return
	}
	if st.pending[slot] == nil {
		st.pending[slot] = &slotCounts{}
	}
	for i := range viewer.windows {
		st.pending[slot][i].Observe(viewer.variant, viewer.seen)
	}
}

// Maintain implements tracker.Judge: it counts viewers whose time is over; now and then it tells others and judges.
func (j *Judge) Maintain(now time.Time) {
	live := j.live()
	since := map[string]time.Time{}
	for _, s := range j.of.Sites {
		_, since[s.Name()] = j.host.SiteSwitch(s.Name())
	}
	var tell []*bus.Experiment
	j.mu.Lock()
	due := now.Sub(j.told) >= experimentEvery
	if due {
		j.told = now
		for i := range j.subnets {
			j.subnets[i].expire(now, live*experiment.Windows[i])
		}
	}
	for site, st := range j.sites {
		if !st.since.Equal(since[site]) {
			st.begin(since[site])
		}
		for variant, n := range st.count(j.host.ID(), now) {
			if n > 0 {
				j.of.Metrics.Add(defViewers, float64(n), site, metric.Variants[variant])
			}
		}
		if due {
			st.forget(now)
			tell = append(tell, st.message(site))
		}
	}
	j.mu.Unlock()
	for _, m := range tell {
		if len(m.Parts) > 0 {
			j.host.Publish(bus.SubjectExperiment, m)
		}
		j.judge(m, now)
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
				*w = bus.ExperimentWindow{Number: number, Counts: counts[i]}
			case number == w.Number:
				w.Counts.Add(&counts[i])
			}
		}
		for v := range n {
			for _, m := range counts[0][experiment.Failure][v] {
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

// Hear implements tracker.Judge: it takes in what others have observed.
func (j *Judge) Hear(m *bus.Experiment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	st := j.sites[m.Site]
	if st == nil || st.permille != m.Permille || st.message(m.Site).SinceMs != m.SinceMs {
		return
	}
	for i := range m.Parts {
		st.hear(&m.Parts[i], j.host.ID())
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
func (j *Judge) judge(m *bus.Experiment, now time.Time) {
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
		j.of.Metrics.Set(defEvidence, e, m.Site, experiment.Names[test])
	}
	if j.host.HomeOf(j.sites[m.Site].home) != j.host.ID() {
		return
	}
	for test, e := range strongest {
		if e < 1 {
			continue
		}
		j.of.Log.Error("viewers with peers are worse off than the control group: peer delivery is switched off", "site", m.Site, "test", experiment.Names[test], "evidence", e, "for", j.cfg.Pause)
		if err := j.host.Switch(m.Site, true, cluster.ByHarm, now.Add(j.cfg.Pause)); err != nil {
			j.of.Log.Error("peer delivery not switched off", "site", m.Site, "error", err)
		}
		return
	}
}
