package partsim

import "github.com/leeway-video/leeway/internal/mesh"

// watch is what a viewer does for its player.
type watch struct {
	node   *node
	player player
	feed   *feed
	asked  int // part that the player waits for; -1: none

	bytes      [4]int  // of played parts, by source
	twice, bad int     // bytes that came twice; pieces that were wrong
	digest     []int64 // how long parts waited for their certificate, µs
	delay      []int64 // from a part's publication to the player, µs
	depths     []int
	wrong      map[mesh.ID]int
	short      bool // the buffer is
}

// rendition is the one that the player chooses: the middle one for two segments, then the largest.
func (w *watch) rendition(part int) int {
	if part < w.player.first+2*w.node.sim.stream.perSegment {
		return 1
	}
	return 2
}

// load is the player's request for a part.
func (w *watch) load(n int, deadline int64) {
	sim := w.node.sim
	if r := w.rendition(n); w.feed == nil || w.feed.rendition != r {
		if w.feed != nil {
			w.node.unfollow(w.feed.rendition)
		}
		w.feed = w.node.follow(r)
		w.feed.flush()
	}
	f := w.feed
	p := f.part(n)
	w.asked = n
	if sim.o.Trouble.Packaged {
		// The packager's certificate comes with the playlist that names the part.
		sim.w.after(verifying, func() { f.certify(p) })
	}
	if w.use(f, p); w.asked != n {
		return
	}
	switch {
	case sim.o.Way == Push:
		w.fetch(f, p, func(i int) bool { return w.short || f.mesh.Parent(f.stripe(p, i)) == (mesh.ID{}) })
	case sim.o.Way == Pull && len(w.node.order) > 0:
		f.pull(p)
	default:
		w.fetch(f, p, func(int) bool { return true })
		return
	}
	w.wait(f, p, sim.w.now, deadline)
}

// dueAt is when the origin is asked for the rest of a part that was asked for, or of which a piece came, at a moment.
func (w *watch) dueAt(since, deadline int64, p *part) int64 {
	o := w.node.sim.o
	if o.Grace > 0 { // by the buffer alone
		return min(since+o.Grace, mesh.Due(deadline, deadline, w.took(p), o.Part))
	}
	return mesh.Due(since, deadline, w.took(p), o.Part)
}

// wait looks for the moment at which the origin is asked for the rest, again whenever pieces have come until then.
func (w *watch) wait(f *feed, p *part, asked, deadline int64) {
	sim := w.node.sim
	due := w.dueAt(max(asked, p.progress), deadline, p)
	sim.w.at(due, func() {
		if w.asked != p.n || w.feed != f || w.player.gone {
			return
		}
		if p.progress > asked && w.dueAt(p.progress, deadline, p) > sim.w.now {
			w.wait(f, p, asked, deadline)
			return
		}
		w.due(f, p, sim.w.now-max(asked, p.progress) >= sim.o.Part/4)
	})
}

// took is how long the origin takes for what is missing of a part.
func (w *watch) took(p *part) int64 {
	missing := 0
	for i, from := range p.from {
		if from == nowhere && !p.fetching[i] {
			missing += pieceBytes(p.size, i)
		}
	}
	return 2*w.node.access.delay + int64(float64(missing)/w.node.access.down.rate*second)
}

// due asks the origin for what peers did not bring in time, and takes it back from them. Parents that had time have missed the part.
func (w *watch) due(f *feed, p *part, hadTime bool) {
	missed := map[int]bool{}
	for i := range p.have {
		if s := f.stripe(p, i); p.from[i] == nowhere && !p.fetching[i] && !missed[s] && hadTime {
			missed[s] = true
			f.mesh.Missed(w.node.sim.w.now, s)
		}
	}
	w.fetch(f, p, func(i int) bool { return p.from[i] == nowhere })
	f.enough(p.n)
	f.flush()
}

// spare has peers push nothing while the buffer is short, because what they push shares the line with what the origin sends.
func (w *watch) spare() {
	if w.feed == nil || !w.player.begun || w.node.sim.o.Way != Push || w.node.sim.o.Heedless {
		return
	}
	buffer := w.player.deadline(w.player.next) - w.node.sim.w.now
	switch {
	case buffer < w.node.sim.o.Part/4:
		w.short = true
	case buffer >= w.node.sim.o.Part && w.player.next == w.player.edge: // it has all that there is
		w.short = false
	}
	w.feed.hold(w.short)
}

// fetch asks the origin for the runs of pieces that have not come and are wanted of it.
func (w *watch) fetch(f *feed, p *part, want func(i int) bool) {
	run := []int{}
	for i := range len(p.have) + 1 {
		if i < len(p.have) && !p.have[i] && p.from[i] != fromOrigin && !p.fetching[i] && want(i) {
			p.fetching[i] = true
			run = append(run, i)
		} else if len(run) > 0 {
			w.request(f, p, run)
			run = []int{}
		}
	}
}

func (w *watch) request(f *feed, p *part, run []int) {
	sim := w.node.sim
	sim.requests++
	flow := &flow{w: sim.w, from: &sim.origin, to: w.node.access}
	p.flows = append(p.flows, flow)
	sim.w.signal(w.node.access, &sim.origin, func() {
		for _, i := range run {
			flow.send(message{size: pieceBytes(p.size, i), part: p.n, arrived: func() { f.arrived(p, i, nil, false) }})
		}
	})
}

// use gives the part to the player, if it waits for it and all of it is there.
func (w *watch) use(f *feed, p *part) {
	if w.feed != f || w.asked != p.n || w.player.gone {
		return
	}
	for i := range p.have {
		if !p.have[i] && p.from[i] != fromOrigin {
			return
		}
	}
	w.asked = -1
	origin := false
	for i, from := range p.from {
		w.bytes[from] += pieceBytes(p.size, i)
		origin = origin || from == fromOrigin
	}
	if at := w.node.sim.stream.published(p.n); at > w.player.joinedAt+2*second {
		w.delay = append(w.delay, w.node.sim.w.now-at)
	}
	for _, flow := range p.flows {
		flow.closed = true
	}
	if origin && w.node.sim.o.Way != Alone {
		f.enough(p.n)
	}
	for s := range w.node.sim.o.Stripes {
		if f.mesh.Parent(s) != (mesh.ID{}) {
			w.depths = append(w.depths, len(f.mesh.Path(s))-1)
		}
	}
	w.player.loaded()
}

// reload is the player's request for a playlist that names a part: the origin answers once it is published.
func (w *watch) reload(part int, listed func(edge int)) {
	sim := w.node.sim
	sim.w.signal(w.node.access, &sim.origin, func() {
		at := sim.w.now
		if part > 0 {
			at = sim.stream.published(part)
		}
		sim.w.at(at, func() {
			edge := sim.stream.edge(sim.w.now)
			sim.w.signal(&sim.origin, w.node.access, func() { listed(edge) })
		})
	})
}
