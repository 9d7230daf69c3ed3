package partsim

import (
	"slices"

	"github.com/leeway-video/leeway/internal/mesh"
)

const (
	// verifying is how long a certificate or a piece takes, µs.
	verifying = 1_000
	// backlog is how much may wait for a child, bytes. What is older is then not sent any more.
	backlog = 128 << 10
	// keptParts is how many parts a node has in hand.
	keptParts = 16
)

// feed is a node's part in one rendition.
type feed struct {
	node      *node
	rendition int
	mesh      *mesh.Mesh
	parts     map[int]*part
	newest    int
	holds     map[mesh.ID]bool // peers that were told to push nothing
	held      map[mesh.ID]bool // peers that nothing is pushed to
	heard     int64            // when the seed sent the last certificate
}

// source is where a piece came from first.
type source uint8

const (
	nowhere source = iota
	fromOrigin
	fromSeed
	fromViewer
)

// part is what a node has of a part.
type part struct {
	n, size   int
	have      []bool   // verified pieces
	from      []source // of pieces that came, verified or not
	missing   int      // pieces that have not come
	progress  int64    // when a peer sent a piece last
	whole     int64    // when the last one came
	certified bool
	pending   []func()           // what came before the certificate
	fetching  []bool             // pieces that the origin was asked for
	flows     []*flow            // of the origin
	told      map[mesh.ID]bool   // peers that were sent the certificate
	without   map[mesh.ID]bool   // peers that want nothing more of it
	holders   map[mesh.ID][]bool // pull: what peers say that they have
	flying    map[int]mesh.ID    // pull: what was asked for
	announced int64              // pull: when the links were told last
	announces bool               // pull: they are told soon
}

func (f *feed) part(n int) *part {
	p := f.parts[n]
	if p == nil {
		size := f.node.sim.stream.size(f.rendition, n)
		count := pieces(size)
		p = &part{
			n: n, size: size, have: make([]bool, count), from: make([]source, count), fetching: make([]bool, count), missing: count,
			told: map[mesh.ID]bool{}, without: map[mesh.ID]bool{}, holders: map[mesh.ID][]bool{}, flying: map[int]mesh.ID{}, announced: -announceEvery,
		}
		f.parts[n] = p
		f.newest = max(f.newest, n)
		delete(f.parts, n-keptParts)
	}
	return p
}

func (f *feed) stripe(p *part, piece int) int {
	return f.node.sim.stripe(p.n, piece, len(p.have))
}

// sourcing says whether certificates come without a parent: of the packager with the playlist, or of a seed that sends them.
func (f *feed) sourcing() {
	f.mesh.CanSource(f.node.sim.o.Trouble.Packaged || f.node.seedID() != nil && f.node.sim.w.now-f.heard < 4*f.node.sim.o.Part)
}

func (n *node) seedID() *mesh.ID {
	for _, id := range n.order {
		if n.links[id].to.seed {
			return &id
		}
	}
	return nil
}

// flush sends what the mesh wants to say.
func (f *feed) flush() { f.deliver(f.mesh.Decide(f.node.sim.w.now)) }

func (f *feed) deliver(sends []mesh.Send) {
	n, r := f.node, f.rendition
	for _, s := range sends {
		if n.temper == lies && s.Kind == mesh.Tell {
			s.Place = mesh.Place{Path: []mesh.ID{n.id}, Room: mesh.MaxSlots}
		}
		n.sim.messages++
		n.say(s.To, func(to *node) {
			if g := to.feeds[r]; g != nil {
				g.mesh.Heard(n.sim.w.now, n.id, s.Message)
				g.flush()
			}
		})
	}
}

func (f *feed) lost(id mesh.ID) {
	f.mesh.Gone(id)
	f.sourcing()
	for _, p := range f.parts {
		for i, of := range p.flying {
			if of == id {
				delete(p.flying, i)
			}
		}
		delete(p.holders, id)
	}
	f.flush()
}

// certify takes a verified certificate, and passes it on.
func (f *feed) certify(p *part) {
	if p.certified {
		return
	}
	p.certified = true
	if p.missing == 0 && f.node.watch != nil {
		f.node.watch.digest = append(f.node.watch.digest, f.node.sim.w.now-p.whole)
	}
	to := f.node.order // a seed tells all
	if !f.node.seed {
		to = f.mesh.AllChildren()
	}
	for _, id := range to {
		f.head(id, p)
	}
	for _, take := range p.pending {
		take()
	}
	p.pending = nil
	if f.node.sim.o.Way == Pull {
		f.pull(p)
	}
}

// head sends a certificate, once to each.
func (f *feed) head(to mesh.ID, p *part) {
	if p.told[to] || f.node.temper >= silent || !p.certified {
		return
	}
	p.told[to] = true
	n, r, part := f.node, f.rendition, p.n
	n.say(to, func(to *node) {
		if g := to.feeds[r]; g != nil && part > g.newest-keptParts {
			if n.seed {
				g.heard = n.sim.w.now
			}
			n.sim.w.after(verifying, func() { g.certify(g.part(part)) })
		}
	})
}

// arrived takes a piece from a peer, or from the origin if from is nil.
func (f *feed) arrived(p *part, i int, from *node, wrong bool) {
	w := f.node.watch
	delete(p.flying, i)
	if p.have[i] {
		w.twice += pieceBytes(p.size, i)
		if from != nil && !wrong {
			f.mesh.Arrived(f.node.sim.w.now, from.id, f.stripe(p, i))
		}
		return
	}
	if !wrong {
		f.came(p, i, from)
	}
	take := func() { f.node.sim.w.after(verifying, func() { f.checked(p, i, from, wrong) }) }
	if p.certified {
		take()
	} else {
		p.pending = append(p.pending, take)
	}
	if from == nil {
		w.use(f, p) // the player gets what the origin sent, verified or not
	}
}

// came notes a piece that has come, verified or not. What the origin sends can be played at once.
func (f *feed) came(p *part, i int, from *node) {
	first := p.from[i] == nowhere
	if from != nil {
		p.progress = f.node.sim.w.now
	}
	switch {
	case from == nil:
		p.from[i] = fromOrigin
	case first && from.seed:
		p.from[i] = fromSeed
	case first:
		p.from[i] = fromViewer
	}
	if !first {
		f.node.watch.twice += pieceBytes(p.size, i)
		return
	}
	if p.missing--; p.missing == 0 {
		p.whole = f.node.sim.w.now
		if p.certified {
			f.node.watch.digest = append(f.node.watch.digest, 0)
		}
	}
}

// checked takes a piece that was compared with its digest.
func (f *feed) checked(p *part, i int, from *node, wrong bool) {
	n := f.node
	if wrong {
		n.watch.bad++
		n.watch.wrong[from.id]++
		n.ban(from.id)
		return
	}
	if from != nil {
		f.mesh.Arrived(n.sim.w.now, from.id, f.stripe(p, i))
		defer f.flush()
	}
	if !p.have[i] {
		f.accept(p, i)
	}
}

// accept has a verified piece, and pushes it.
func (f *feed) accept(p *part, i int) {
	p.have[i] = true
	switch {
	case f.node.sim.o.Way == Push:
		for _, id := range f.mesh.Children(f.stripe(p, i)) {
			f.push(id, p, i)
		}
	case f.node.sim.o.Way == Pull && !f.node.seed:
		f.announce(p)
	}
	if f.node.watch != nil {
		f.node.watch.use(f, p)
	}
}

// push sends a piece to a peer.
func (f *feed) push(to mesh.ID, p *part, i int) {
	n, l := f.node, f.node.links[to]
	if l == nil || p.without[to] || f.held[to] || n.temper >= silent {
		return
	}
	f.head(to, p)
	if l.data.queued > backlog {
		for _, m := range l.data.forget(func(part int) bool { return part < p.n }) {
			m.left()
		}
	}
	r, part, wrong, at := f.rendition, p.n, n.temper == pollutes, n.sim.w.now
	left := func() {
		if n.sim.o.Children == ByWaits {
			f.mesh.Waited(n.sim.w.now, to, f.stripe(p, i), n.sim.w.now-at, n.sim.o.Part)
		}
	}
	l.data.send(message{size: pieceBytes(p.size, i), part: p.n, left: left, arrived: func() {
		n.sim.w.after(handling, func() {
			if g := l.to.feeds[r]; g != nil && l.to.links[n.id] != nil && part > g.newest-keptParts {
				g.arrived(g.part(part), i, n, wrong)
			}
		})
	}})
}

// enough tells the peers that push to the node that it wants nothing more of a part.
func (f *feed) enough(part int) {
	n, r := f.node, f.rendition
	for _, id := range n.order {
		if !f.sends(id) {
			continue
		}
		n.sim.messages++
		n.say(id, func(to *node) {
			if g := to.feeds[r]; g != nil && part > g.newest-keptParts {
				g.part(part).without[n.id] = true
				for _, m := range to.links[n.id].data.forget(func(of int) bool { return of == part }) {
					m.left()
				}
			}
		})
	}
}

// hold tells the peers that push to the node to push nothing for now, or to go on.
func (f *feed) hold(on bool) {
	n, r := f.node, f.rendition
	for _, id := range n.order {
		if on == f.holds[id] || on && !f.sends(id) {
			continue
		}
		f.holds[id] = on
		n.sim.messages++
		n.say(id, func(to *node) {
			if g := to.feeds[r]; g != nil {
				if g.held[n.id] = on; on {
					to.links[n.id].data.forget(func(int) bool { return true })
				}
			}
		})
	}
}

// sends says whether a peer pushes to this node.
func (f *feed) sends(id mesh.ID) bool {
	return slices.Contains(f.mesh.Parents(), id) || f.node.sim.o.Way == Pull
}
