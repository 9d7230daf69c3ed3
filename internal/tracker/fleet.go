package tracker

import (
	"bytes"
	"slices"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// seedsToMeet is how many seeds a viewer meets.
func seedsToMeet(viewers int) int {
	if viewers > secondSeedAbove {
		return 2
	}
	return 1
}

// serving lists the seeds that serve a swarm with so many viewers. fleet says that they have segments from each other, so that
// each of them may have viewers of its own; otherwise all viewers meet the same.
func (r *roster) serving(site string, id signal.ID, viewers int) (seeds []signal.ID, fleet bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servingOf(r.able(site, id), viewers)
}

// servingOf is serving, of what able lists. Under mu, as able is: no seed may go in between.
func (r *roster) servingOf(order []signal.ID, viewers int) (seeds []signal.ID, fleet bool) {
	if len(order) == 0 {
		return nil, false
	}
	first := r.seeds[order[0]].beat.Fleet
	if first == nil {
		return slices.Clip(order[:min(seedsToMeet(viewers), len(order))]), false
	}
	want := cluster.Serving(viewers)
	for _, seed := range order {
		if f := r.seeds[seed].beat.Fleet; f != nil && bytes.Equal(f.ID, first.ID) && len(seeds) < want {
			seeds = append(seeds, seed)
		}
	}
	return seeds, true
}

// meeting lists the seeds that a viewer may meet, best first. Viewers are spread over those of a fleet that serve the swarm and
// were told so: a seed that does not know the others fetches by itself. The rest is for viewers that cannot reach these.
func (r *roster) meeting(site string, id, session signal.ID, viewers int, told []signal.ID) []signal.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	order := r.able(site, id)
	out, fleet := r.servingOf(order, viewers)
	if fleet {
		if slices.ContainsFunc(out, func(seed signal.ID) bool { return slices.Contains(told, seed) }) {
			out = slices.DeleteFunc(out, func(seed signal.ID) bool { return !slices.Contains(told, seed) })
		}
		out = swarm.Order(out, session)
	}
	for _, seed := range order {
		if !slices.Contains(out, seed) {
			out = append(out, seed)
		}
	}
	return out
}
