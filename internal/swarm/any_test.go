package swarm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestIntroductionsOfAnySwarm draws swarms and checks what must hold of each introduction.
func TestIntroductionsOfAnySwarm(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, count := New(), 1+r.IntN(60)
		for n := range count {
			s.Join(drawn(r, n))
		}
		met := map[pair]time.Time{}
		now := start
		for range 40 {
			now = now.Add(time.Duration(r.IntN(40)) * time.Second)
			self, n := id(r.IntN(count)), r.IntN(10)
			want := map[ID]int{}
			for _, m := range s.members {
				want[m.ID] = m.Want
			}
			share := s.shareOf(s.members[self], n)
			got := s.Introduce(self, n, now)
			if err := s.check(self, n, got, share, want, met, now); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, m := range got {
				met[pairOf(self, m.ID)] = now
			}
		}
	}
}

func drawn(r *rand.Rand, n int) Member {
	some := func(list ...string) string { return list[r.IntN(len(list))] }
	from := r.Int64N(60_000)
	return viewer(n, func(m *Member) {
		m.Role = some(RoleFull, RoleFull, RoleLeech, RoleRelay, RoleOff)
		m.Group, m.Address, m.Subnet, m.Region = some("", "g", "h"), some("", "a", "b"), some("", "s", "t"), some("", "eu", "us")
		m.Range, m.RTT = Range{from, from + r.Int64N(60_000)}, time.Duration(r.IntN(300))*time.Millisecond
		m.Saturated, m.Want = r.IntN(5) == 0, r.IntN(6)
	})
}

// prefer compares two candidates for me by the criteria as the page lists them, one after the other.
func prefer(me, a, b *Member) int {
	shares := func(mine, l string) int {
		if l != "" && l == mine {
			return 0
		}
		return 1
	}
	for _, c := range [][2]int64{
		{-overlap(me.Range, a.Range), -overlap(me.Range, b.Range)},
		{int64(shares(me.Group, a.Group)), int64(shares(me.Group, b.Group))},
		{int64(shares(me.Address, a.Address)), int64(shares(me.Address, b.Address))},
		{int64(shares(me.Subnet, a.Subnet)), int64(shares(me.Subnet, b.Subnet))},
		{int64(shares(me.Region, a.Region)), int64(shares(me.Region, b.Region))},
		{int64(rtt(me, a)), int64(rtt(me, b))},
	} {
		if c[0] != c[1] {
			return cmp.Compare(c[0], c[1])
		}
	}
	return cmp.Compare(mix(me.ID, a.ID), mix(me.ID, b.ID))
}

func (s *Swarm) check(self ID, n int, got []Member, share *share, want map[ID]int, met map[pair]time.Time, now time.Time) error {
	me := s.members[self]
	if len(got) > n || me.Role == RoleOff && len(got) > 0 {
		return fmt.Errorf("%d introduced, %d asked for, by one of role %s", len(got), n, me.Role)
	}
	chosen := map[ID]bool{}
	for i, m := range got {
		last, before := met[pairOf(self, m.ID)]
		switch {
		case m.ID == self || chosen[m.ID]:
			return fmt.Errorf("%x twice, or to itself", m.ID)
		case m.Role == RoleOff || m.Saturated || want[m.ID] <= 0 || m.Role == RoleLeech && me.Role == RoleLeech:
			return fmt.Errorf("%+v is to be left out", m)
		case before && now.Sub(last) < Retry:
			return fmt.Errorf("pair met %s ago", now.Sub(last))
		case s.members[m.ID].Want != want[m.ID]-1:
			return fmt.Errorf("want of %x went from %d to %d", m.ID, want[m.ID], s.members[m.ID].Want)
		case i > 0 && prefer(me, &got[i-1], &got[i]) >= 0:
			return fmt.Errorf("%+v came before %+v", got[i-1], got[i])
		}
		chosen[m.ID] = true
	}
	of, lowest, beyond := map[string]int{}, map[string]*Member{}, false
	for i, m := range got {
		of[m.Subnet]++
		lowest[m.Subnet] = &got[i]
		beyond = beyond || m.Subnet != "" && of[m.Subnet] > share.room(m.Subnet)
	}
	for _, m := range s.members { // no better member was left out
		last, before := met[pairOf(self, m.ID)]
		free := m.ID != self && m.Role != RoleOff && !m.Saturated && want[m.ID] > 0 && (m.Role != RoleLeech || me.Role != RoleLeech)
		if !free || chosen[m.ID] || before && now.Sub(last) < Retry || me.Role == RoleOff || n == 0 {
			continue
		}
		if m.Subnet != "" && of[m.Subnet] >= share.room(m.Subnet) { // its subnet has its share, of better ones
			if len(got) < n || lowest[m.Subnet] != nil && prefer(me, m, lowest[m.Subnet]) < 0 {
				return fmt.Errorf("%+v was left out of its subnet's share", *m)
			}
			continue
		}
		if len(got) < n || beyond || prefer(me, m, &got[len(got)-1]) < 0 {
			return fmt.Errorf("%+v was left out of %d for %d", *m, len(got), n)
		}
	}
	return nil
}
