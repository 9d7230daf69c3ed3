package swarm

import "time"

// Of votes against a peer, and of bans (spec/tracker-protocol.md, "Blame").
const (
	BanVotes = 3                // subnets that have to agree: one household has two, one of each address family
	VoteLife = 10 * time.Minute // how long a vote counts
	BanLife  = 10 * time.Minute
	MaxVotes = 8 // of one subnet that count at a time: an attacker in few subnets cannot have many peers banned
	// leftLife is how long votes about a member are taken after it was last seen: a peer may send wrong bytes and leave before reports arrive.
	leftLife = 2 * time.Minute
	maxLeft  = 1 << 12
	maxBans  = 1 << 12
)

// Verdict is what became of a vote.
type Verdict string

// The closed set of verdicts.
const (
	Counted  Verdict = "counted"
	Repeated Verdict = "repeated" // the voter's subnet, or subject, has voted against this peer, or the peer is banned already
	Spent    Verdict = "spent"    // the voter's subnet has as many votes in force as it may, or the voter is banned
	Stranger Verdict = "stranger" // one of the two is no member, or nothing is known of where the voter is
	Full     Verdict = "full"     // it would have banned the peer, and as many are banned as may be; it is not kept
)

// Verdicts lists them.
var Verdicts = []Verdict{Counted, Repeated, Spent, Stranger, Full}

type vote struct {
	subnet, subject string
	at              time.Time
}

// left is what is remembered of a member that has gone.
type left struct {
	address, subject string
	seen             time.Time
}

// label is an address or a subject that newcomers are known by.
type label struct{ kind, value string }

// blamed holds the votes against peers, and the bans.
type blamed struct {
	votes map[ID][]vote
	cast  map[string]int // votes in force, by subnet
	gone  map[ID]left
	bans  map[ID]time.Time
	// shunned are addresses and subjects of banned peers: a member that joins with one of them during the ban is banned too.
	shunned map[label]time.Time
}

func newBlamed() blamed {
	return blamed{
		votes: map[ID][]vote{}, cast: map[string]int{}, gone: map[ID]left{}, bans: map[ID]time.Time{}, shunned: map[label]time.Time{},
	}
}

// Blame records that one member had to ban another. With BanVotes subnets the peer is banned from introductions for BanLife.
func (s *Swarm) Blame(voter, target ID, now time.Time) (v Verdict, banned bool) {
	b, from, about := &s.blamed, s.members[voter], left{}
	if m := s.members[target]; m != nil {
		about = left{address: m.Address, subject: m.Subject}
	} else if l, ok := b.gone[target]; ok {
		about = l
	} else {
		return Stranger, false
	}
	switch {
	case from == nil || from.Subnet == "" || voter == target:
		return Stranger, false
	case from.Banned.After(now):
		return Spent, false
	case b.bans[target].After(now):
		return Repeated, false
	}
	for _, v := range b.votes[target] {
		if v.subnet == from.Subnet || v.subject != "" && v.subject == from.Subject {
			return Repeated, false
		}
	}
	if b.cast[from.Subnet] >= MaxVotes {
		return Spent, false
	}
	decides := len(b.votes[target])+1 >= BanVotes
	if decides && !b.room(target) {
		return Full, false
	}
	b.votes[target] = append(b.votes[target], vote{from.Subnet, from.Subject, now})
	b.cast[from.Subnet]++
	if !decides {
		return Counted, false
	}
	b.forget(target, func(vote) bool { return true })
	s.ban(target, about, now.Add(BanLife))
	return Counted, true
}

// room says whether one more may be banned. A peer whose ban is over but not forgotten yet still has its place.
func (b *blamed) room(target ID) bool {
	_, has := b.bans[target]
	return has || len(b.bans) < maxBans
}

func (s *Swarm) ban(target ID, about left, until time.Time) {
	s.blamed.bans[target] = until
	for _, l := range []label{{"address", about.address}, {"subject", about.subject}} {
		if l.value != "" {
			s.blamed.shunned[l] = until
		}
	}
	for _, m := range s.members {
		// Neighbors that were there before stay: they have done nothing. A subject is one person.
		if m.ID == target || about.subject != "" && m.Subject == about.subject {
			m.Banned, m.barred = until, true
		}
	}
}

// until is when the ban ends that a newcomer comes under.
func (b *blamed) until(m *Member) time.Time {
	until := b.bans[m.ID]
	for _, l := range []label{{"address", m.Address}, {"subject", m.Subject}} {
		if at := b.shunned[l]; l.value != "" && at.After(until) {
			until = at
		}
	}
	return until
}

func (b *blamed) leave(m *Member) {
	if len(b.gone) < maxLeft {
		b.gone[m.ID] = left{m.Address, m.Subject, m.Seen}
	}
}

// forget drops votes against a peer.
func (b *blamed) forget(target ID, which func(vote) bool) {
	var kept []vote
	for _, v := range b.votes[target] {
		if !which(v) {
			kept = append(kept, v)
			continue
		}
		if b.cast[v.subnet]--; b.cast[v.subnet] == 0 {
			delete(b.cast, v.subnet)
		}
	}
	if b.votes[target] = kept; len(kept) == 0 {
		delete(b.votes, target)
	}
}

func (b *blamed) expire(now time.Time) {
	for target := range b.votes {
		b.forget(target, func(v vote) bool { return now.Sub(v.at) >= VoteLife })
	}
	for id, l := range b.gone {
		if now.Sub(l.seen) >= leftLife {
			delete(b.gone, id)
		}
	}
	for id, until := range b.bans {
		if !until.After(now) {
			delete(b.bans, id)
		}
	}
	for l, until := range b.shunned {
		if !until.After(now) {
			delete(b.shunned, l)
		}
	}
}
