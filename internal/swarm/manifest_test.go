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

// TestTheManifestBesideIsOfTheOtherFormat: a second HLS playlist does not take the place of the MPD, whatever its votes, and one vote
// takes no place that another has.
func TestTheManifestBesideIsOfTheOtherFormat(t *testing.T) {
	many := func(manifest string, from, n int) (all []Member) {
		for i := range n {
			all = append(all, naming(manifest, from+i, from+i))
		}
		return all
	}
	for _, c := range []struct {
		name         string
		members      [][]Member
		want, beside string
	}{
		{"none named one", nil, "", ""},
		{"one", [][]Member{many("/a.m3u8", 1, 1)}, "/a.m3u8", ""},
		{"two playlists", [][]Member{many("/a.m3u8", 1, 9), many("/b.m3u8", 20, 8)}, "/a.m3u8", ""},
		{"two MPDs", [][]Member{many("/a.mpd", 1, 9), many("/b.MPD", 20, 8)}, "/a.mpd", ""},
		{"one of each", [][]Member{many("/a.m3u8", 1, 1), many("/a.mpd", 2, 1)}, "/a.m3u8", "/a.mpd"},
		{"the other way round", [][]Member{many("/a.mpd", 1, 1), many("/a.m3u8", 2, 1)}, "/a.mpd", "/a.m3u8"},
		{"a second playlist", [][]Member{many("/a.m3u8", 1, 9), many("/a.mpd", 20, 1), many("/b.m3u8", 30, 8)}, "/a.m3u8", "/a.mpd"},
		{"a format by no suffix is HLS", [][]Member{many("/a", 1, 9), many("/a.mpd", 20, 1), many("/b", 30, 8)}, "/a", "/a.mpd"},
		{"one vote for another MPD", [][]Member{many("/a.m3u8", 1, 9), many("/a.mpd", 20, 5), many("/b.mpd", 30, 1)}, "/a.m3u8", "/a.mpd"},
		{"one vote before", [][]Member{many("/a.m3u8", 1, 9), many("/b.mpd", 20, 1), many("/a.mpd", 30, 2)}, "/a.m3u8", "/a.mpd"},
		{"about as many", [][]Member{many("/a.m3u8", 1, 9), many("/b.mpd", 20, 4), many("/a.mpd", 30, 4)}, "/a.m3u8", "/b.mpd"},
		{"a second MPD with more than the choice", [][]Member{many("/a.m3u8", 1, 8), many("/a.mpd", 20, 9), many("/b.mpd", 30, 10)}, "/a.m3u8", "/a.mpd"},
		{"and more than the one beside", [][]Member{many("/a.m3u8", 1, 8), many("/a.mpd", 20, 9), many("/b.mpd", 30, 11)}, "/b.mpd", "/a.m3u8"},
		{"the choice before stays beside", [][]Member{many("/a.m3u8", 1, 8), many("/b.m3u8", 20, 9), many("/a.mpd", 30, 10)}, "/a.mpd", "/a.m3u8"},
	} {
		s := New()
		for _, some := range c.members {
			for _, m := range some {
				s.Join(m)
			}
		}
		if s.Manifest() != c.want || s.Beside() != c.beside {
			t.Errorf("%s: %q beside %q, want %q beside %q", c.name, s.Beside(), s.Manifest(), c.beside, c.want)
		}
	}
}

// TestSybilsOfOneSubnetMoveNoManifestBeside: votes are counted as those of the choice are.
func TestSybilsOfOneSubnetMoveNoManifestBeside(t *testing.T) {
	s := swarmOf(naming("/right.m3u8", 1, 1), naming("/right.m3u8", 2, 2), naming("/right.mpd", 3, 3), naming("/right.mpd", 4, 4))
	for n := 10; n < 1010; n++ {
		s.Join(naming("/wrong.mpd", n, 9))
	}
	for n := 1010; n < 1030; n++ {
		s.Join(viewer(n, func(m *Member) { m.Manifest, m.Subnet, m.Subject = "/wrong-too.mpd", fmt.Sprint(n), "one" }))
	}
	if s.Manifest() != "/right.m3u8" || s.Beside() != "/right.mpd" {
		t.Errorf("seeds follow %s, and %s beside it", s.Manifest(), s.Beside())
	}
}

// TestTheManifestBesideGoesWithItsMembers, and the choice may become the one beside.
func TestTheManifestBesideGoesWithItsMembers(t *testing.T) {
	s := New()
	for n := range 8 {
		s.Join(naming([]string{"/hls.m3u8", "/dash.mpd"}[n%2], n, n))
	}
	if s.Manifest() != "/hls.m3u8" || s.Beside() != "/dash.mpd" {
		t.Fatalf("seeds follow %s, and %s beside it", s.Manifest(), s.Beside())
	}
	for n := 8; n < 16; n++ {
		s.Join(naming("/dash.mpd", n, n))
	}
	if s.Manifest() != "/dash.mpd" || s.Beside() != "/hls.m3u8" || s.ManifestChanges() != 1 {
		t.Errorf("after %d changes seeds follow %s, and %s beside it", s.ManifestChanges(), s.Manifest(), s.Beside())
	}
	for n := range 4 {
		s.Leave(id(2 * n))
	}
	if s.Manifest() != "/dash.mpd" || s.Beside() != "" {
		t.Errorf("seeds follow %s, and %q beside it", s.Manifest(), s.Beside())
	}
	for n := range 16 {
		s.Leave(id(n))
	}
	if s.Manifest() != "" || s.Beside() != "" {
		t.Errorf("seeds follow %q, and %q beside it", s.Manifest(), s.Beside())
	}
}
