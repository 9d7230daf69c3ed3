package partsim

import (
	"slices"

	"github.com/leeway-video/leeway/internal/mesh"
)

// handling is how long a browser has a message before it acts on it, µs.
const handling = 3_000

// temper is what a node does to others.
type temper int

const (
	honest   temper = iota
	pollutes        // sends wrong bytes
	silent          // takes children and sends nothing
	lies            // says besides that it is a seed with room for all
)

// node is a peer: a viewer or the seed.
type node struct {
	sim    *sim
	id     mesh.ID
	access *access
	temper temper
	seed   bool
	links  map[mesh.ID]*link
	order  []mesh.ID
	banned map[mesh.ID]bool
	feeds  map[int]*feed // by rendition: one of a viewer, all of the seed
	watch  *watch        // nil: the seed
	dead   bool
}

// link is one side of a link.
type link struct {
	to   *node
	data *flow
	open bool
}

func (s *sim) node(id mesh.ID, a access) *node {
	return &node{sim: s, id: id, access: &a, links: map[mesh.ID]*link{}, banned: map[mesh.ID]bool{}, feeds: map[int]*feed{}}
}

// say sends a control message; f is what the other side does with it.
func (n *node) say(to mesh.ID, f func(to *node)) {
	l := n.links[to]
	if l == nil {
		return
	}
	n.sim.w.signal(n.access, l.to.access, func() {
		n.sim.w.after(handling, func() {
			if back := l.to.links[n.id]; l.open && back != nil {
				f(l.to)
			}
		})
	})
}

// linked opens this side of a link, and says what the node follows.
func (n *node) linked(to *node) {
	n.links[to.id] = &link{to: to, open: true, data: &flow{w: n.sim.w, from: n.access, to: to.access}}
	n.order = append(n.order, to.id)
	for r := range renditions {
		if f := n.feeds[r]; f != nil {
			f.sourcing()
			n.say(to.id, func(to *node) { to.followed(n.id, r) })
		}
	}
}

// unlinked ends this side of a link.
func (n *node) unlinked(id mesh.ID) {
	l := n.links[id]
	if l == nil {
		return
	}
	l.open, l.data.closed = false, true
	delete(n.links, id)
	n.order = slices.DeleteFunc(n.order, func(o mesh.ID) bool { return o == id })
	for r := range renditions {
		if f := n.feeds[r]; f != nil {
			f.lost(id)
		}
	}
}

// cut ends both sides; the far one learns of it after the path's delay.
func (n *node) cut(to *node) {
	n.unlinked(to.id)
	n.sim.w.after(n.access.delay+to.access.delay+handling, func() { to.unlinked(n.id) })
}

// ban drops a peer for good.
func (n *node) ban(id mesh.ID) {
	n.banned[id] = true
	if l := n.links[id]; l != nil {
		n.cut(l.to)
	}
}

// followed says that a peer is in the mesh of a rendition.
func (n *node) followed(by mesh.ID, rendition int) {
	if f := n.feeds[rendition]; f != nil {
		f.mesh.Linked(by)
		f.flush()
	}
}

func (n *node) unfollowed(by mesh.ID, rendition int) {
	if f := n.feeds[rendition]; f != nil {
		f.lost(by)
	}
}

// follow enters the mesh of a rendition.
func (n *node) follow(rendition int) *feed {
	f := &feed{node: n, rendition: rendition, parts: map[int]*part{}, holds: map[mesh.ID]bool{}, held: map[mesh.ID]bool{}}
	n.feeds[rendition] = f
	f.mesh = mesh.New(n.sim.config(n))
	f.sourcing()
	for _, id := range n.order {
		n.say(id, func(to *node) { to.followed(n.id, rendition) })
		// The peers that are in it answer with their places.
		n.say(id, func(to *node) {
			if to.feeds[rendition] != nil {
				to.say(n.id, func(back *node) { back.followed(to.id, rendition) })
			}
		})
	}
	return f
}

// unfollow leaves the mesh of a rendition.
func (n *node) unfollow(rendition int) {
	f := n.feeds[rendition]
	if f == nil {
		return
	}
	f.deliver(f.mesh.Leave())
	delete(n.feeds, rendition)
	for _, id := range n.order {
		n.say(id, func(to *node) { to.unfollowed(n.id, rendition) })
	}
}
