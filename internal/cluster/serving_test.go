package cluster

import (
	"testing"

	"github.com/leeway-video/leeway/internal/swarm"
)

func TestServing(t *testing.T) {
	for viewers, want := range map[int]int{0: 2, 24: 2, 25: 3, 349: 15, 350: 16, 100_000: 16} {
		if n := Serving(viewers); n != want {
			t.Errorf("%d seeds serve %d viewers, want %d", n, viewers, want)
		}
	}
}

// TestASeedJoinsWhereTheHomeWouldNameIt: a newcomer comes to the same list as a home that hears of all seeds.
func TestASeedJoinsWhereTheHomeWouldNameIt(t *testing.T) {
	var seeds []swarm.ID
	for i := range 8 {
		seeds = append(seeds, swarm.ID{byte(i), 9})
	}
	self, others := seeds[0], seeds[1:]
	joined := 0
	for i := range 200 {
		title, viewers := swarm.ID{1, byte(i)}, i%100
		before := swarm.Order(others, title)
		before = before[:min(Serving(viewers), len(before))]
		after := swarm.Order(seeds, title)[:min(Serving(viewers), len(seeds))]
		named := false
		for _, id := range after {
			named = named || id == self
		}
		if named != Joins(self, title, before, viewers) {
			t.Errorf("title %d with %d viewers: the home names it: %v", i, viewers, named)
		}
		if named {
			joined++
		}
	}
	if joined == 0 || joined == 200 {
		t.Errorf("it joins %d of 200 swarms", joined)
	}
	if !Joins(self, swarm.ID{1}, nil, 0) || !Joins(self, swarm.ID{1}, others[:1], 0) {
		t.Error("a fleet of two does not serve all there is")
	}
}
