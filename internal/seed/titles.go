package seed

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// titles are the swarms that a seed serves, as trackers name them.
type titles struct {
	sites   map[string]*siteState
	catalog *catalog
	most    int

	mu  sync.Mutex
	all map[swarm.ID]*title // guarded by mu; by swarm
}

func newTitles(sites map[string]*siteState, c *catalog, most int) *titles {
	return &titles{sites: sites, catalog: c, most: most, all: map[swarm.ID]*title{}}
}

// get returns the title of a swarm, nil if it is not served.
func (t *titles) get(swarm swarm.ID) *title {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[swarm]
}

// named takes in that a title is wanted, and by how many. full says that there is no room for it now.
func (t *titles) named(m *bus.Title) (one *title, full bool) {
	site := t.sites[m.Site]
	if site == nil || m.Manifest == "" {
		return nil, false // no manifest: no seed serves the swarm
	}
	if key, err := site.rules.KeyOfPath(m.Manifest); err != nil || key != m.Manifest {
		return nil, false // what the tracker sends is a key already; anything else asks the origin for what the site does not name
	}
	beside := m.Beside
	if key, err := site.rules.KeyOfPath(beside); err != nil || key != beside {
		beside = "" // likewise
	}
	swarm := m.Swarm
	t.mu.Lock()
	defer t.mu.Unlock()
	one = t.all[swarm]
	chosen := m.Chosen || one == nil // the first message is taken at its word
	if one == nil {
		if m.Viewers == 0 {
			return nil, false
		}
		if len(t.all) >= t.most && !t.makeRoom(m.Viewers) {
			return nil, true
		}
		one = newTitle(t.catalog, site, swarm, m.Manifest)
		t.all[swarm] = one
	}
	if one.site != site {
		return nil, false
	}
	one.name(m.Viewers, m.Seeds)
	switch {
	case chosen:
		one.choose(m.Manifest, beside)
	case m.Credited != nil: // by all members, and not by those of a part
		one.adds(m.Manifest, beside)
	}
	return one, false
}

// resting lists the swarms of each site whose titles rest.
func (t *titles) resting() map[string][]signal.ID {
	all := map[string][]signal.ID{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.sites {
		all[name] = nil
	}
	for swarm, one := range t.all {
		if one.rests() {
			all[one.site.name] = append(all[one.site.name], swarm)
		}
	}
	return all
}

// restingTold is what of it fits into a beat.
func (t *titles) restingTold() map[string][]signal.ID {
	all, left := t.resting(), bus.MaxResting
	for site, swarms := range all {
		told := min(left, len(swarms))
		if all[site], left = swarms[:told], left-told; told == 0 {
			delete(all, site)
		}
	}
	return all
}

// makeRoom drops a title without links that has fewer viewers than one that is wanted: a thousand titles that are named and not
// watched must not keep out those that are watched. Under mu.
func (t *titles) makeRoom(viewers int) bool {
	var least *title
	for _, one := range t.all {
		if n := one.audience(); one.links.Load() == 0 && n < viewers && (least == nil || n < least.audience()) {
			least = one
		}
	}
	if least == nil {
		return false
	}
	delete(t.all, least.swarm)
	return true
}

// forget drops titles that nothing wants any more, and returns how many are left and the manifests that these name.
func (t *titles) forget(now time.Time) (left int, manifests map[manifestID]bool) {
	manifests = map[manifestID]bool{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for swarm, one := range t.all {
		if one.links.Load() == 0 && one.stale(now) {
			delete(t.all, swarm)
			continue
		}
		for _, manifest := range one.manifests() {
			manifests[manifestID{one.site.name, manifest}] = true
		}
	}
	return len(t.all), manifests
}
