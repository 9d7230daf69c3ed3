package swarm

import (
	"math/rand/v2"
	"testing"
	"time"
)

func (s *Swarm) claims1(t *testing.T, who, other int, in, out, want int64) {
	t.Helper()
	if got := s.Claim(id(who), id(other), Bytes{Direct: in}, Bytes{Direct: out}); got != (Bytes{Direct: want}) {
		t.Errorf("%d of %d: %+v is credited, want %d", who, other, got, want)
	}
}

func TestTheLowerClaimIsCredited(t *testing.T) {
	s := crowd(3)
	s.claims1(t, 0, 1, 0, 100, 0)
	s.claims1(t, 1, 0, 60, 0, 60)
	s.claims1(t, 1, 0, 60, 0, 40) // the sender has said 100
	s.claims1(t, 0, 1, 0, 50, 20) // which the receiver has said before
	if got := s.Claim(id(0), id(1), Bytes{}, Bytes{Relay: 5}); got != (Bytes{}) {
		t.Errorf("%+v", got)
	}
	s.claims1(t, 1, 0, 5, 0, 5) // another path: 25 of the sender's direct bytes are left
	if got := s.Claim(id(1), id(0), Bytes{Relay: 9}, Bytes{}); got != (Bytes{Relay: 5}) {
		t.Errorf("%+v", got)
	}
}

// TestNoPeerIsCreditedAlone: whatever one member says, of whomever, nothing comes of it.
func TestNoPeerIsCreditedAlone(t *testing.T) {
	s := crowd(20)
	for other := range 25 {
		for range 10 {
			s.claims1(t, 0, other, 1<<40, 1<<40, 0)
		}
	}
	// What others say of each other stays as it is.
	s.claims1(t, 1, 2, 7, 0, 0)
	s.claims1(t, 2, 1, 0, 7, 7)
	// What they say of the liar is not more than they say.
	s.claims1(t, 3, 0, 11, 0, 11)
	s.claims1(t, 3, 0, 0, 13, 13)
}

// TestNoMoreIsCreditedThanTheLowerClaims draws claims: never is more credited than either side has said.
func TestNoMoreIsCreditedThanTheLowerClaims(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		s, now := crowd(2), start
		var sent, received, credited int64
		for range 200 {
			now = now.Add(time.Duration(r.IntN(9)) * time.Second)
			s.Member(id(0)).Seen, s.Member(id(1)).Seen = now, now
			s.Expire(now, now)
			n := r.Int64N(1000)
			if r.IntN(2) == 0 {
				sent += n
				credited += s.Claim(id(0), id(1), Bytes{}, Bytes{Direct: n}).Direct
			} else {
				received += n
				credited += s.Claim(id(1), id(0), Bytes{Direct: n}, Bytes{}).Direct
			}
			if credited > min(sent, received) {
				t.Fatalf("seed %d: %d of %d and %d are credited", seed, credited, sent, received)
			}
		}
		if credited < min(sent, received)/2 {
			t.Errorf("seed %d: only %d of %d and %d are credited, though both report", seed, credited, sent, received)
		}
	}
}

func TestClaimsWaitForAWhile(t *testing.T) {
	s := crowd(3)
	keep := func(now time.Time) {
		for m := range s.Members() {
			m.Seen = now
		}
		s.Expire(now, now)
	}
	keep(start)
	s.claims1(t, 0, 1, 0, 10, 0)
	keep(start.Add(ClaimTerm))
	s.claims1(t, 1, 0, 4, 0, 4)
	keep(start.Add(2 * ClaimTerm))
	s.claims1(t, 1, 0, 6, 0, 0) // too late
	keep(start.Add(4 * ClaimTerm))
	keep(start.Add(5 * ClaimTerm))
	if len(s.claims.flows) > 0 {
		t.Errorf("%d flows are remembered", len(s.claims.flows))
	}
	// Claims of a member that has just gone are still believed.
	now := start.Add(6 * ClaimTerm)
	keep(now)
	s.claims1(t, 0, 1, 0, 10, 0)
	s.Leave(id(0))
	s.claims1(t, 1, 0, 10, 0, 10)
}

func TestAMemberBringsInFewClaims(t *testing.T) {
	s := crowd(2 * maxBegun)
	for other := 1; other < 2*maxBegun; other++ {
		s.claims1(t, 0, other, 1, 1, 0)
	}
	if len(s.claims.flows) != maxBegun {
		t.Errorf("%d flows by one member, at most %d", len(s.claims.flows), maxBegun)
	}
}
