package swarm

import (
	"fmt"
	"testing"
)

// at is a member of a subnet with a range.
func at(n int, subnet string, r Range) Member {
	return viewer(n, func(m *Member) { m.Subnet, m.Range = subnet, r })
}

func bySubnet(members []Member) map[string]int {
	of := map[string]int{}
	for _, m := range members {
		of[m.Subnet]++
	}
	return of
}

// TestIntroductionsAreNeverAllFromOneSubnet: a network that fills a swarm with sessions that have just what a newcomer wants is not
// all that it meets, at its first introductions or with those that follow, wherever the newcomer is.
func TestIntroductionsAreNeverAllFromOneSubnet(t *testing.T) {
	whole, little := Range{0, 600_000}, Range{0, 10_000}
	for name, c := range map[string]struct {
		newcomer string
		most     int // of eight
	}{"from elsewhere": {"home", 4}, "from the same subnet": {"sybils", 6}} {
		t.Run(name, func(t *testing.T) {
			s := New()
			for n := range 200 {
				s.Join(at(n, "sybils", whole))
			}
			for n := range 20 {
				s.Join(at(1000+n, fmt.Sprint("honest", n), little))
			}
			s.Join(at(9999, c.newcomer, whole))
			got := s.Introduce(id(9999), 8, start)
			if of := bySubnet(got); len(got) != 8 || of["sybils"] != c.most {
				t.Fatalf("%v of %d", of, len(got))
			}
			for n := range 4 { // one by one, as links end
				got = append(got, s.Introduce(id(9999), 1, start)...)
				if of := bySubnet(got); len(got) != 9+n || of["sybils"] > (len(got)+1)*c.most/8 {
					t.Fatalf("%v of %d", of, len(got))
				}
			}
		})
	}
}

// TestNeighborsComeFirst: viewers of one network meet each other before others, within its share; and all of them where there are
// no others.
func TestNeighborsComeFirst(t *testing.T) {
	s := New()
	for n := range 20 {
		s.Join(at(n, "campus", Range{}))
	}
	if of := bySubnet(s.Introduce(id(0), 8, start)); of["campus"] != 8 {
		t.Errorf("alone: %v", of)
	}
	for n := range 20 {
		s.Join(at(100+n, fmt.Sprint("home", n), Range{}))
	}
	if of := bySubnet(s.Introduce(id(1), 8, start)); of["campus"] != 6 {
		t.Errorf("beside others: %v", of)
	}
	few := swarmOf(at(1, "campus", Range{}), at(2, "campus", Range{}), at(3, "campus", Range{}), at(4, "campus", Range{}), at(5, "campus", Range{}), at(6, "home", Range{}))
	if of := bySubnet(few.Introduce(id(1), 8, start)); of["campus"] != 4 || of["home"] != 1 {
		t.Errorf("with too few others: %v", of)
	}
}
