package cluster

import (
	"slices"

	"github.com/leeway-video/leeway/internal/swarm"
)

// How many seeds of a fleet serve a swarm (spec/cluster.md, "Seeds").
const (
	fleetLeast     = 2 // one may be lost without a word
	fleetMost      = 16
	viewersPerSeed = 25
)

// Serving is how many seeds of a fleet serve a swarm with so many viewers.
func Serving(viewers int) int { return min(fleetLeast+viewers/viewersPerSeed, fleetMost) }

// Joins says whether a seed that is new in a fleet will serve a swarm that some others of the fleet serve now.
func Joins(self, id swarm.ID, now []swarm.ID, viewers int) bool {
	order := swarm.Order(append([]swarm.ID{self}, now...), id)
	return slices.Contains(order[:min(Serving(viewers), len(order))], self)
}
