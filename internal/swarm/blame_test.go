package swarm

import (
	"fmt"
	"testing"
	"time"
)

// crowd are members of so many subnets, one each, that have all met.
func crowd(n int) *Swarm {
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{Labels: Labels{Address: fmt.Sprint("a", i), Subnet: fmt.Sprint("s", i)}}
	}
	return joined(members...)
}

func (s *Swarm) blames(t *testing.T, voter, target int, now time.Time, want Verdict, wantBan bool) {
	t.Helper()
	if got, banned := s.Blame(id(voter), id(target), now); got != want || banned != wantBan {
		t.Errorf("%d blames %d: %s, banned %v; want %s, %v", voter, target, got, banned, want, wantBan)
	}
}

func meets(s *Swarm, a, b int, now time.Time) bool {
	for _, m := range s.Introduce(id(a), 8, now) {
		if m.ID == id(b) {
			return true
		}
	}
	return false
}

func TestSeveralSubnetsBanAPeerForAWhile(t *testing.T) {
	s := crowd(5)
	s.blames(t, 1, 0, start, Counted, false)
	s.blames(t, 1, 0, start, Repeated, false)
	s.blames(t, 2, 0, start, Counted, false)
	if !meets(s, 4, 0, start) {
		t.Error("two subnets are enough to keep a peer from others")
	}
	s.blames(t, 3, 0, start, Counted, true)
	s.blames(t, 4, 0, start, Repeated, false)
	later := start.Add(Retry)
	if meets(s, 4, 0, later) || len(s.Introduce(id(0), 8, later)) > 0 {
		t.Error("a banned member is introduced")
	}
	s.blames(t, 0, 4, later, Spent, false) // nor is it heard
	if later = start.Add(BanLife); !meets(s, 4, 0, later) {
		t.Error("a ban has no end")
	}
	s.blames(t, 1, 0, later, Counted, false) // and the votes before it are gone
}

func TestASubnetHasOneVote(t *testing.T) {
	s := New()
	for i := range 20 {
		m := Member{ID: id(i), Role: RoleFull, Labels: Labels{Subnet: "sybils", Address: fmt.Sprint(i)}, Want: 8, Seen: start, Joined: start}
		if i == 0 {
			m.Subnet = "honest"
		}
		s.Join(m)
	}
	for i := 1; i < 20; i++ {
		want := Repeated
		if i == 1 {
			want = Counted
		}
		s.blames(t, i, 0, start, want, false)
	}
}

func TestASubjectHasOneVote(t *testing.T) {
	s := crowd(6)
	for i := 1; i < 6; i++ {
		s.Member(id(i)).Subject = "one"
	}
	s.blames(t, 1, 0, start, Counted, false)
	for i := 2; i < 6; i++ {
		s.blames(t, i, 0, start, Repeated, false)
	}
}

func TestASubnetHasFewVotesAtATime(t *testing.T) {
	s := crowd(MaxVotes + 3)
	for i := 1; i <= MaxVotes; i++ {
		s.blames(t, 0, i, start, Counted, false)
	}
	s.blames(t, 0, MaxVotes+1, start, Spent, false)
	for range 2 { // what is expired is expired once
		s.Expire(start, start.Add(VoteLife))
	}
	s.blames(t, 0, MaxVotes+1, start.Add(VoteLife), Counted, false)
	if len(s.blamed.cast) != 1 || len(s.blamed.votes) != 1 {
		t.Errorf("remembered: %v, %v", s.blamed.cast, s.blamed.votes)
	}
}

func TestStrangersHaveNoVote(t *testing.T) {
	s := crowd(3)
	s.Member(id(2)).Subnet = ""
	s.blames(t, 2, 0, start, Stranger, false)
	s.blames(t, 1, 1, start, Stranger, false)
	s.blames(t, 9, 0, start, Stranger, false)
	s.blames(t, 1, 9, start, Stranger, false)
}

// TestABanFollowsAPeerThatComesBack: a page that is loaded anew is another session, behind the same address.
func TestABanFollowsAPeerThatComesBack(t *testing.T) {
	s := crowd(6)
	neighbor := *s.Member(id(5))
	neighbor.Address = "a0"
	s.Join(neighbor)
	s.Leave(id(0)) // it goes before the reports come
	for i := 1; i <= BanVotes; i++ {
		s.blames(t, i, 0, start, Counted, i == BanVotes)
	}
	if !meets(s, 4, 5, start) {
		t.Error("a neighbor that was there before is banned with it")
	}
	back := Member{ID: id(7), Role: RoleFull, Labels: Labels{Address: "a0", Subnet: "s0"}, Want: 8, Seen: start, Joined: start}
	s.Join(back)
	if meets(s, 4, 7, start.Add(Retry)) || len(s.Introduce(id(7), 8, start)) > 0 {
		t.Error("a new session behind the banned address is introduced")
	}
	s.Join(back) // an update of what is known of it changes nothing
	if !s.Member(id(7)).Banned.After(start) {
		t.Error("joining again ends a ban")
	}
	end := start.Add(BanLife)
	s.Expire(start, end)
	if !meets(s, 4, 7, end) {
		t.Error("a ban of an address has no end")
	}
	if len(s.blamed.bans)+len(s.blamed.shunned)+len(s.blamed.gone) > 0 {
		t.Errorf("remembered: %+v", s.blamed)
	}
}

func TestABanIsOfTheSubject(t *testing.T) {
	s := crowd(6)
	s.Member(id(0)).Subject, s.Member(id(5)).Subject = "bad", "bad"
	for i := 1; i <= BanVotes; i++ {
		s.blames(t, i, 0, start, Counted, i == BanVotes)
	}
	if meets(s, 4, 5, start) {
		t.Error("another session of the banned subject is introduced")
	}
}

// TestAVoteThatFindsNoRoomForABanSaysSo: it bans no peer, and the votes before it stay.
func TestAVoteThatFindsNoRoomForABanSaysSo(t *testing.T) {
	s := crowd(6)
	s.blames(t, 1, 0, start, Counted, false)
	s.blames(t, 2, 0, start, Counted, false)
	end := start.Add(BanLife / 2)
	for i := range maxBans {
		s.blamed.bans[id(100+i)] = end
	}
	s.blames(t, 3, 0, start, Full, false)
	s.blames(t, 3, 0, start, Full, false)
	if len(s.blamed.bans) != maxBans || len(s.blamed.shunned) > 0 || s.blamed.cast["s3"] != 0 {
		t.Errorf("%d bans, %d shunned, %d votes of the last subnet", len(s.blamed.bans), len(s.blamed.shunned), s.blamed.cast["s3"])
	}
	if !meets(s, 4, 0, start) {
		t.Error("a member that was not banned is not introduced")
	}
	s.Expire(start, end)
	s.blames(t, 3, 0, end, Counted, true)
	if meets(s, 4, 0, end.Add(Retry)) {
		t.Error("a banned member is introduced")
	}
}

// TestABanThatIsOverTakesItsOwnPlace: it is renewed though the list is full, for it does not grow by that.
func TestABanThatIsOverTakesItsOwnPlace(t *testing.T) {
	s := crowd(6)
	for i := range maxBans - 1 {
		s.blamed.bans[id(100+i)] = start.Add(BanLife)
	}
	s.blamed.bans[id(0)] = start
	for i := 1; i <= BanVotes; i++ {
		s.blames(t, i, 0, start, Counted, i == BanVotes)
	}
	if len(s.blamed.bans) != maxBans || meets(s, 4, 0, start) {
		t.Errorf("%d bans", len(s.blamed.bans))
	}
}

func TestEncountersAreBounded(t *testing.T) {
	s := crowd(3 * maxMet)
	for range 200 {
		for i := range 3 * maxMet {
			s.Member(id(i)).Want = 32
		}
		s.Introduce(id(0), 32, start)
	}
	if n := len(s.met[id(0)]); n != maxMet {
		t.Errorf("%d encounters within a minute, at most %d", n, maxMet)
	}
	if len(s.Introduce(id(0), 32, start.Add(Retry))) != 32 || len(s.met[id(0)]) != 32 {
		t.Errorf("%d encounters a minute later", len(s.met[id(0)]))
	}
}
