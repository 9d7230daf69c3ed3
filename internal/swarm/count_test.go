package swarm

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCountsAreThoseOfTheMembers draws comings and goings and counts anew after each.
func TestCountsAreThoseOfTheMembers(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		s, now := New(), start
		for range 300 {
			now = now.Add(time.Second)
			switch r.IntN(10) {
			case 0:
				s.Expire(now.Add(-time.Duration(r.IntN(60))*time.Second), now)
			case 1, 2:
				s.Leave(id(r.IntN(20)))
			default:
				m := drawn(r, r.IntN(20))
				m.Manifest, m.Joined, m.Seen = []string{"", "/a", "/b", "/c", "/d.mpd", "/e.mpd"}[r.IntN(6)], now, now
				s.Join(m)
			}
			viewers, named := 0, map[string]*support{}
			for _, m := range s.members {
				if m.Role != RoleOff {
					viewers++
				}
				if m.Manifest == "" {
					continue
				}
				if named[m.Manifest] == nil {
					named[m.Manifest] = &support{subnets: map[string]int{}, subjects: map[string]int{}}
				}
				n := named[m.Manifest]
				n.members++
				n.subnets[m.Subnet]++
				if m.Subject == "" {
					n.bare++
				} else {
					n.subjects[m.Subject]++
				}
			}
			held := named[s.Manifest()]
			if s.Viewers() != viewers || len(s.ballot.named) != len(named) || (held == nil) != (len(named) == 0) {
				t.Fatalf("seed %d: %d viewers, manifest %q of %v; counted %d of %v", seed, s.Viewers(), s.Manifest(), s.ballot.named, viewers, named)
			}
			for name, n := range named {
				if got := s.ballot.named[name]; got.members != n.members || got.bare != n.bare || !maps.Equal(got.subnets, n.subnets) || !maps.Equal(got.subjects, n.subjects) {
					t.Fatalf("seed %d: %s has %+v; counted %+v", seed, name, got, n)
				}
				if n.outvotes(held) && (name == s.Beside() || IsDASH(name) == IsDASH(s.Manifest())) {
					t.Fatalf("seed %d: %s is chosen with %+v, and %s has %+v", seed, s.Manifest(), held, name, n)
				}
				if beside := named[s.Beside()]; IsDASH(name) != IsDASH(s.Manifest()) && (beside == nil || n.outvotes(beside)) {
					t.Fatalf("seed %d: %q is beside with %+v, and %s has %+v", seed, s.Beside(), beside, name, n)
				}
			}
			if s.Beside() != "" && (named[s.Beside()] == nil || IsDASH(s.Beside()) == IsDASH(s.Manifest())) {
				t.Fatalf("seed %d: %q is beside %q", seed, s.Beside(), s.Manifest())
			}
		}
	}
}
