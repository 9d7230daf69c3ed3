package fleet

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Times of a fleet (spec/cluster.md, "Seeds").
const (
	beatEvery    = 2 * time.Second
	siblingLives = 3 * beatEvery
	shunLeast    = 2 * beatEvery // after the second failure in a row; the first one ends with the next beat
	shunMost     = time.Minute
	maxHolders   = 2 // siblings that an owner asks for what it does not hold, and those that drain
)

// siblings are the other seeds of a fleet, as their beats and their answers say.
type siblings struct {
	fleet sibling.FleetID
	self  signal.ID
	met   chan struct{} // closed once a sibling was heard
	once  sync.Once

	mu   sync.Mutex
	view *cluster.View          // guarded by mu
	all  map[signal.ID]*another // guarded by mu
}

// another is a sibling, and how asking it went.
type another struct {
	address  netip.AddrPort
	draining bool
	failures int
	shunned  time.Time // until then its beats do not make it an owner
}

func newSiblings(id sibling.FleetID, self signal.ID) *siblings {
	return &siblings{fleet: id, self: self, met: make(chan struct{}), view: cluster.NewView(self, siblingLives), all: map[signal.ID]*another{}}
}

// heard notes a seed's beat, and says whether it is of a sibling that was unknown.
func (f *siblings) heard(m *bus.SeedBeat, now time.Time) (isNew bool) {
	if m.Seed == f.self {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Gone || m.Fleet == nil || sibling.FleetID(m.Fleet.ID) != f.fleet {
		f.view.Gone(m.Seed)
		delete(f.all, m.Seed)
		return false
	}
	isNew = f.view.Beat(m.Seed, 0, m.Draining, now)
	if !f.view.Lives(m.Seed) {
		return false // there are too many
	}
	s := f.all[m.Seed]
	if s == nil {
		s = &another{}
		f.all[m.Seed] = s
		f.once.Do(func() { close(f.met) })
	}
	s.address, s.draining = m.Fleet.At(), m.Draining
	if now.Before(s.shunned) {
		f.view.Silent(m.Seed)
	}
	return isNew
}

// asked notes how asking a sibling went. One that could not be reached owns nothing until it beats again; the longer, the
// more often that happened in a row. It says whether that is the first time.
func (f *siblings) asked(id signal.ID, failed bool, now time.Time) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.all[id]
	if s == nil {
		return false
	}
	if !failed {
		s.failures = 0
		return false
	}
	s.failures++
	if s.failures > 1 {
		s.shunned = now.Add(min(shunLeast<<min(s.failures-2, 8), shunMost))
	}
	f.view.Silent(id)
	return s.failures == 1
}

// rank lists those of some seeds that may own a segment, the owner first. Without the own seed in it there is none: a fleet of one.
func (f *siblings) rank(id segment.ID, among []signal.ID) (out []Sibling) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seed := range f.view.Rank(id, among) {
		one := Sibling{ID: seed}
		if s := f.all[one.ID]; s != nil {
			one.Address = s.address
		}
		out = append(out, one)
	}
	return out
}

// holders lists the seeds that the owner of a segment asks for what it does not hold: the next in rank, which were owners before it
// came, those that drain, and others of the fleet, which may have served the title before.
func (f *siblings) holders(id segment.ID, rank []Sibling) []Sibling {
	out := slices.Clone(rank[1:min(1+maxHolders, len(rank))])
	f.mu.Lock()
	defer f.mu.Unlock()
	reached := f.view.Reached()
	var others []swarm.ID
	for id, s := range f.all {
		if s.draining && reached[id] && len(out) < 2*maxHolders {
			out = append(out, Sibling{id, s.address})
		}
		others = append(others, id)
	}
	for _, other := range f.view.Rank(id, others) {
		one := Sibling{other, f.all[other].address}
		if len(out) < 2*maxHolders && !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// heardOf lists the siblings that live, whatever they do now.
func (f *siblings) heardOf() (out []Sibling) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.all {
		out = append(out, Sibling{id, s.address})
	}
	return out
}

// others counts the siblings that go on when this seed drains.
func (f *siblings) others() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _ := f.view.Others()
	return n
}

// drain has the seed own nothing any more, as long as another one is there.
func (f *siblings) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view.Drain()
}

// expire forgets siblings that do not beat any more, and counts those that can be asked, this one among them.
func (f *siblings) expire(now time.Time) (size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view.Expire(now)
	for id := range f.all {
		if !f.view.Lives(id) {
			delete(f.all, id)
		}
	}
	return len(f.view.Reached())
}
