package swarm

import (
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.UnixMilli(1_790_000_000_000)

func id(n int) ID { return ID{byte(n >> 8), byte(n), 15: 1} }

// joined makes a swarm of members that differ from each other by what change does to them.
func joined(members ...Member) *Swarm {
	s := New()
	for i, m := range members {
		m.ID, m.Joined, m.Seen = id(i), start, start
		if m.Role == "" {
			m.Role = RoleFull
		}
		if m.Want == 0 {
			m.Want = 8
		}
		s.Join(m)
	}
	return s
}

func ids(list []Member) (out []ID) {
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out
}

func TestFailedPairsStayApart(t *testing.T) {
	s := joined(Member{}, Member{})
	s.Failed(id(0), id(1), start)
	if got := s.Introduce(id(1), 8, start.Add(time.Hour)); len(got) != 0 {
		t.Errorf("introduced %v", ids(got))
	}
	// Also after one of them lost its socket and came back.
	m := *s.Member(id(0))
	s.Leave(id(0))
	s.Expire(start, start.Add(time.Minute))
	s.Join(m)
	if got := s.Introduce(id(0), 8, start.Add(2*time.Minute)); len(got) != 0 {
		t.Errorf("introduced %v after coming back", ids(got))
	}
	s.Leave(id(0))
	s.Expire(start, start.Add(failedLife+time.Second))
	s.Join(m)
	if got := s.Introduce(id(0), 8, start.Add(time.Hour)); len(got) != 1 {
		t.Errorf("introduced %v after the memory ended", ids(got))
	}
}

func TestPairsMeetAgainOnlyAfterAWhile(t *testing.T) {
	s := joined(Member{}, Member{})
	if len(s.Introduce(id(0), 8, start)) != 1 || len(s.Introduce(id(1), 8, start.Add(Retry-1))) != 0 {
		t.Error("a pair was introduced twice")
	}
	if len(s.Introduce(id(1), 8, start.Add(Retry))) != 1 {
		t.Error("a pair whose link may be lost was not introduced again")
	}
	s.Leave(id(0))
	if len(s.met[id(1)]) != 0 {
		t.Error("a member that left is remembered")
	}
}

// TestIntroductionsHoldInEveryHistory runs random histories and checks what must hold after each step.
func TestIntroductionsHoldInEveryHistory(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, now := New(), start
		offered := map[pair]time.Time{} // by any member
		for range 300 {
			now = now.Add(time.Duration(r.IntN(5000)) * time.Millisecond)
			a, b := id(r.IntN(12)), id(r.IntN(12))
			switch r.IntN(8) {
			case 0, 1:
				from := int64(r.IntN(600_000))
				s.Join(Member{
					ID: a, Role: []string{RoleFull, RoleFull, RoleLeech, RoleOff}[r.IntN(4)], Want: r.IntN(5), Saturated: r.IntN(4) == 0,
					Range: Range{from, from + 30_000}, Joined: now, Seen: now,
				})
			case 2:
				s.Leave(a)
				for p := range offered {
					if p.low == a || p.high == a {
						delete(offered, p)
					}
				}
			case 3:
				if a != b {
					s.Failed(a, b, now)
				}
			case 4:
				s.Expire(now.Add(-10*time.Minute), now)
			default:
				before := map[ID]Member{}
				for k, m := range s.members {
					before[k] = *m
				}
				n := r.IntN(6)
				got := s.Introduce(a, n, now)
				if len(got) > n {
					t.Fatalf("history %d: %d introductions, asked for %d", seed, len(got), n)
				}
				seen := map[ID]bool{}
				for _, m := range got {
					was, there := before[m.ID]
					p := pairOf(a, m.ID)
					if at, met := offered[p]; met && now.Sub(at) < Retry && s.members[a] != nil {
						t.Fatalf("history %d: %v offered to %v twice within %s", seed, a, m.ID, now.Sub(at))
					}
					if !there || m.ID == a || seen[m.ID] || was.Saturated || was.Role == RoleOff || was.Want <= 0 || s.HasFailed(a, m.ID) {
						t.Fatalf("history %d: %v was introduced to %+v", seed, a, was)
					}
					seen[m.ID] = true
					offered[p] = now
				}
			}
			for k, m := range s.met {
				for other := range m {
					if _, both := s.met[other][k]; !both {
						t.Fatalf("history %d: %v met %v and not the other way round", seed, k, other)
					}
				}
			}
		}
	}
}

// A member that comes back from another address is in another network: what failed, and what it met, was of the one before.
func TestAPeerThatMovedMeetsOthersAnew(t *testing.T) {
	for name, leaves := range map[string]bool{"before its socket was missed": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			s := joined(Member{Labels: Labels{Address: "cafe"}}, Member{Labels: Labels{Address: "home"}}, Member{}, Member{Labels: Labels{Address: "office"}})
			if got := s.Introduce(id(0), 8, start); len(got) != 3 {
				t.Fatalf("introduced %v", ids(got))
			}
			s.Failed(id(0), id(1), start)
			s.Failed(id(1), id(3), start)
			back := func(address string) int {
				m := *s.Member(id(0))
				m.Address = address
				if leaves {
					s.Leave(id(0))
				}
				s.Join(m)
				return len(s.Introduce(id(0), 8, start.Add(time.Second)))
			}
			if !leaves && back("cafe") != 0 {
				t.Error("from where it was, within the minute")
			}
			if leaves && back("cafe") != 2 {
				t.Error("from where it was, after it had left: all but those that it cannot link to")
			}
			if back("") != 0 && !leaves {
				t.Error("an address that is not known is no other one")
			}
			s.Member(id(0)).Address = "cafe"
			if n := back("train"); n != 3 {
				t.Errorf("from elsewhere it met %d of three", n)
			}
			if !s.HasFailed(id(1), id(3)) {
				t.Error("what others cannot do is forgotten with it")
			}
		})
	}
}
