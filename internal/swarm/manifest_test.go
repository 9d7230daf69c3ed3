package swarm

import (
	"fmt"
	"testing"
)

// naming is a member of a subnet that names a manifest.
func naming(manifest string, n, subnet int) Member {
	return viewer(n, func(m *Member) { m.Manifest, m.Subnet = manifest, fmt.Sprint(subnet) })
}

func TestManifestOfFewMembers(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []Member
		want    string
	}{
		{"no members", nil, ""},
		{"none named one", []Member{viewer(1), viewer(2)}, ""},
		{"one did", []Member{viewer(1), naming("/b", 2, 2)}, "/b"},
		{"the majority", []Member{naming("/a", 1, 1), naming("/b", 2, 2), naming("/b", 3, 3)}, "/b"},
		{"the first among equals", []Member{naming("/b", 1, 1), naming("/a", 2, 2)}, "/b"},
		{"all in one subnet: members", []Member{naming("/a", 1, 1), naming("/b", 2, 1), naming("/b", 3, 1)}, "/b"},
		{"no vote for none", []Member{viewer(1), viewer(2), viewer(3), naming("/a", 4, 4)}, "/a"},
	} {
		if got := swarmOf(c.members...).Manifest(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTheFirstNamedManifestIsNotPinned: one member names a wrong manifest before all others, which name the right one.
func TestTheFirstNamedManifestIsNotPinned(t *testing.T) {
	s := swarmOf(naming("/wrong", 0, 0))
	for n := 1; n <= 1000; n++ {
		s.Join(naming("/right", n, n))
		if n >= 2 && s.Manifest() != "/right" {
			t.Fatalf("%d subnets against one, and seeds follow %s", n, s.Manifest())
		}
	}
	if s.ManifestChanges() != 1 {
		t.Errorf("%d changes", s.ManifestChanges())
	}
}

// TestSybilsOfOneSubnetMoveNoManifest: a subnet has one vote for a manifest, however many sessions it opens, and so has a subject.
func TestSybilsOfOneSubnetMoveNoManifest(t *testing.T) {
	s := swarmOf(naming("/right", 1, 1), naming("/right", 2, 2))
	for n := 10; n < 1010; n++ {
		s.Join(naming("/wrong", n, 9))
	}
	if s.Manifest() != "/right" {
		t.Errorf("seeds follow %s", s.Manifest())
	}
	for n := 1010; n < 1030; n++ {
		s.Join(viewer(n, func(m *Member) { m.Manifest, m.Subnet, m.Subject = "/wrong", fmt.Sprint(n), "one" }))
	}
	for n := 10; n < 1010; n++ {
		s.Leave(id(n))
	}
	if s.Manifest() != "/right" {
		t.Errorf("for one subject in 20 subnets seeds follow %s", s.Manifest())
	}
}

// TestEqualManifestsDoNotAlternate: HLS and DASH of one title are about as many, and each viewer that comes or goes would tip the scales.
func TestEqualManifestsDoNotAlternate(t *testing.T) {
	s := New()
	for n := range 100 {
		s.Join(naming([]string{"/hls", "/dash"}[n%2], n, n))
	}
	began := s.ManifestChanges()
	for round := range 200 {
		for n := range 8 {
			s.Leave(id(n*2 + round%2))
		}
		for n := range 100 { // also by joining again, as trackers have silent members do
			s.Join(naming([]string{"/hls", "/dash"}[n%2], n, n))
		}
	}
	if n := s.ManifestChanges() - began; n != 0 {
		t.Errorf("%d changes", n)
	}
}
