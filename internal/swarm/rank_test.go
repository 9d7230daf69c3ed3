package swarm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// viewer is a member that all may meet and that nothing distinguishes.
func viewer(n int, changes ...func(*Member)) Member {
	m := Member{ID: id(n), Tracker: id(1000), Role: RoleFull, Want: 8, Joined: start.Add(time.Duration(n) * time.Second), Seen: start}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func swarmOf(members ...Member) *Swarm {
	s := New()
	for _, m := range members {
		s.Join(m)
	}
	return s
}

func names(members []Member) []int {
	out := []int{}
	for _, m := range members {
		out = append(out, int(m.ID[0])<<8|int(m.ID[1]))
	}
	return out
}

// criteria are the ranks of introductions in the order of spec/tracker-protocol.md, each with what makes a member better.
var criteria = []struct {
	name   string
	better func(*Member)
}{
	{"overlap", func(m *Member) { m.Range = Range{0, 60_000} }},
	{"group", func(m *Member) { m.Group = "g" }},
	{"address", func(m *Member) { m.Address = "a" }},
	{"subnet", func(m *Member) { m.Subnet = "s" }},
	{"region", func(m *Member) { m.Region = "r" }},
	{"rtt", func(m *Member) { m.RTT = 10 * time.Millisecond }},
}

func full(m *Member) {
	for _, c := range criteria {
		c.better(m)
	}
}

// plain is a member that knows all its labels and shares none of them.
func plain(m *Member) {
	m.Range = Range{50_000, 60_000}
	m.Group, m.Address, m.Subnet, m.Region, m.RTT = "other", "other", "other", "other", 500*time.Millisecond
}

func TestEachCriterionDecidesAndOutranksAllThatFollow(t *testing.T) {
	for i, c := range criteria {
		t.Run(c.name, func(t *testing.T) {
			later := []func(*Member){plain}
			for _, l := range criteria[i+1:] {
				later = append(later, l.better)
			}
			// Under every ID, so that the hash cannot be what decides.
			for n := 2; n < 40; n += 2 {
				for _, rivals := range [][]func(*Member){{plain}, later} {
					s := swarmOf(viewer(1, full), viewer(n, plain, c.better), viewer(n+1, rivals...))
					if got := names(s.Introduce(id(1), 2, start)); !slices.Equal(got, []int{n, n + 1}) {
						t.Fatalf("members %d and %d came as %v", n, n+1, got)
					}
				}
			}
		})
	}
}

func TestOverlapCountsInSteps(t *testing.T) {
	for _, c := range []struct {
		a, b Range
		want int64
	}{
		{Range{0, 30_000}, Range{0, 30_000}, 3},
		{Range{0, 30_000}, Range{29_999, 60_000}, 1},
		{Range{0, 30_000}, Range{30_000, 60_000}, 0},
		{Range{0, 30_000}, Range{30_001, 60_000}, 0},
		{Range{0, 30_000}, Range{35_000, 60_000}, 0},
		{Range{0, 30_000}, Range{}, 0},
		{Range{}, Range{}, 0},
		{Range{0, 1 << 53}, Range{0, 1 << 53}, 1<<53/10_000 + 1},
	} {
		if got := overlap(c.a, c.b); got != c.want || overlap(c.b, c.a) != got {
			t.Errorf("overlap of %v and %v is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestUnknownLabelsAreEqualToNothing(t *testing.T) {
	for n := 2; n < 40; n += 2 {
		nameless := func(m *Member) { m.Group, m.Address, m.Subnet, m.Region = "", "", "", "" }
		labeled := func(m *Member) { m.Group = "x" }
		a := names(swarmOf(viewer(1, nameless), viewer(n, nameless), viewer(n+1, labeled)).Introduce(id(1), 2, start))
		b := names(swarmOf(viewer(1, nameless), viewer(n, labeled), viewer(n+1, nameless)).Introduce(id(1), 2, start))
		if !slices.Equal(a, b) {
			t.Fatalf("an empty label ranked: %v, %v", a, b)
		}
	}
}

func TestWhichMembersMayMeet(t *testing.T) {
	leech := func(m *Member) { m.Role = RoleLeech }
	for _, c := range []struct {
		name  string
		self  Member
		other Member
		met   bool
	}{
		{"two that give and take", viewer(1), viewer(2), true},
		{"a giver for a leech", viewer(1, leech), viewer(2), true},
		{"a leech for a giver", viewer(1), viewer(2, leech), true},
		{"two leeches", viewer(1, leech), viewer(2, leech), false},
		{"relay-only", viewer(1, func(m *Member) { m.Role = RoleRelay }), viewer(2), true},
		{"off", viewer(1), viewer(2, func(m *Member) { m.Role = RoleOff }), false},
		{"for one that is off", viewer(1, func(m *Member) { m.Role = RoleOff }), viewer(2), false},
		{"saturated", viewer(1), viewer(2, func(m *Member) { m.Saturated = true }), false},
		{"for one that is saturated", viewer(1, func(m *Member) { m.Saturated = true }), viewer(2), true},
		{"away", viewer(1), viewer(2, func(m *Member) { m.Away = true }), false},
		{"wants no peer", viewer(1), viewer(2, func(m *Member) { m.Want = 0 }), false},
	} {
		if got := swarmOf(c.self, c.other).Introduce(id(1), 8, start); (len(got) == 1) != c.met {
			t.Errorf("%s: introduced %v", c.name, names(got))
		}
	}
	if got := New().Introduce(id(1), 8, start); got != nil {
		t.Errorf("a stranger was introduced to %v", names(got))
	}
	if got := swarmOf(viewer(1), viewer(2)).Introduce(id(1), -1, start); got != nil {
		t.Errorf("-1 wanted, %v introduced", names(got))
	}
}

func TestWantIsUsedUpUntilTheNextUpdate(t *testing.T) {
	s := swarmOf(viewer(9, func(m *Member) { m.Want = 2 }))
	for n := 1; n <= 2; n++ {
		s.Join(viewer(n, func(m *Member) { m.Want = 0 }))
		if got := names(s.Introduce(id(n), 4, start)); !slices.Equal(got, []int{9}) {
			t.Fatalf("newcomer %d got %v", n, got)
		}
	}
	s.Join(viewer(3))
	if got := names(s.Introduce(id(3), 4, start)); len(got) != 0 {
		t.Errorf("member 9 wanted two and was given a third: %v", got)
	}
	s.Member(id(9)).Want = 1
	if got := names(s.Introduce(id(3), 4, start)); !slices.Equal(got, []int{9}) {
		t.Errorf("after its update: %v", got)
	}
}

// TestOneThatComesAndGoesTakesNoPlaces: what it was introduced to is as before, unless that has said since what it wants.
func TestOneThatComesAndGoesTakesNoPlaces(t *testing.T) {
	s := swarmOf(viewer(9, func(m *Member) { m.Want = 2 }))
	now := start
	for range 10 {
		now = now.Add(time.Second)
		s.Join(viewer(1, func(m *Member) { m.Seen = now }))
		if got := names(s.Introduce(id(1), 4, now)); !slices.Equal(got, []int{9}) {
			t.Fatalf("introduced to %v", got)
		}
		s.Leave(id(1))
	}
	m := s.Member(id(9))
	if m.Want != 2 {
		t.Errorf("member 9 wants %d, and said 2", m.Want)
	}
	s.Join(viewer(1, func(m *Member) { m.Seen = now }))
	s.Introduce(id(1), 4, now)
	m.Want, m.Seen = 1, now.Add(time.Second)
	if s.Leave(id(1)); m.Want != 1 {
		t.Errorf("member 9 wants %d, and said 1 since", m.Want)
	}
	s.Join(viewer(1, func(m *Member) { m.Seen = now.Add(2 * time.Second) }))
	s.Introduce(id(1), 4, now.Add(2*time.Second))
	if s.Leave(id(9)); s.Member(id(1)).Want != 8 {
		t.Errorf("one that has asked wants %d after the other has gone, and said 8", s.Member(id(1)).Want)
	}
}

func TestPairsMeetOnceAndFailedOnesNeverAgain(t *testing.T) {
	s := swarmOf(viewer(1), viewer(2), viewer(3))
	if got := s.Introduce(id(1), 8, start); len(got) != 2 {
		t.Fatalf("introduced %v", names(got))
	}
	if got := append(s.Introduce(id(2), 8, start), s.Introduce(id(3), 8, start)...); len(got) != 1 {
		t.Errorf("2 and 3 are to meet each other once, and 1 not again: %v", names(got))
	}
	s.Failed(id(3), id(1), start)
	if got := names(s.Introduce(id(1), 8, start.Add(Retry-1))); len(got) != 0 {
		t.Errorf("met again too early: %v", got)
	}
	if got := names(s.Introduce(id(1), 8, start.Add(Retry))); !slices.Equal(got, []int{2}) {
		t.Errorf("after the pause: %v, want 2 alone", got)
	}
	if got := names(s.Introduce(id(1), 8, start.Add(24*time.Hour))); !slices.Equal(got, []int{2}) {
		t.Errorf("a failed pair met after a day: %v", got)
	}
	s.Join(viewer(3)) // resumed: the same session
	if got := names(s.Introduce(id(3), 8, start.Add(48*time.Hour))); slices.Contains(got, 1) {
		t.Errorf("a failed pair met after a second join: %v", got)
	}
	s.Leave(id(3))
	s.Join(viewer(3)) // came back within the life of its ticket
	if got := names(s.Introduce(id(3), 8, start.Add(72*time.Hour))); slices.Contains(got, 1) {
		t.Errorf("a failed pair met after a second visit: %v", got)
	}
}

func TestAnEmptySwarmRemembersNothing(t *testing.T) {
	s := swarmOf(viewer(1), viewer(2), viewer(3))
	s.Introduce(id(1), 8, start)
	s.Failed(id(3), id(1), start)
	s.Failed(id(77), id(78), start)
	if len(s.failed) != 1 {
		t.Errorf("%d failures are kept of which one is a member's", len(s.failed))
	}
	s.Expire(start.Add(time.Second), start.Add(time.Second))
	if s.Len() != 0 || len(s.met) != 0 {
		t.Errorf("%d members and %d encounters are left", s.Len(), len(s.met))
	}
	s.Expire(start, start.Add(failedLife+time.Second))
	if len(s.failed) != 0 {
		t.Errorf("%d failures outlived the sessions", len(s.failed))
	}
}

func TestFailuresAreBounded(t *testing.T) {
	s := swarmOf(viewer(1))
	for n := range maxFailed + 100 {
		s.Failed(id(1), ID{2, byte(n >> 16), byte(n >> 8), byte(n)}, start)
	}
	if len(s.failed) != maxFailed {
		t.Errorf("%d failures are kept", len(s.failed))
	}
}

func TestMembersComeGoAndExpire(t *testing.T) {
	s := swarmOf(viewer(1), viewer(2, func(m *Member) { m.Role = RoleOff }), viewer(3, func(m *Member) { m.Seen = start.Add(time.Minute) }))
	if s.Len() != 3 || s.Viewers() != 2 {
		t.Errorf("%d members, %d viewers", s.Len(), s.Viewers())
	}
	s.Join(viewer(1, func(m *Member) { m.Joined, m.Want = start.Add(time.Hour), 1 }))
	if m := s.Member(id(1)); !m.Joined.Equal(start.Add(time.Second)) || m.Want != 1 {
		t.Errorf("a second join is an update that keeps its place: %+v", m)
	}
	if n := s.Expire(start.Add(time.Second), start); n != 2 || s.Member(id(3)) == nil {
		t.Errorf("%d expired, %d left", n, s.Len())
	}
}

// TestViewersOfEqualRankSpread: the hash must not send all newcomers to the same few.
func TestViewersOfEqualRankSpread(t *testing.T) {
	s := New()
	const members, newcomers = 100, 1000
	for n := range members {
		s.Join(viewer(n, func(m *Member) { m.Want = 1 << 30 }))
	}
	met := map[ID]int{}
	for n := range newcomers {
		s.Join(viewer(members+n, func(m *Member) { m.Want = 0 }))
		for _, m := range s.Introduce(id(members+n), 8, start) {
			met[m.ID]++
		}
	}
	const mean = newcomers * 8 / members
	for n, times := range met {
		if times > 2*mean {
			t.Errorf("%x was chosen %d times, the mean is %d", n, times, mean)
		}
	}
	if len(met) != members {
		t.Errorf("%d of %d were chosen at all", len(met), members)
	}
}

func BenchmarkIntroduce(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	s := New()
	var plainly []*Member
	for n := range 2000 {
		m := drawn(r, n)
		m.Role, m.Saturated, m.Want = RoleFull, false, 1<<30
		for i := range m.ID {
			m.ID[i] = byte(r.Uint32())
		}
		s.Join(m)
		plainly = append(plainly, s.members[m.ID])
	}
	self, now := plainly[0].ID, start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(Retry) // so that all may meet again
		if got := s.Introduce(self, 8, now); len(got) != 8 {
			b.Fatalf("%d introduced", len(got))
		}
	}
	introduce := b.Elapsed() / time.Duration(b.N)
	const rounds = 50
	var sorting time.Duration
	for range rounds {
		r.Shuffle(len(plainly), func(i, j int) { plainly[i], plainly[j] = plainly[j], plainly[i] })
		began := time.Now()
		slices.SortFunc(plainly, func(a, b *Member) int { return slices.Compare(a.ID[:], b.ID[:]) })
		sorting += time.Since(began)
	}
	b.ReportMetric(float64(introduce)/float64(sorting/rounds), "x-sort")
}
