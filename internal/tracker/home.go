package tracker

import (
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
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
	// answerKept is how long an answer can be asked for again.
	answerKept = 10 * time.Second
	// perUpdate bounds the introductions that one update brings.
	perUpdate = 8
)

// home is this tracker's share of the swarms.
type home struct {
	*replica
	subjects *subjects
	send     func(to signal.ID, d *bus.Delivery)

	mu      sync.Mutex
	swarms  map[signal.ID]*housed // guarded by mu, by the key of the part
	owed    []naming              // guarded by mu: title messages, the first due first
	telling bool                  // guarded by mu: a goroutine sends them
}

// housed is a swarm, or a part of one, with what its home remembers beside its members. Guarded by home.mu.
type housed struct {
	*swarm.Swarm
	id          signal.ID
	part        cluster.Part
	level       int       // that the part has been halved to
	leaving     int       // members that belong elsewhere since, and have not gone yet; those that ended meanwhile may be among them
	asked       time.Time // latest request
	site, title string
	answered    map[signal.ID]answered
	met         map[signal.ID]map[signal.ID]time.Time // member → seed → introduced
	named       time.Time                             // last title message
	told        bus.Title                             // what it said
	seeds       []signal.ID                           // that it went to
	made        time.Time                             // when the swarm came here
	changes     int                                   // of manifests: those that are counted
}

// answered is what a session was answered last: a request that comes again, for the answer was lost, gets the same.
type answered struct {
	tracker signal.ID // that asked: a session that moved counts anew
	serial  uint64
	answer  bus.HomeAnswer
	at      time.Time
}

func newHome(r *replica, send func(to signal.ID, d *bus.Delivery)) *home {
	return &home{replica: r, subjects: newSubjects(), send: send, swarms: map[signal.ID]*housed{}}
}

// onRequest answers one HomeRequest of another tracker.
func (h *home) onRequest(data []byte, reply func([]byte) error) {
	var r bus.HomeRequest
	if !h.decode(data, &r) {
		return
	}
	answer := h.answer(&r)
	b, err := bus.Encode(&answer)
	if err == nil {
		err = reply(b) // fails for a request without an inbox, which wants no answer
	}
	if err != nil && !r.Rejoin && r.Op == bus.OpJoin {
		h.cfg.Log.Warn("home: join not answered", "error", err)
	}
}

// answer handles a request; what is for a viewer that did not ask goes out by delivery.
func (h *home) answer(r *bus.HomeRequest) bus.HomeAnswer {
	answer := h.handle(r)
	if r.Rejoin && len(answer.Peers) > 0 && h.roster.lives(r.Tracker) {
		h.send(r.Tracker, &bus.Delivery{Kind: bus.KindIntroduce, Session: r.Session, Swarm: r.Swarm, Peers: answer.Peers})
	}
	return answer
}

func (h *home) handle(r *bus.HomeRequest) bus.HomeAnswer {
	now := h.cfg.Now()
	switch r.Op {
	case bus.OpStats:
		h.hear(r, now)
		return bus.HomeAnswer{}
	case bus.OpEnter, bus.OpQuit:
		return h.subjects.handle(r, h.cfg.MaxPerSubject, h.cfg.MaxHomes, now)
	}
	return h.ofMember(r, now)
}

// ofMember handles what is of a member of a swarm, or of one that would be.
func (h *home) ofMember(r *bus.HomeRequest, now time.Time) bus.HomeAnswer {
	part := cluster.Part{Number: r.Part, Level: r.Level}
	key := part.Key(r.Swarm)
	h.mu.Lock()
	var answer bus.HomeAnswer
	s := h.swarms[key]
	enters := r.Op == bus.OpJoin || r.Rejoin
	if s != nil && r.Serial != 0 && !r.Rejoin {
		if a := s.answered[r.Session]; a.serial == r.Serial && a.tracker == r.Tracker {
			h.mu.Unlock()
			return a.answer
		}
	}
	switch {
	case enters && s == nil:
		if len(h.swarms) >= h.cfg.MaxHomes {
			h.mu.Unlock()
			return bus.HomeAnswer{Code: "swarm-full"} // overloaded would be of the socket, and end it
		}
		s = &housed{
			Swarm: swarm.New(), id: r.Swarm, part: part, level: part.Level, site: r.Site, title: r.Title,
			met: map[signal.ID]map[signal.ID]time.Time{}, answered: map[signal.ID]answered{}, made: now,
		}
		h.swarms[key] = s
		fallthrough
	case enters:
		answer = h.join(s, r, now)
	case s == nil:
		answer = bus.HomeAnswer{Unknown: r.Op == bus.OpUpdate}
	case r.Op == bus.OpUpdate:
		answer = h.update(s, r, now)
	case r.Op == bus.OpLeave:
		// A session that went on to another tracker has joined from there; the old tracker's leave comes too late.
		if m := s.Member(r.Session); m != nil && m.Tracker == r.Tracker {
			s.leave(r.Session)
		}
	case r.Op == bus.OpFailed:
		s.Failed(r.Session, r.Peer, now)
	}
	if r.Tracker != h.id && r.Serial != 0 && !r.Rejoin && s != nil && s.Member(r.Session) != nil {
		s.answered[r.Session] = answered{r.Tracker, r.Serial, answer, now}
	}
	if s != nil {
		s.asked = now
	}
	changes := s.manifestChanges()
	owes := h.due(key, s, now)
	h.mu.Unlock()
	if changes > 0 {
		h.cfg.Metrics.Add(defManifests, float64(changes))
	}
	if owes {
		h.tell()
	}
	return answer
}

// manifestChanges counts how often another manifest has got a majority since it was asked for last.
func (s *housed) manifestChanges() int {
	if s == nil {
		return 0
	}
	n := s.ManifestChanges() - s.changes
	s.changes += n
	return n
}

func (s *housed) leave(session signal.ID) {
	s.Leave(session)
	delete(s.met, session)
	delete(s.answered, session)
}

// holder is the tracker that a member is registered at.
func (h *home) holder(key, session signal.ID) (tracker signal.ID, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.swarms[key]
	if s == nil {
		return signal.ID{}, false
	}
	m := s.Member(session)
	if m == nil {
		return signal.ID{}, false
	}
	return m.Tracker, true
}

func (h *home) join(s *housed, r *bus.HomeRequest, now time.Time) bus.HomeAnswer {
	if s.Member(r.Session) == nil {
		if s.Len()-s.leaving >= h.cfg.MaxMembers && s.level < cluster.MaxLevel {
			s.level++
			s.countLeaving()
		}
		to := s.elsewhere(r.Group, r.Address, r.Session)
		switch {
		case to != nil && !r.Rejoin: // one that wants no answer is told at its next update
			return bus.HomeAnswer{Split: to}
		case s.Len()-s.leaving >= 2*h.cfg.MaxMembers:
			return bus.HomeAnswer{Code: "swarm-full"}
		}
	}
	m := swarm.Member{
		ID: r.Session, Tracker: r.Tracker, Role: r.Role, Manifest: r.Manifest, Joined: now,
		Labels: swarm.Labels{Group: r.Group, Address: r.Address, Subnet: r.Subnet, Region: r.Region, Subject: r.Subject},
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
	answer := bus.HomeAnswer{Viewers: s.Viewers(), Seeds: s.seedsMet(r.Session), Banned: s.banned(r.Session, now), Manifest: s.Manifest()}
	n := min(r.Offers, len(peers))
	answer.Offers, answer.Peers = peers[:n], peers[n:]
	return answer
}

func (h *home) update(s *housed, r *bus.HomeRequest, now time.Time) bus.HomeAnswer {
	m := s.Member(r.Session)
	if m == nil {
		return bus.HomeAnswer{Unknown: true}
	}
	if to := s.elsewhere(m.Group, m.Address, r.Session); to != nil && !r.Rejoin {
		s.leave(r.Session)
		s.leaving = max(0, s.leaving-1)
		return bus.HomeAnswer{Split: to}
	}
	s.refresh(r, now)
	answer := bus.HomeAnswer{Viewers: s.Viewers(), Banned: s.banned(r.Session, now), Manifest: s.Manifest(), Peers: h.introduce(s, r, now)}
	answer.Seeds = s.seedsMet(r.Session)
	return answer
}

// refresh takes over what both join and update carry.
func (s *housed) refresh(r *bus.HomeRequest, now time.Time) {
	m := s.Member(r.Session)
	m.Away, m.Tracker, m.Seen, m.RTT = false, r.Tracker, now, time.Duration(r.RTTMs)*time.Millisecond
	m.Saturated, m.Want = r.Saturated, r.WantsViewers()
	if r.Range != nil {
		m.Range = swarm.Range{From: r.Range.From, To: r.Range.To}
	}
}

func (s *housed) banned(session signal.ID, now time.Time) bool {
	return s.Member(session).Banned.After(now)
}

func (s *housed) seedsMet(session signal.ID) int { return len(s.met[session]) }

// introduce picks the peers that the session is to offer to: a seed that it has not met for a while, then viewers. Under mu.
func (h *home) introduce(s *housed, r *bus.HomeRequest, now time.Time) []bus.Target {
	m := s.Member(r.Session)
	if m.Role == swarm.RoleOff || r.Want == 0 || h.few(s) {
		return nil
	}
	peers := h.introduceSeeds(s, r, now)
	for _, v := range s.Introduce(m.ID, min(r.Want-len(peers), r.WantsViewers(), perUpdate), now) {
		peers = append(peers, bus.Target{Peer: v.ID, Role: "viewer", Tracker: v.Tracker})
	}
	return peers
}

// few says whether the site wants more viewers of a title before peers are introduced. A part of a swarm is of one that had many.
func (h *home) few(s *housed) bool {
	site := h.sites[s.site]
	return site != nil && s.level == 0 && s.Viewers() < site.Config().Policy.MinViewers
}

func (h *home) introduceSeeds(s *housed, r *bus.HomeRequest, now time.Time) []bus.Target {
	if s.Manifest() == "" {
		return nil // seeds follow a manifest; without one they have nothing to certify
	}
	want := seedsToMeet(s.Viewers())
	able := slices.DeleteFunc(h.roster.meeting(s.site, s.id, r.Session, s.Viewers(), s.seeds), func(seed signal.ID) bool {
		return s.HasFailed(r.Session, seed)
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

// maintain expires members, reminds seeds of their titles and forgets swarms that have their home elsewhere now, once
// no session asks for them here: their members are told there by the tracker that holds them, and seeds must not hear of them twice.
func (h *home) maintain(now time.Time) {
	reached := h.reached()
	h.mu.Lock()
	viewers, seeds, swarms, changes := 0, 0, 0, 0
	for key, s := range h.swarms {
		if h.HomeOf(key) != h.id {
			if now.Sub(s.asked) > h.roster.timeout { // the asking tracker has heard, or not heard, what this tracker has yet to
				delete(h.swarms, key)
			}
			continue
		}
		s.Expire(now.Add(-3*h.cfg.UpdateInterval), now)
		for m := range s.Members() {
			m.Away = !reached[m.Tracker]
		}
		for session := range s.met {
			if s.Member(session) == nil {
				delete(s.met, session)
			}
		}
		for session, a := range s.answered {
			if now.Sub(a.at) > answerKept {
				delete(s.answered, session)
			}
		}
		if s.level > s.part.Level && s.Len() < h.cfg.MaxMembers/4 {
			s.level--
		}
		if s.leaving > 0 {
			s.countLeaving()
		}
		if !s.named.IsZero() {
			if seeds, _ := h.roster.serving(s.site, s.id, s.Viewers()); !slices.Equal(seeds, s.seeds) {
				s.named = now.Add(-titleEvery) // the seeds of the swarm are to know of each other at once
			}
		}
		changes += s.manifestChanges()
		h.due(key, s, now)
		viewers += s.Len()
		seeds += s.seedsInUse()
		swarms++
	}
	h.mu.Unlock()
	h.tell()
	h.cfg.Metrics.Add(defManifests, float64(changes))
	h.cfg.Metrics.Set(defSwarms, float64(swarms))
	h.cfg.Metrics.Set(defMembers, float64(viewers), "viewer")
	h.cfg.Metrics.Set(defMembers, float64(seeds), "seed")
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
