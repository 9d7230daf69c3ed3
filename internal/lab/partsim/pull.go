package partsim

import "github.com/leeway-video/leeway/internal/mesh"

// The alternative to pushing: pieces are announced, and asked for one by one.
const (
	announceEvery = 50_000 // µs
	askedAtOnce   = 8      // pieces of one peer
)

// announce tells the links what is in hand of a part, at most every 50 ms.
func (f *feed) announce(p *part) {
	if p.announces {
		return
	}
	p.announces = true
	wait := max(0, p.announced+announceEvery-f.node.sim.w.now)
	f.node.sim.w.after(wait, func() {
		p.announces, p.announced = false, f.node.sim.w.now
		n, r, part := f.node, f.rendition, p.n
		have := append([]bool(nil), p.have...)
		for _, id := range n.order {
			f.head(id, p)
			n.sim.messages++
			n.say(id, func(to *node) {
				if g := to.feeds[r]; g != nil {
					q := g.part(part)
					q.holders[n.id] = have
					g.pull(q)
				}
			})
		}
	})
}

// pull asks for the missing pieces of the part that the player waits for.
func (f *feed) pull(p *part) {
	w := f.node.watch
	if w == nil || !p.certified || p.n < w.player.next || w.feed != f {
		return
	}
	busy := map[mesh.ID]int{}
	for _, id := range p.flying {
		busy[id]++
	}
	for i := range p.have {
		if _, asked := p.flying[i]; asked || p.from[i] != nowhere || p.fetching[i] {
			continue
		}
		best := f.holder(p, i, busy)
		if best == nil {
			continue
		}
		busy[*best]++
		p.flying[i] = *best
		n, r, part := f.node, f.rendition, p.n
		n.sim.messages++
		n.say(*best, func(to *node) {
			if g := to.feeds[r]; g != nil && g.part(part).have[i] {
				g.push(n.id, g.part(part), i)
			}
		})
	}
}

// holder is the peer that is asked for a piece: the viewer of which the least is asked, else the seed, for the viewers of the highest rank.
func (f *feed) holder(p *part, i int, busy map[mesh.ID]int) *mesh.ID {
	var best *mesh.ID
	owner := !thin(f.node)
	own := mesh.SourceRank(f.node.id, p.n+i, 0)
	for _, id := range f.node.order {
		to := f.node.links[id].to
		if to.seed || thin(to) {
			continue
		}
		if has := p.holders[id]; has != nil && has[i] && busy[id] < askedAtOnce && (best == nil || busy[id] < busy[*best]) {
			best = &id
		}
		if to.feeds[f.rendition] != nil && mesh.SourceRank(id, p.n+i, 0) < own {
			owner = false
		}
	}
	if seed := f.node.seedID(); best == nil && owner && seed != nil && busy[*seed] < askedAtOnce {
		best = seed
	}
	return best
}

// thin lines are asked for nothing, and ask the seed for nothing: others would wait for what they pass on.
func thin(n *node) bool { return n.access.up.rate < segmentBytes[2]/2 }
