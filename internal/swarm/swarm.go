// Package swarm is the membership of one title and the choice of introductions (spec/tracker-protocol.md, "Swarms").
// Pure: time is an argument, and nothing is locked; its owner does that.
package swarm

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"time"
)

// Values of Member.Role.
const (
	RoleFull  = "full"
	RoleLeech = "leech"
	RoleRelay = "relay-only"
	RoleOff   = "off"
)

// Retry is how long a pair that was introduced is left alone before it may be introduced again, in case the link was lost
// since. A pair whose link never opened is not tried again.
const Retry = time.Minute

// Range is a stretch of the presentation timeline, ms; the zero value is unknown.
type Range struct{ From, To int64 }

// Labels say what viewers have in common. They are equal or not; empty is unknown, and equal to nothing.
type Labels struct {
	Group, Address, Subnet, Region string
	Subject                        string // of its token
}

// Member is one viewer of the title: what introductions are decided by.
type Member struct {
	ID      ID
	Tracker ID // holds the viewer's session
	Role    string
	Labels

	RTT       time.Duration // of the session's socket; 0 unknown
	Range     Range
	Saturated bool
	Want      int // further links the viewer would take
	Manifest  string
	Joined    time.Time
	Seen      time.Time // last join or update
	Away      bool      // its tracker cannot be reached: it is met again when it is back
	barred    bool      // there is a Banned to look at: it is asked for of all members at each introduction
	Banned    time.Time // until then it is introduced to no viewer; set by the swarm
}

// failedLife is how long a failed pair is remembered after one of the two has left: as long as its session may come back.
const failedLife = 15 * time.Minute

// maxFailed bounds the failed pairs that a swarm remembers.
const maxFailed = 1 << 14

// maxMet bounds the encounters that are remembered of a member: no viewer serves so many within Retry.
const maxMet = 256

// Swarm is the members of one title. The zero value is not usable; New makes one.
type Swarm struct {
	members map[ID]*Member
	met     map[ID]map[ID]time.Time // member → member → introduced; both ways
	failed  map[pair]time.Time      // links that never opened, also of members that left a while ago
	// Counted as members come and go: both are asked for at every message.
	viewers int // members whose role is not off
	ballot  ballot

	blamed blamed
	claims claims
}

type pair struct{ low, high ID }

// New makes an empty swarm.
func New() *Swarm {
	return &Swarm{
		members: map[ID]*Member{}, met: map[ID]map[ID]time.Time{}, failed: map[pair]time.Time{}, ballot: newBallot(),
		blamed: newBlamed(), claims: claims{flows: map[flowKey]*flow{}, begun: map[ID]int{}},
	}
}

// Len is the number of members.
func (s *Swarm) Len() int { return len(s.members) }

// Viewers counts the members that take part, those whose role is off left out.
func (s *Swarm) Viewers() int { return s.viewers }

// count adds a member to the count of viewers, or takes it out with -1.
func (s *Swarm) count(m *Member, by int) {
	if m.Role != RoleOff {
		s.viewers += by
	}
}

// Member returns a member, nil if there is none of that ID. The caller may change what an update carries, and nothing else.
func (s *Swarm) Member(id ID) *Member { return s.members[id] }

// Members goes through all members, in any order.
func (s *Swarm) Members() iter.Seq[*Member] { return maps.Values(s.members) }

// Join adds a member or replaces what is known of it.
func (s *Swarm) Join(m Member) {
	was := s.blamed.gone[m.ID].address
	if old := s.members[m.ID]; old != nil {
		m.Joined, m.Banned, was = old.Joined, old.Banned, old.Address
		s.count(old, -1)
		s.ballot.replace(old, &m)
	} else {
		m.Banned = s.blamed.until(&m)
		s.ballot.count(&m, 1)
	}
	if was != "" && m.Address != "" && was != m.Address {
		s.moved(m.ID)
	}
	m.barred = !m.Banned.IsZero()
	s.members[m.ID] = &m
	s.count(&m, 1)
}

// unmeet forgets the introductions of a member that has gone. A place that it took of another, which has not said since what it has, is
// free again: else one that comes and goes would use up those of all others.
func (s *Swarm) unmeet(id ID) {
	for other, at := range s.met[id] {
		delete(s.met[other], id)
		if m := s.members[other]; m != nil && m.Seen.Before(at) {
			m.Want++
		}
	}
	delete(s.met, id)
}

// moved forgets the introductions of a member and which of its links never opened: it is in another network now, so its links
// are most likely lost, and pairs that failed may succeed.
func (s *Swarm) moved(id ID) {
	s.unmeet(id)
	maps.DeleteFunc(s.failed, func(p pair, _ time.Time) bool { return p.low == id || p.high == id })
}

// Leave removes a member and forgets its introductions. It keeps which links failed, because the member may come back.
func (s *Swarm) Leave(id ID) {
	s.unmeet(id)
	if m := s.members[id]; m != nil {
		s.count(m, -1)
		s.ballot.count(m, -1)
		delete(s.members, id)
		s.blamed.leave(m)
	}
}

// Expire removes the members that were last seen before a time and returns how many there were. now ends the memory of
// failed pairs of members that left.
func (s *Swarm) Expire(before, now time.Time) int {
	n := 0
	for id, m := range s.members {
		if m.Seen.Before(before) {
			s.Leave(id)
			n++
		}
	}
	for p, at := range s.failed {
		if now.Sub(at) > failedLife && (s.members[p.low] == nil || s.members[p.high] == nil) {
			delete(s.failed, p)
		}
	}
	s.blamed.expire(now)
	s.claims.expire(now)
	return n
}

// Failed notes that a link between two peers never opened: they are not introduced again.
func (s *Swarm) Failed(a, b ID, now time.Time) {
	if s.members[a] != nil && len(s.failed) < maxFailed {
		s.failed[pairOf(a, b)] = now
	}
}

// HasFailed says whether the link of two peers never opened. One of them may be a seed.
func (s *Swarm) HasFailed(a, b ID) bool {
	_, failed := s.failed[pairOf(a, b)]
	return failed
}

func (s *Swarm) introduced(a, b ID, now time.Time) {
	for range 2 {
		if s.met[a] == nil {
			s.met[a] = map[ID]time.Time{}
		}
		s.met[a][b] = now
		a, b = b, a
	}
}

// encounters counts those of a member. Where there are many, those that are as good as forgotten go.
func (s *Swarm) encounters(id ID, now time.Time) int {
	if len(s.met[id]) >= maxMet {
		for other, at := range s.met[id] {
			if now.Sub(at) >= Retry {
				delete(s.met[id], other)
				delete(s.met[other], id)
			}
		}
	}
	return len(s.met[id])
}

// Introduce picks up to n members for a member to offer to, best first, and notes the encounters. Those that cannot serve
// or take anything, are saturated or away, or met the member before are left out.
func (s *Swarm) Introduce(id ID, n int, now time.Time) []Member {
	self := s.members[id]
	if self == nil || self.Role == RoleOff || self.Banned.After(now) {
		return nil
	}
	if n = min(n, maxMet-s.encounters(id, now)); n <= 0 {
		return nil
	}
	best := s.best(self, nil, n, s.shareOf(self, n), now)
	for _, r := range s.best(self, best, n-len(best), nil, now) { // where there are no others
		best = insert(best, r, n)
	}
	out := make([]Member, 0, len(best))
	for _, r := range best {
		if s.encounters(r.member.ID, now) >= maxMet { // checking all members would cost more than one missing introduction
			continue
		}
		out = append(out, *r.member)
		r.member.Want-- // until its next update says what it really has
		s.introduced(id, r.member.ID, now)
	}
	return out
}

// best are the n best candidates for a member within a share, without those that are chosen already.
func (s *Swarm) best(self *Member, chosen []rank, n int, sh *share, now time.Time) []rank {
	if n <= 0 {
		return nil
	}
	met := s.met[self.ID]
	best := make([]rank, 0, min(n, len(s.members))+1)
	for _, m := range s.members {
		if m.ID == self.ID || m.Role == RoleOff || m.Saturated || m.Away || m.Want <= 0 || m.Role == RoleLeech && self.Role == RoleLeech || m.barred && m.Banned.After(now) {
			continue
		}
		if at, again := met[m.ID]; again && now.Sub(at) < Retry || len(s.failed) > 0 && s.HasFailed(self.ID, m.ID) {
			continue
		}
		if slices.ContainsFunc(chosen, func(r rank) bool { return r.member == m }) {
			continue
		}
		best = sh.add(best, self.rank(m), n)
	}
	return best
}

// insert adds a candidate to the n best, in order. Few are asked for of many: sorting all of them would cost more.
func insert(best []rank, r rank, n int) []rank {
	if len(best) == n {
		if best[n-1].compare(&r) <= 0 {
			return best
		}
		best = best[:n-1]
	}
	at := len(best)
	for at > 0 && r.compare(&best[at-1]) < 0 {
		at--
	}
	return slices.Insert(best, at, r)
}

// rank is how good a candidate is for one member: the criteria, worked out once.
type rank struct {
	overlap int64
	labels  int // Labels.shared
	rtt     time.Duration
	mix     uint64
	member  *Member
}

func (m *Member) rank(o *Member) rank {
	return rank{overlap(m.Range, o.Range), m.Labels.shared(&o.Labels), rtt(m, o), mix(m.ID, o.ID), o}
}

// shared has a bit for each label that both have, the criterion that counts most highest.
func (l *Labels) shared(o *Labels) int {
	bits := 0
	for _, one := range [...]struct{ a, b string }{{l.Group, o.Group}, {l.Address, o.Address}, {l.Subnet, o.Subnet}, {l.Region, o.Region}} {
		bits <<= 1
		if one.a != "" && one.a == one.b {
			bits |= 1
		}
	}
	return bits
}

// compare orders two candidates, the better one first.
func (r *rank) compare(o *rank) int {
	switch {
	case r.overlap != o.overlap:
		return cmp.Compare(o.overlap, r.overlap)
	case r.labels != o.labels:
		return cmp.Compare(o.labels, r.labels)
	case r.rtt != o.rtt:
		return cmp.Compare(r.rtt, o.rtt)
	case r.mix != o.mix:
		return cmp.Compare(r.mix, o.mix)
	}
	return slices.Compare(r.member.ID[:], o.member.ID[:])
}

// overlapStep is the coarseness of overlaps, ms: differences below it are left to the criteria that follow.
const overlapStep = 10_000

// overlap of two ranges in steps; what is unknown overlaps with nothing.
func overlap(a, b Range) int64 {
	return max(0, min(a.To, b.To)-max(a.From, b.From)+overlapStep-1) / overlapStep
}

// rtt estimates the way between two viewers by way of their trackers, in steps of 25 ms; unknown counts as far.
func rtt(a, b *Member) time.Duration {
	if a.RTT == 0 || b.RTT == 0 {
		return time.Second
	}
	return (a.RTT + b.RTT) / 2 / (25 * time.Millisecond)
}

// mix spreads viewers of equal rank over each other, differently for each of them.
func mix(a, b ID) uint64 {
	h := fnv.New64a()
	p := pairOf(a, b)
	_, _ = h.Write(p.low[:])
	_, _ = h.Write(p.high[:])
	return Finish(h.Sum64())
}

func pairOf(a, b ID) pair {
	if slices.Compare(a[:], b[:]) > 0 {
		a, b = b, a
	}
	return pair{a, b}
}

// Home picks one of the replicas for a key by rendezvous hashing: the highest hash of (replica, key) wins, so that a
// replica's coming or going moves only its own share. ok is false without replicas.
func Home(replicas []ID, key ID) (home ID, ok bool) {
	best := uint64(0)
	for _, r := range replicas {
		v := weight(r, key)
		if !ok || v > best || v == best && slices.Compare(r[:], home[:]) > 0 {
			best, home, ok = v, r, true
		}
	}
	return home, ok
}

// Order sorts replicas: the home of a key first, then the one that would be it without those before.
func Order(replicas []ID, key [16]byte) []ID {
	out := slices.Clone(replicas)
	slices.SortFunc(out, func(a, b ID) int {
		return cmp.Or(cmp.Compare(weight(b, key), weight(a, key)), slices.Compare(b[:], a[:]))
	})
	return out
}

func weight(replica, key ID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(replica[:])
	_, _ = h.Write(key[:])
	return Finish(h.Sum64())
}

// Finish is MurmurHash3's 64-bit finalizer: FNV alone leaves the high bits of similar inputs alike.
func Finish(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}

// Draw maps an ID to a permille, the same at every replica: which sessions belong to a control group.
func Draw(id ID) int {
	h := fnv.New64a()
	_, _ = h.Write(id[:])
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], Finish(h.Sum64()))
	return int(binary.BigEndian.Uint32(b[:4]) % 1000)
}
