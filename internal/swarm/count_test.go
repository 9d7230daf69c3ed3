package swarm

import (
	"fmt"
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
				m.Manifest, m.Joined, m.Seen = []string{"", "/a", "/b", "/c"}[r.IntN(4)], now, now
				s.Join(m)
			}
			viewers, votes, first := 0, map[string]int{}, map[string]time.Time{}
			for _, m := range s.members {
				if m.Role != RoleOff {
					viewers++
				}
				if m.Manifest != "" {
					if votes[m.Manifest]++; votes[m.Manifest] == 1 || m.Joined.Before(first[m.Manifest]) {
						first[m.Manifest] = m.Joined
					}
				}
			}
			best := ""
			for name, n := range votes {
				if best == "" || n > votes[best] || n == votes[best] && first[name].Before(first[best]) {
					best = name
				}
			}
			if s.Viewers() != viewers || s.Manifest() != best || fmt.Sprint(s.manifests) != fmt.Sprint(votes) {
				t.Fatalf("seed %d: %d viewers, manifest %q of %v; counted %d, %q of %v", seed, s.Viewers(), s.Manifest(), s.manifests, viewers, best, votes)
			}
		}
	}
}
