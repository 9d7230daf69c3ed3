package seed

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Times of a fleet (spec/cluster.md, "Seeds").
const (
	siblingLives = 3 * beatEvery
	shunLeast    = 2 * beatEvery // after the second failure in a row; the first one ends with the next beat
	shunMost     = time.Minute
)

// Fleet is what makes a seed one of several.
type Fleet struct {
	ID       sibling.FleetID
	Address  netip.AddrPort // where siblings reach this seed
	Siblings Siblings
	Patience time.Duration // within which an owner has a segment; 0: 5 s
	Linger   time.Duration // for which a seed that drains stays for its siblings, if there are any
	WarmUp   *WarmUp       // before viewers come; nil: none
}

// Sibling is another seed of the fleet.
type Sibling struct {
	ID      signal.ID
	Address netip.AddrPort
}

// Siblings asks other seeds. Errors are *SiblingError. accept judges a certificate, and how many bytes come with it, before
// these are taken.
type Siblings interface {
	Ask(ctx context.Context, from signal.ID, to Sibling, q sibling.Question, accept func(certificate []byte, length int) error) (*sibling.Answer, error)
	// Wanted asks what viewers of a sibling asked for of late; any error will do.
	Wanted(ctx context.Context, from signal.ID, to Sibling) (sibling.Wanted, error)
}

// SiblingOutcome is what came of a question to a sibling: the closed set of the metric.
type SiblingOutcome string

// The outcomes.
const (
	SiblingOK          SiblingOutcome = "ok"
	SiblingNone        SiblingOutcome = "none"        // it has no certificate, or does not hold the segment
	SiblingUnreachable SiblingOutcome = "unreachable" // or broke off
	SiblingSlow        SiblingOutcome = "slow"        // worked on the answer for too long
	SiblingRefused     SiblingOutcome = "refused"     // busy
	SiblingInvalid     SiblingOutcome = "invalid"     // a certificate that does not hold, other bytes, no answer at all
)

// SiblingOutcomes lists the closed set.
var SiblingOutcomes = []SiblingOutcome{SiblingOK, SiblingNone, SiblingUnreachable, SiblingSlow, SiblingRefused, SiblingInvalid}

// SiblingError is why a question brought no answer.
type SiblingError struct {
	Outcome SiblingOutcome
	Cause   error
}

func (e *SiblingError) Error() string {
	return fmt.Sprintf("ask a sibling: %s: %v", e.Outcome, e.Cause)
}

// Unwrap is the cause.
func (e *SiblingError) Unwrap() error { return e.Cause }

// fleet is what a seed knows of its siblings. A seed that is alone has an empty one.
type fleet struct {
	cfg  *Fleet // nil: alone
	self signal.ID
	met  chan struct{} // closed once a sibling was heard
	once sync.Once

	mu       sync.Mutex
	view     *cluster.View          // guarded by mu
	siblings map[signal.ID]*another // guarded by mu
}

// another is a sibling, and how asking it went.
type another struct {
	address  netip.AddrPort
	draining bool
	failures int
	shunned  time.Time // until then its beats do not make it an owner
}

func newFleet(cfg *Fleet, self signal.ID) *fleet {
	if cfg != nil {
		setDefault(&cfg.Patience, ownerAnswer)
	}
	return &fleet{cfg: cfg, self: self, met: make(chan struct{}), view: cluster.NewView(swarm.ID(self), siblingLives), siblings: map[signal.ID]*another{}}
}

// heard notes a seed's beat, and says whether it is of a sibling that was unknown.
func (f *fleet) heard(m *bus.SeedBeat, now time.Time) (isNew bool) {
	if f.cfg == nil || m.Seed == f.self {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Gone || m.Fleet == nil || sibling.FleetID(m.Fleet.ID) != f.cfg.ID {
		f.view.Gone(swarm.ID(m.Seed))
		delete(f.siblings, m.Seed)
		return false
	}
	isNew = f.view.Beat(swarm.ID(m.Seed), 0, m.Draining, now)
	if !f.view.Lives(swarm.ID(m.Seed)) {
		return false // there are too many
	}
	s := f.siblings[m.Seed]
	if s == nil {
		s = &another{}
		f.siblings[m.Seed] = s
		f.once.Do(func() { close(f.met) })
	}
	s.address, s.draining = m.Fleet.At(), m.Draining
	if now.Before(s.shunned) {
		f.view.Silent(swarm.ID(m.Seed))
	}
	return isNew
}

// asked notes how asking a sibling went. One that could not be reached owns nothing until it beats again; the longer, the
// more often that happened in a row. It says whether that is the first time.
func (f *fleet) asked(id signal.ID, failed bool, now time.Time) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.siblings[id]
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
	f.view.Silent(swarm.ID(id))
	return s.failures == 1
}

// rank lists who of some seeds may own a segment, the owner first. Without the own seed in it nobody is asked: a fleet of one.
func (f *fleet) rank(id segment.ID, among []signal.ID) (out []Sibling) {
	if f.cfg == nil {
		return nil
	}
	ids := make([]swarm.ID, len(among))
	for i, seed := range among {
		ids[i] = swarm.ID(seed)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seed := range f.view.Rank(swarm.ID(id), ids) {
		one := Sibling{ID: signal.ID(seed)}
		if s := f.siblings[one.ID]; s != nil {
			one.Address = s.address
		}
		out = append(out, one)
	}
	return out
}

// holders lists whom the owner of a segment asks for what it does not hold: the next in rank, who were owners before it came,
// who drains, and others of the fleet, who may have served the title before.
func (f *fleet) holders(id segment.ID, rank []Sibling) []Sibling {
	out := slices.Clone(rank[1:min(1+maxHolders, len(rank))])
	f.mu.Lock()
	defer f.mu.Unlock()
	reached := f.view.Reached()
	var others []swarm.ID
	for id, s := range f.siblings {
		if s.draining && reached[swarm.ID(id)] && len(out) < 2*maxHolders {
			out = append(out, Sibling{id, s.address})
		}
		others = append(others, swarm.ID(id))
	}
	for _, other := range f.view.Rank(swarm.ID(id), others) {
		one := Sibling{signal.ID(other), f.siblings[signal.ID(other)].address}
		if len(out) < 2*maxHolders && !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// heardOf lists the siblings that live, whatever they do now.
func (f *fleet) heardOf() (out []Sibling) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.siblings {
		out = append(out, Sibling{id, s.address})
	}
	return out
}

// others counts the siblings that go on when this seed drains.
func (f *fleet) others() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _ := f.view.Others()
	return n
}

// drain has the seed own nothing any more, as long as another one is there.
func (f *fleet) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view.Drain()
}

// expire forgets siblings that do not beat any more, and counts those that can be asked, this one among them.
func (f *fleet) expire(now time.Time) (size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view.Expire(now)
	for id := range f.siblings {
		if !f.view.Lives(swarm.ID(id)) {
			delete(f.siblings, id)
		}
	}
	return len(f.view.Reached())
}

// onSeedBeat takes in what another seed says of itself.
func (s *Service) onSeedBeat(data []byte) {
	var m bus.SeedBeat
	if bus.Decode(data, &m) != nil || m.Seed == s.id {
		return
	}
	now := s.cfg.Now()
	s.learnKeys(m.VerifyKeys, now)
	s.mu.Lock()
	stopping := s.stopping
	s.mu.Unlock()
	if s.fleet.heard(&m, now) && !stopping {
		s.beat(false) // so that the newcomer knows us before its first viewer comes
	}
}

// learnKeys notes what other seeds sign with: a fleet hands on what one of them certified.
func (s *Service) learnKeys(keys []bus.SeedKey, now time.Time) {
	if s.fleet.cfg == nil {
		return
	}
	for _, k := range keys {
		if k.Alg != 1 {
			continue
		}
		key := certificate.VerifyKey{KeyID: certificate.KeyID(k.KeyID), Key: k.Key, Sites: k.Sites}
		if err := s.verifiers.learn(key, now); err != nil {
			s.cfg.Log.Debug("a verify key of another seed was dropped", "error", err)
		}
	}
}
