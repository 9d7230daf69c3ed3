package schedule

import (
	"cmp"
	"math"
	"slices"
)

// assignment gives pieces of a segment that is not urgent to peers: to viewers, and what no viewer has to seeds (rules 6 and 7).
type assignment struct {
	self     string
	policy   *Policy
	timer    *timer
	peers    *peers
	requests *requests
}

// assign is rule 6. It says whether a piece stayed without any source.
func (a *assignment) assign(s *Segment, why string) (stranded bool) {
	interested := a.peers.interested(s)
	// What a viewer would send too late is not asked of it, nor what would take longer than the segment plays: the player asks for
	// one after the other. Without an origin to fall back on, late is better than never.
	left := min(s.turnUs(a.policy.UrgentPermille), s.AskedUs+s.DurationUs) - a.timer.nowUs
	if !s.asked() || s.Origin == OriginFailed {
		left = math.MaxInt64
	}
	var fromSeeds []int
	for _, n := range a.order(s) {
		if a.requests.of(s, n) != nil {
			continue
		}
		holds := func(p *peer) bool {
			return !p.stalled && p.has(s.ID, n) && (s.asked() || p.BehindUntilUs <= a.timer.nowUs)
		}
		if best := quickest(a.peers.viewers, func(p *peer) bool { return holds(p) && a.peers.usable(p, s) && p.eta() <= left }); best != nil {
			if !a.requests.full() {
				a.requests.send(s, n, best, why)
			}
			continue
		}
		if !s.asked() {
			continue // what a seed sends is no offload, and a later viewer may hold it
		}
		seeded := slices.ContainsFunc(a.peers.all, func(p *peer) bool { return p.Role == Seed && holds(p) })
		// A viewer that holds it is only busy: its next free slot is worth waiting for. A seed may have a quicker line than that viewer,
		// for which others wait as well.
		most := a.policy.MaxWaitUs
		if seeded {
			most = min(most, s.DurationUs/2)
		}
		if slices.ContainsFunc(a.peers.viewers, holds) && a.timer.waits(s.AskedUs+most) {
			continue
		}
		if !seeded {
			// A stalled holder may be asked again before that is over.
			until := s.AskedUs + a.policy.MaxWaitUs
			held := slices.ContainsFunc(a.peers.all, func(p *peer) bool { return p.StalledUntilUs < until && p.has(s.ID, n) })
			if !held || !a.timer.waits(until) {
				stranded = true
			}
			continue
		}
		if !a.leaves(s, n, interested) {
			fromSeeds = append(fromSeeds, n)
		}
	}
	a.toSeeds(s, fromSeeds, why)
	return stranded
}

// order lists the pieces that are not verified as they are assigned. The last is the shortest: as long as no viewer has sent
// anything it comes first, since it fits into the first flight of a path.
func (a *assignment) order(s *Segment) []int {
	open, last := s.open(), s.Pieces-1
	n := len(open) - 1
	fresh := !slices.ContainsFunc(a.peers.viewers, func(p *peer) bool { return p.Rate > 0 })
	if fresh && n > 0 && open[n] == last && slices.ContainsFunc(a.peers.viewers, func(p *peer) bool { return p.has(s.ID, last) }) {
		copy(open[1:], open[:n])
		open[0] = last
	}
	return open
}

// leaves says whether a piece is left to another viewer to fetch from a seed, for now: to any that has a quicker line, since others would
// wait for what a slow one passes on; then to its owner.
func (a *assignment) leaves(s *Segment, piece int, interested []*peer) bool {
	from := max(s.AskedUs, s.CertHeldUs) + min(max(0, s.OriginUs), s.DurationUs/4)
	if len(a.peers.viewers) > 0 && a.timer.waits(from) {
		return true
	}
	var waiting []*peer
	for _, p := range interested {
		if !p.has(s.ID, piece) {
			waiting = append(waiting, p)
		}
	}
	first := owner(s.ID, piece, a.self, waiting)
	if first == a.self {
		return false
	}
	heard := a.peers.byID[first].Heard[s.ID]
	return a.timer.waits(min(max(from, heard)+a.policy.PatienceUs, from+a.policy.MaxWaitUs))
}

// toSeeds goes in an order of one's own, so that two viewers that start together take different pieces from the seed. Ranks are
// hashes: none is made while no seed takes a piece, and one for each piece otherwise.
func (a *assignment) toSeeds(s *Segment, pieces []int, why string) {
	if a.requests.full() || !slices.ContainsFunc(a.peers.all, func(p *peer) bool { return p.Role == Seed && a.peers.usable(p, s) }) {
		return
	}
	if len(a.peers.viewers) > 0 {
		ranks := make(map[int]uint32, len(pieces))
		for _, n := range pieces {
			ranks[n] = Rank(s.ID, n, a.self)
		}
		slices.SortFunc(pieces, func(x, y int) int {
			return cmp.Or(cmp.Compare(ranks[x], ranks[y]), cmp.Compare(x, y))
		})
	}
	for _, n := range pieces {
		if a.requests.full() {
			return
		}
		seed := quickest(a.peers.all, func(p *peer) bool { return p.Role == Seed && p.has(s.ID, n) && a.peers.usable(p, s) })
		if seed != nil {
			a.requests.send(s, n, seed, why)
		}
	}
}
