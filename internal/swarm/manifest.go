package swarm

import (
	"cmp"
	"strings"
)

// ballot is which manifests the members name, and which of them the seeds are to follow (spec/cluster.md, "Which manifests seeds
// follow").
type ballot struct {
	named   map[string]*support
	chosen  string // empty if no member names one
	beside  string // of the other format; empty if no member names one
	changes int    // times that another took the place of one that members still name
}

// support is the members that name one manifest.
type support struct {
	members  int
	subnets  map[string]int // members of each; unknown subnets are one
	subjects map[string]int // members of each; nil if no member has one
	bare     int            // members without a subject
}

func newBallot() ballot { return ballot{named: map[string]*support{}} }

// votes counts a subnet once, and a subject once, as bans do.
func (s *support) votes() int { return min(len(s.subnets), len(s.subjects)+s.bare) }

// count adds what a member names, or takes it out with -1.
func (b *ballot) count(m *Member, by int) {
	if m.Manifest == "" {
		return
	}
	s := b.named[m.Manifest]
	if s == nil {
		s = &support{subnets: map[string]int{}}
		b.named[m.Manifest] = s
	}
	s.members += by
	tally(s.subnets, m.Subnet, by)
	switch {
	case m.Subject == "":
		s.bare += by
	default:
		if s.subjects == nil {
			s.subjects = map[string]int{}
		}
		tally(s.subjects, m.Subject, by)
	}
	if s.members == 0 {
		delete(b.named, m.Manifest)
	}
	b.choose(m.Manifest)
}

// replace counts a member that joins again in place of what it was. One that names the same as before changes nothing in between.
func (b *ballot) replace(old, m *Member) {
	if old.Manifest == m.Manifest && old.Subnet == m.Subnet && old.Subject == m.Subject {
		return
	}
	b.count(old, -1)
	b.count(m, 1)
}

func tally(counts map[string]int, name string, by int) {
	if counts[name] += by; counts[name] == 0 {
		delete(counts, name)
	}
}

// choose looks whether other manifests take the places of the two that are followed, after the support of one has changed: each place
// first among those of its format, then the choice's own.
func (b *ballot) choose(changed string) {
	was, dash := b.chosen, IsDASH(b.chosen)
	b.chosen, b.beside = b.leader(was, changed, dash), b.leader(b.beside, changed, !dash)
	first, other := b.named[b.chosen], b.named[b.beside]
	if other != nil && (first == nil || other.outvotes(first)) {
		b.chosen, b.beside = b.beside, b.chosen
	}
	if was != b.chosen && b.named[was] != nil {
		b.changes++
	}
}

// leader is the manifest of a format that takes the place of held after the support of one has changed: held itself if none outvotes it.
// Empty: there is none of that format.
func (b *ballot) leader(held, changed string, dash bool) (best string) {
	h := b.named[held]
	takes := func(name string, s *support) bool { return IsDASH(name) == dash && (h == nil || s.outvotes(h)) }
	if changed != held { // of all others none could take the place before, and they are as they were
		if s := b.named[changed]; s != nil && takes(changed, s) {
			return changed
		}
		return held
	}
	var most *support
	for name, s := range b.named {
		if takes(name, s) && (most == nil || cmp.Or(s.compare(most), cmp.Compare(best, name)) > 0) {
			best, most = name, s
		}
	}
	if h != nil && most == nil {
		return held
	}
	return best
}

// IsDASH says whether a manifest is taken for an MPD, by its key: the home knows no more of it.
func IsDASH(manifest string) bool { return strings.HasSuffix(strings.ToLower(manifest), ".mpd") }

// compare orders by votes, then by members.
func (s *support) compare(o *support) int {
	return cmp.Or(cmp.Compare(s.votes(), o.votes()), cmp.Compare(s.members, o.members))
}

// outvotes says whether a manifest takes the place of one that is followed: it has a quarter more votes, and at least one more; or
// no fewer votes and a quarter more members, which decides where all are in few subnets. Comings and goings between two that are
// about equal do not have seeds go back and forth.
func (s *support) outvotes(held *support) bool {
	votes, had := s.votes(), held.votes()
	return votes >= had+max(1, had/4) || votes >= had && s.members >= held.members+max(1, held.members/4)
}

// Manifest is the manifest that seeds are to follow: the first that was named, until another of its format, or the one beside, has
// clearly more votes, of which each subnet has one. Empty if no member names one.
func (s *Swarm) Manifest() string { return s.ballot.chosen }

// Beside is the manifest that seeds are to follow beside that, of the other one of HLS and DASH: the first of them that was named,
// until another of them has clearly more votes. Empty if no member names one.
func (s *Swarm) Beside() string { return s.ballot.beside }

// ManifestChanges counts how often another manifest took the place of one that members still name.
func (s *Swarm) ManifestChanges() int { return s.ballot.changes }
