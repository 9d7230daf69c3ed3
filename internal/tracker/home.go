package tracker

import (
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// titleEvery is how often seeds are told of a title that they serve; they forget it after three times that.
	titleEvery = 10 * time.Second
	// titleHold is the least time between two such messages when the number of viewers changes and is not small.
	titleHold = time.Second
	// fewViewers is up to which number every change is told at once: seeds begin to certify at some small number.
	fewViewers = 3
	// secondSeedAbove is the number of viewers from which on a viewer meets two seeds.
	secondSeedAbove = 50
	// perUpdate bounds the introductions that one update brings.
	perUpdate = 8
)

// home is this tracker's share of the swarms.
type home struct {
	t *Tracker

	mu     sync.Mutex
	swarms map[signal.ID]*housed // guarded by mu
}

// housed is a swarm with what its home remembers beside its members. Guarded by home.mu.
type housed struct {
	*swarm.Swarm
	site, title string
	met         map[signal.ID]map[signal.ID]time.Time // member → seed → introduced
	named       time.Time                             // last title message
	told        int                                   // viewers in it
}

func newHome(t *Tracker) *home { return &home{t: t, swarms: map[signal.ID]*housed{}} }

// onRequest answers one HomeRequest.
func (h *home) onRequest(data []byte, reply func([]byte) error) {
	var r bus.HomeRequest
	if !h.t.decode(data, &r) {
		return
	}
	answer := h.handle(&r)
	b, err := bus.Encode(&answer)
	if err == nil {
		err = reply(b) // fails for a request without an inbox, which wants no answer
	}
	if err != nil && !r.Rejoin && r.Op == bus.OpJoin {
		h.t.cfg.Log.Warn("home: join not answered", "error", err)
	}
	if r.Rejoin && len(answer.Peers) > 0 {
		h.t.publish(bus.SubjectDeliver(r.Tracker), &bus.Delivery{Kind: bus.KindIntroduce, Session: r.Session, Swarm: r.Swarm, Peers: answer.Peers})
	}
}

func (h *home) handle(r *bus.HomeRequest) bus.HomeAnswer {
	now := h.t.cfg.Now()
	h.mu.Lock()
	var answer bus.HomeAnswer
	s := h.swarms[r.Swarm]
	enters := r.Op == bus.OpJoin || r.Rejoin
	switch {
	case enters && s == nil:
		if len(h.swarms) >= h.t.cfg.MaxHomes {
			h.mu.Unlock()
			return bus.HomeAnswer{Code: "swarm-full"} // overloaded would be of the socket, and end it
		}
		s = &housed{Swarm: swarm.New(), site: r.Site, title: r.Title, met: map[signal.ID]map[signal.ID]time.Time{}}
		h.swarms[r.Swarm] = s
		fallthrough
	case enters:
		answer = h.join(s, r, now)
	case s == nil:
		answer = bus.HomeAnswer{Unknown: r.Op == bus.OpUpdate}
	case r.Op == bus.OpUpdate:
		answer = h.update(s, r, now)
	case r.Op == bus.OpLeave:
		// A session that went on to another tracker has joined from there; the old tracker's leave comes too late.
		if m := s.Member(swarm.ID(r.Session)); m != nil && m.Tracker == swarm.ID(r.Tracker) {
			s.Leave(swarm.ID(r.Session))
			delete(s.met, r.Session)
		}
	case r.Op == bus.OpFailed:
		s.Failed(swarm.ID(r.Session), swarm.ID(r.Peer), now)
	}
	titles := h.due(r.Swarm, s, now)
	h.mu.Unlock()
	h.tell(titles)
	return answer
}

func (h *home) join(s *housed, r *bus.HomeRequest, now time.Time) bus.HomeAnswer {
	if s.Member(swarm.ID(r.Session)) == nil && s.Len() >= h.t.cfg.MaxMembers {
		return bus.HomeAnswer{Code: "swarm-full"}
	}
	m := swarm.Member{
		ID: swarm.ID(r.Session), Tracker: swarm.ID(r.Tracker), Role: r.Role, Group: r.Group, Address: r.Address, Subnet: r.Subnet,
		Region: r.Region, Manifest: r.Manifest, Joined: now,
	}
	s.Join(m)
	s.refresh(r, now)
	if !r.Rejoin {
		delete(s.met, r.Session) // a viewer that joins anew has no links
	}
	var peers []bus.Target
	if r.Op == bus.OpJoin { // a keep-alive asks for nothing
		peers = h.introduce(s, r, now)
	}
	answer := bus.HomeAnswer{Viewers: s.Viewers(), Seeds: s.seedsMet(r.Session)}
	n := min(r.Offers, len(peers))
	answer.Offers, answer.Peers = peers[:n], peers[n:]
	return answer
}

func (h *home) update(s *housed, r *bus.HomeRequest, now time.Time) bus.HomeAnswer {
	if s.Member(swarm.ID(r.Session)) == nil {
		return bus.HomeAnswer{Unknown: true}
	}
	s.refresh(r, now)
	answer := bus.HomeAnswer{Viewers: s.Viewers(), Peers: h.introduce(s, r, now)}
	answer.Seeds = s.seedsMet(r.Session)
	return answer
}

// refresh takes over what both join and update carry.
func (s *housed) refresh(r *bus.HomeRequest, now time.Time) {
	m := s.Member(swarm.ID(r.Session))
	m.Tracker, m.Seen, m.RTT = swarm.ID(r.Tracker), now, time.Duration(r.RTTMs)*time.Millisecond
	m.Saturated, m.Links, m.Want = r.Saturated, r.Links, r.Want
	if r.Range != nil {
		m.Range = swarm.Range{From: r.Range.From, To: r.Range.To}
	}
}

func (s *housed) seedsMet(session signal.ID) int { return len(s.met[session]) }

// introduce picks who the session is to offer to: a seed that it has not met for a while, then viewers. Under mu.
func (h *home) introduce(s *housed, r *bus.HomeRequest, now time.Time) []bus.Target {
	m := s.Member(swarm.ID(r.Session))
	if m.Role == swarm.RoleOff || r.Want == 0 {
		return nil
	}
	peers := h.introduceSeeds(s, r, now)
	for _, v := range s.Introduce(m.ID, min(r.Want-len(peers), perUpdate), now) {
		peers = append(peers, bus.Target{Peer: signal.ID(v.ID), Role: "viewer", Tracker: signal.ID(v.Tracker)})
	}
	return peers
}

func (h *home) introduceSeeds(s *housed, r *bus.HomeRequest, now time.Time) []bus.Target {
	if s.Manifest() == "" {
		return nil // seeds follow a manifest; without one they have nothing to certify
	}
	want := 1
	if s.Viewers() > secondSeedAbove {
		want = 2
	}
	able := slices.DeleteFunc(h.t.roster.seedsFor(s.site, r.Swarm), func(seed signal.ID) bool {
		return s.HasFailed(swarm.ID(r.Session), swarm.ID(seed))
	})
	met := s.met[r.Session]
	if met == nil {
		met = map[signal.ID]time.Time{}
		s.met[r.Session] = met
	}
	var out []bus.Target
	live := map[signal.ID]bool{}
	for _, seed := range able[:min(want, len(able))] {
		live[seed] = true
		if at, ok := met[seed]; ok && now.Sub(at) < swarm.Retry {
			continue
		}
		met[seed] = now
		out = append(out, bus.Target{Peer: seed, Role: "seed"})
	}
	for seed := range met {
		if !live[seed] {
			delete(met, seed)
		}
	}
	return out
}

// maintain expires members, reminds seeds of their titles and forgets swarms that have their home elsewhere now: their
// members are told there by who holds them, and seeds must not hear of them twice.
func (h *home) maintain(now time.Time) {
	h.mu.Lock()
	var titles []naming
	viewers, seeds, swarms := 0, 0, 0
	for id, s := range h.swarms {
		if h.t.homeOf(id) != h.t.id {
			delete(h.swarms, id)
			continue
		}
		s.Expire(now.Add(-3*h.t.cfg.UpdateInterval), now)
		for session := range s.met {
			if s.Member(swarm.ID(session)) == nil {
				delete(s.met, session)
			}
		}
		titles = append(titles, h.due(id, s, now)...)
		viewers += s.Len()
		seeds += s.seedsInUse()
		swarms++
	}
	h.mu.Unlock()
	h.tell(titles)
	h.t.cfg.Metrics.Set(defSwarms, float64(swarms))
	h.t.cfg.Metrics.Set(defMembers, float64(viewers), "viewer")
	h.t.cfg.Metrics.Set(defMembers, float64(seeds), "seed")
}

// seedsInUse counts the seeds that members were introduced to.
func (s *housed) seedsInUse() int {
	all := map[signal.ID]bool{}
	for _, met := range s.met {
		for seed := range met {
			all[seed] = true
		}
	}
	return len(all)
}

// naming is a title message to be sent.
type naming struct {
	seeds []signal.ID
	title bus.Title
}

// due returns the title message that a swarm owes its seeds, if any, and forgets a swarm that is empty. Under mu.
func (h *home) due(id signal.ID, s *housed, now time.Time) []naming {
	if s == nil {
		return nil
	}
	n, since := s.Viewers(), now.Sub(s.named)
	manifest := s.Manifest()
	if s.Len() == 0 {
		delete(h.swarms, id)
		if s.named.IsZero() {
			return nil
		}
	} else if manifest == "" || since < titleEvery && (n == s.told || since < titleHold && min(n, s.told) > fewViewers) {
		return nil
	}
	seeds := h.t.roster.seedsFor(s.site, id)
	want := 1
	if n > secondSeedAbove {
		want = 2
	}
	seeds = seeds[:min(want, len(seeds))]
	if len(seeds) == 0 {
		return nil
	}
	s.named, s.told = now, n
	return []naming{{seeds, bus.Title{Site: s.site, Title: s.title, Manifest: manifest, Swarm: id, Viewers: n}}}
}

func (h *home) tell(titles []naming) {
	for _, n := range titles {
		for _, seed := range n.seeds {
			h.t.publish(bus.SubjectSeedDeliver(seed), &bus.SeedDelivery{Kind: bus.KindTitle, Title: &n.title})
		}
	}
}
