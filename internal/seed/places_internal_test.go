package seed

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// clocked are places with a clock of its own, and links of sessions that count up.
type clocked struct {
	*places
	at   time.Time
	next byte
}

func newClocked(most int) *clocked {
	s := &clocked{at: time.Unix(1_800_000_000, 0)}
	s.places = newPlaces(most, func() time.Time { return s.at })
	return s
}

// from is a link of a new session from a subnet, used now.
func (s *clocked) from(subnet string) *viewerLink {
	s.next++
	return s.of(signal.ID{s.next}, subnet)
}

func (s *clocked) of(session signal.ID, subnet string) *viewerLink {
	v := &viewerLink{caller: caller{from: party{session: session, subnet: subnet}}}
	v.used.Store(s.at.UnixNano())
	return v
}

// seat gives a link a place and opens it.
func (s *clocked) seat(t *testing.T, v *viewerLink) {
	t.Helper()
	if _, ok := s.offer(v, nil); !ok {
		t.Fatal("no place on the way")
	}
	if _, _, ok := s.opened(v); !ok {
		t.Fatal("no place")
	}
}

// TestPlacesOnTheWayGoToOtherSubnets: the oldest of the subnet that has most of them makes room, and only for another one.
func TestPlacesOnTheWayGoToOtherSubnets(t *testing.T) {
	s := newClocked(40) // eight on their way
	var first *viewerLink
	for i := range halfOpenLeast {
		v := s.from("a")
		if i == 0 {
			first = v
		}
		if displaced, ok := s.offer(v, nil); displaced != nil || !ok {
			t.Fatalf("link %d: displaced %v, %t", i, displaced, ok)
		}
		s.at = s.at.Add(time.Second)
	}
	if _, ok := s.offer(s.from("a"), nil); ok {
		t.Error("a ninth of one subnet has a place on the way")
	}
	if displaced, ok := s.offer(s.from("b"), nil); displaced != first || !ok {
		t.Errorf("another subnet displaces %p, %t; want the oldest, %p", displaced, ok, first)
	}
	if _, _, ok := s.opened(first); ok {
		t.Error("a link that lost its place opens")
	}
	if open, half := s.counts(); open != 0 || half != halfOpenLeast {
		t.Errorf("%d open, %d on their way", open, half)
	}
}

// TestASessionHasEightPlaces, and a refusal gives back the link that was to be replaced.
func TestASessionHasEightPlaces(t *testing.T) {
	s := newClocked(200)
	session := signal.ID{99}
	var links []*viewerLink
	for range linksOfSession {
		v := s.of(session, "a")
		s.seat(t, v)
		links = append(links, v)
	}
	other := s.from("b")
	s.seat(t, other)
	if _, ok := s.offer(s.of(session, "a"), other); ok {
		t.Error("a session has nine places")
	}
	if open, _ := s.counts(); open != linksOfSession+1 {
		t.Errorf("%d links are open after a refusal; want %d", open, linksOfSession+1)
	}
	if _, ok := s.offer(s.of(session, "a"), links[0]); !ok {
		t.Error("a link of the session is not replaced by another")
	}
}

// TestOpenPlacesAreTakenFromIdleLinksAndFromMoreThanAShare, and from no other.
func TestOpenPlacesAreTakenFromIdleLinksAndFromMoreThanAShare(t *testing.T) {
	for name, c := range map[string]struct {
		idle     time.Duration // of the first link of subnet a
		newcomer string
		why      string // "": there is no place
	}{
		"idle":                       {idleAfter, "b", displacedIdle},
		"not idle yet, and a share":  {idleAfter - 1, "b", displacedShare},
		"idle, of the same subnet":   {idleAfter, "a", displacedIdle},
		"not idle, the same subnet":  {time.Second, "a", ""},
		"not idle, a session for it": {time.Second, "", displacedShare},
	} {
		t.Run(name, func(t *testing.T) {
			s := newClocked(4)
			first := s.from("a")
			s.seat(t, first)
			s.at = s.at.Add(c.idle)
			for range 3 {
				s.seat(t, s.from("a"))
			}
			v := s.from(c.newcomer)
			displaced, ok := (*viewerLink)(nil), false
			why := ""
			if _, offered := s.offer(v, nil); offered {
				displaced, why, ok = s.opened(v)
			}
			if ok != (c.why != "") || why != c.why || ok && displaced != first {
				t.Errorf("%t for %q, displaced %p; want %q and %p", ok, why, displaced, c.why, first)
			}
			if open, _ := s.counts(); open != 4 {
				t.Errorf("%d links are open", open)
			}
		})
	}
}

// TestLinksThatDoNotOpenLoseTheirPlace after ten seconds, and not before.
func TestLinksThatDoNotOpenLoseTheirPlace(t *testing.T) {
	s := newClocked(40)
	slow, open := s.from("a"), s.from("a")
	if _, ok := s.offer(slow, nil); !ok {
		t.Fatal("no place")
	}
	s.seat(t, open)
	s.at = s.at.Add(halfOpenFor - 1)
	if late := s.late(); late != nil {
		t.Errorf("%d links are late before their time", len(late))
	}
	s.at = s.at.Add(1)
	if late := s.late(); !slices.Equal(late, []*viewerLink{slow}) {
		t.Errorf("%d links are late", len(late))
	}
	if open, half := s.counts(); open != 1 || half != 0 {
		t.Errorf("%d open, %d on their way", open, half)
	}
}

// TestLoadIsFullOnlyWhereANewcomerFindsNoPlace.
func TestLoadIsFullOnlyWhereANewcomerFindsNoPlace(t *testing.T) {
	s := newClocked(4)
	for i, want := range []int{0, 250, 500, 750} {
		if got := s.load(); got != want {
			t.Errorf("load of %d links is %d, want %d", i, got, want)
		}
		s.seat(t, s.from(string(rune('a'+i))))
	}
	if got := s.load(); got != 1000 {
		t.Errorf("load of four links of four subnets in use is %d", got)
	}
	s.at = s.at.Add(idleAfter)
	if got := s.load(); got != roomToMake {
		t.Errorf("load of four idle links is %d, want %d", got, roomToMake)
	}
}
