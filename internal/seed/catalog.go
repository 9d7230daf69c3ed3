package seed

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Bounds of what is in memory of playlists (spec/budgets.md).
const (
	titlesOfSession = 8                // manifests that are in memory because one session wants them
	shareOfSubnet   = 4                // of all manifests that may be in memory, a subnet's sessions have a part
	leftAlone       = 30 * time.Second // without being wanted: goes before others under pressure
	maxParsing      = 2                // playlists that are parsed at a time
	maxPayers       = 8                // parties that are remembered of a manifest
)

// party is a session with what else it is charged to. The zero value is a sibling seed, for viewers that have paid there.
type party struct {
	session signal.ID
	subnet  string // keyed hash; empty: unknown
	subject string // of the token, keyed hash; empty: none
}

type manifestID struct{ site, manifest string }

// entry is an index with what the catalog decides by.
type entry struct {
	*index
	owner  party   // had it loaded first; its subnet is charged for the memory
	payers []party // wanted it of late, the latest first; charged for its loads
	wanted time.Time
	bytes  int64
}

// catalog holds the indexes: one for each manifest, by however many titles it is named, and no more bytes than there is room for.
type catalog struct {
	tasks   *tasks
	tolls   *tolls
	limit   int64 // bytes of all indexes
	most    int   // indexes
	parsing chan struct{}
	sink    metric.Sink
	log     *slog.Logger
	now     func() time.Time

	mu    sync.Mutex
	all   map[manifestID]*entry // guarded by mu
	bytes int64                 // guarded by mu
}

func newCatalog(t *tasks, limit int64, most int, sink metric.Sink, log *slog.Logger, now func() time.Time) *catalog {
	return &catalog{
		tasks: t, tolls: newTolls(now), limit: limit, most: most, parsing: make(chan struct{}, maxParsing), sink: sink, log: log, now: now,
		all: map[manifestID]*entry{},
	}
}

func (c *catalog) peek(id manifestID) *index {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.all[id]; e != nil {
		return e.index
	}
	return nil
}

// want returns the index of a manifest, and begins to follow it for the party if it is not there. nil: the seed ends.
func (c *catalog) want(site *siteState, manifest string, p party) *index {
	id, now := manifestID{site.name, manifest}, c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.all[id]
	if e == nil {
		ix := newIndex(c.tasks.ctx, c, site, manifest)
		if !c.tasks.begin(ix.follow) {
			ix.cancel()
			return nil
		}
		e = c.add(ix, p, now)
	}
	if _, live := e.holds(); live && now.Sub(e.wanted) > followedFor { // its playlists are not loaded any more
		select {
		case e.kick <- struct{}{}:
		default:
		}
	}
	e.wanted = now
	e.pays(p)
	return e.index
}

// add takes in an index that a party wants, and makes room for it. Under mu.
func (c *catalog) add(ix *index, p party, now time.Time) *entry {
	e := &entry{index: ix, owner: p, bytes: indexBytes, wanted: now}
	c.all[manifestID{ix.site.name, ix.manifest}] = e
	c.bytes += e.bytes
	c.yields(e)
	c.trim(e, now)
	return e
}

// pays notes a party that is charged for loads. Siblings are not: the site is.
func (e *entry) pays(p party) {
	if p == (party{}) || len(e.payers) > 0 && e.payers[0] == p {
		return
	}
	e.payers = slices.DeleteFunc(e.payers, func(o party) bool { return o == p })
	e.payers = slices.Insert(e.payers[:min(len(e.payers), maxPayers-1)], 0, p)
}

// payers lists the parties that wanted a manifest of late.
func (c *catalog) payers(ix *index) []party {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.of(ix); e != nil {
		return slices.Clone(e.payers)
	}
	return nil
}

// of is the entry of an index, nil once it was dropped. Under mu.
func (c *catalog) of(ix *index) *entry {
	if e := c.all[manifestID{ix.site.name, ix.manifest}]; e != nil && e.index == ix {
		return e
	}
	return nil
}

// wanted says whether an index was wanted of late.
func (c *catalog) wanted(ix *index, within time.Duration) bool {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of(ix)
	return e != nil && now.Sub(e.wanted) <= within
}

// weigh takes in how long an index has become, and makes room for it. false: it is not kept.
func (c *catalog) weigh(ix *index) bool {
	weight, now := ix.weight(), c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of(ix)
	if e == nil {
		return false
	}
	c.bytes += weight - e.bytes
	e.bytes = weight
	if weight > c.limit/2 { // one must not push out everything
		c.drop(e)
		return false
	}
	c.trim(e, now)
	return true
}

// yields has what the same session, and the same subnet, wanted before make room for the last. Under mu.
func (c *catalog) yields(last *entry) {
	p := last.owner
	if p == (party{}) {
		return
	}
	c.trimTo(titlesOfSession, last, func(e *entry) bool { return e.owner.session == p.session })
	if p.subnet != "" {
		c.trimTo(max(titlesOfSession, c.most/shareOfSubnet), last, func(e *entry) bool { return e.owner.subnet == p.subnet })
	}
}

// trim drops indexes until the bounds of all hold. Under mu.
func (c *catalog) trim(last *entry, now time.Time) {
	for len(c.all) > c.most || c.bytes > c.limit {
		e := c.victim(last, now)
		if e == nil {
			return
		}
		c.drop(e)
	}
}

// trimTo drops the least recently wanted of some while they are more than so many. Under mu.
func (c *catalog) trimTo(most int, last *entry, of func(*entry) bool) {
	n := 0
	for _, e := range c.all {
		if of(e) {
			n++
		}
	}
	for ; n > most; n-- {
		if e := c.oldest(func(e *entry) bool { return e != last && of(e) }); e != nil {
			c.drop(e)
		}
	}
}

// victim is the index that goes next: the least recently wanted of those that were left alone; where none was, of those of the
// subnet that takes the most memory. Under mu.
func (c *catalog) victim(last *entry, now time.Time) *entry {
	if e := c.oldest(func(e *entry) bool { return e != last && now.Sub(e.wanted) > leftAlone }); e != nil {
		return e
	}
	sums := map[string]int64{}
	for _, e := range c.all {
		sums[e.owner.subnet] += e.bytes
	}
	for len(sums) > 0 {
		heaviest, most := "", int64(-1)
		for subnet, n := range sums {
			if n > most {
				heaviest, most = subnet, n
			}
		}
		if e := c.oldest(func(e *entry) bool { return e != last && e.owner.subnet == heaviest }); e != nil {
			return e
		}
		delete(sums, heaviest)
	}
	return nil
}

// oldest is the least recently wanted of some. Under mu.
func (c *catalog) oldest(of func(*entry) bool) (least *entry) {
	for _, e := range c.all {
		if of(e) && (least == nil || e.wanted.Before(least.wanted)) {
			least = e
		}
	}
	return least
}

// drop forgets an index. Under mu.
func (c *catalog) drop(e *entry) {
	e.cancel()
	delete(c.all, manifestID{e.site.name, e.manifest})
	c.bytes -= e.bytes
	c.sink.Add(mIndexEvictions, 1)
}

// forget drops what no title names any more.
func (c *catalog) forget(named map[manifestID]bool) {
	c.tolls.forget()
	now := c.now()
	c.mu.Lock()
	for id, e := range c.all {
		if !named[id] && now.Sub(e.wanted) > followedFor {
			e.cancel()
			delete(c.all, id)
			c.bytes -= e.bytes
		}
	}
	bytes := c.bytes
	c.mu.Unlock()
	c.sink.Set(mIndexBytes, float64(bytes))
}
