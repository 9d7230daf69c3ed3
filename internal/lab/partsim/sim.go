// Package partsim plays audiences of a low-latency live stream in virtual time: viewers on mixed lines that push parts to each other
// as internal/mesh says, beside other ways of sharing them and beside the origin alone.
package partsim

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/leeway-video/leeway/internal/mesh"
)

// Way is how viewers share parts.
type Way int

// The ways that are compared.
const (
	Alone Way = iota // not at all
	Pull             // pieces are announced, and asked for one by one
	Push             // along trees
)

// Children says how many a viewer takes.
type Children int

// The ways to know.
const (
	ByUplink Children = iota // what a share of its uplink carries, which it knows
	Eight                    // eight
	ByWaits                  // eight, and fewer where pieces wait to leave (mesh.Waited)
)

// Options of a run.
type Options struct {
	Way      Way
	Viewers  int
	Segment  int     // parts of a segment
	Part     int64   // how long one plays, µs
	Stripes  int     // trees
	ByPart   bool    // a stripe is every k-th part; else the pieces of each part are divided
	Share    float64 // of its uplink that a viewer gives to children
	Seeds    int     // children that the seed takes in a stripe; 0: there is no seed
	Children Children
	Heedless bool  // peers push while the buffer is short
	Grace    int64 // how long peers are waited for beside the buffer, µs; 0: as by mesh.Due
	Trace    uint64
	Trouble  Trouble
	Lines    []Home
}

const (
	renditions = 3
	length     = 150 * second // of a run, µs
	within     = 30 * second  // viewers come within
	amid       = 80 * second  // when something happens
	joining    = 300_000      // from the player's start to the first links, µs
	// silence is how long a link lasts to a peer that died, µs.
	silence = 15 * second
	// introduced is how many viewers a newcomer is told of.
	introduced = 8
	// eight is how many children a viewer takes that does not know its uplink.
	eight = 8
	// ample is the line of origin and seed, bytes/s.
	ample = 125e6
)

// Home is the access lines of a share of the viewers.
type Home struct {
	share float64
	line  access
}

// Lines are mixes of lines: those of the simulations of internal/viewer, and without the quickest.
var Lines = map[string][]Home{
	"mixed": {{0.3, slow}, {0.4, usual}, {0.3, quick}},
	"thin":  {{0.3, slow}, {0.7, usual}},
}

// Lines of 5/1, 20/5 and 100/40 Mbit/s.
var (
	slow  = access{up: line{rate: 125_000}, down: line{rate: 625_000}, delay: 30_000}
	usual = access{up: line{rate: 625_000}, down: line{rate: 2_500_000}, delay: 15_000}
	quick = access{up: line{rate: 5e6}, down: line{rate: 12.5e6}, delay: 7_500}
)

type sim struct {
	o        Options
	w        *world
	rand     *rand.Rand
	stream   stream
	origin   access
	seed     *node
	viewers  []*node // that are there
	all      []*node
	messages int // of the mesh, or announcements and requests
	requests int // to the origin, for parts
	fetched  int // bytes of the origin to the seed
}

func (s *sim) stripe(part, piece, pieces int) int {
	if s.o.ByPart {
		return part % s.o.Stripes
	}
	return mesh.StripeOf(part/s.o.Segment+part%s.o.Segment, piece, pieces, s.o.Stripes)
}

// config is a node's own of the mesh: how many children its uplink feeds with a stripe of the largest rendition.
func (s *sim) config(n *node) mesh.Config {
	if n.seed {
		return mesh.Config{Self: n.id, Stripes: s.o.Stripes, Slots: s.o.Seeds * s.o.Stripes, PerStripe: s.o.Seeds, Seed: true}
	}
	slots := int(n.access.up.rate * s.o.Share * float64(s.o.Stripes) / (segmentBytes[2] / 2))
	if s.o.Children != ByUplink {
		slots = eight
	}
	if n.temper >= silent {
		slots = mesh.MaxSlots
	}
	return mesh.Config{Self: n.id, Stripes: s.o.Stripes, Slots: slots}
}

func run(o Options) *sim {
	s := &sim{o: o, w: &world{}, rand: rand.New(rand.NewPCG(o.Trace, 0x6c656577617900)), stream: stream{perSegment: o.Segment, part: o.Part}}
	s.origin = access{up: line{rate: ample}, down: line{rate: ample}}
	s.stream.late = o.Trouble.Late
	if o.Seeds > 0 && o.Way != Alone {
		s.seed = s.node(mesh.ID{0xff}, s.origin)
		s.seed.seed = true
		for r := range renditions {
			s.seed.follow(r)
		}
		s.publish(0)
	}
	lines := s.lines()
	for i := range o.Viewers {
		s.w.at(s.arrival(i), func() { s.join(i, s.o.Lines[lines[i]].line) })
	}
	s.tick()
	if o.Trouble.Happens != nil {
		s.w.at(amid, func() { o.Trouble.Happens(s) })
	}
	s.w.run(length)
	for _, n := range s.viewers {
		n.watch.player.leave()
	}
	return s
}

// lines are which line each viewer has, in an order of chance.
func (s *sim) lines() []int {
	var out []int
	sum := 0.0
	for i, h := range s.o.Lines {
		sum += h.share
		for len(out) < int(sum*float64(s.o.Viewers)+0.5) {
			out = append(out, i)
		}
	}
	s.rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func (s *sim) arrival(i int) int64 {
	chance := s.rand.Float64()
	if s.o.Trouble.Arrive != nil {
		return s.o.Trouble.Arrive(i)
	}
	return 20*second + int64(chance*within)
}

// publish has the seed take each part as it is there: its request for the part that is announced is open already.
func (s *sim) publish(n int) {
	s.w.at(s.stream.published(n), func() {
		if s.seed == nil {
			return
		}
		s.publish(n + 1)
		for r := range renditions {
			f := s.seed.feeds[r]
			p := f.part(n)
			if s.followed(r) {
				s.fetched += p.size
			}
			s.w.after(int64(float64(p.size)/ample*second)+verifying, func() {
				f.certify(p)
				for i := range p.have {
					f.accept(p, i)
				}
			})
		}
	})
}

func (s *sim) followed(rendition int) bool {
	return slices.ContainsFunc(s.viewers, func(n *node) bool { return n.feeds[rendition] != nil })
}

func (s *sim) join(i int, a access) {
	id := mesh.ID{}
	binary.BigEndian.PutUint64(id[:], s.rand.Uint64()|1)
	n := s.node(id, a)
	if s.o.Trouble.Temper != nil {
		n.temper = s.o.Trouble.Temper(i)
	}
	n.watch = &watch{node: n, asked: -1, wrong: map[mesh.ID]int{}}
	n.watch.player = player{w: s.w, s: &s.stream, load: n.watch.load, ask: n.watch.reload}
	s.viewers, s.all = append(s.viewers, n), append(s.all, n)
	n.watch.player.start()
	if s.o.Way != Alone {
		s.w.after(joining, func() { s.introduce(n, introduced) })
	}
}

// introduce links a viewer with the seed and some viewers that are there.
func (s *sim) introduce(n *node, most int) {
	if n.watch.player.gone {
		return
	}
	to := slices.Clone(s.viewers)
	s.rand.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	if s.seed != nil {
		s.meet(n, s.seed)
	}
	for _, other := range to {
		if most > 0 && other != n && n.links[other.id] == nil && len(other.links) < 2*introduced {
			most--
			s.meet(n, other)
		}
	}
	s.w.after(10*second, func() { s.introduce(n, max(0, introduced-len(n.links))) })
}

func (s *sim) meet(a, b *node) {
	if a.links[b.id] != nil || a.banned[b.id] || b.banned[a.id] {
		return
	}
	s.w.after(4*(a.access.delay+b.access.delay), func() {
		if a.links[b.id] == nil && b.links[a.id] == nil && a.alive() && b.alive() && !a.banned[b.id] && !b.banned[a.id] {
			a.linked(b)
			b.linked(a)
		}
	})
}

func (n *node) alive() bool { return !n.dead && (n.watch == nil || !n.watch.player.gone) }

// die has a node send and hear nothing more. Its peers lose the link after a while of silence.
func (n *node) die() {
	n.dead = true
	if n.watch != nil {
		n.watch.player.leave()
	}
	n.sim.viewers = slices.DeleteFunc(n.sim.viewers, func(o *node) bool { return o == n })
	if n.seed {
		n.sim.seed = nil
	}
	for _, id := range n.order {
		to := n.links[id].to
		n.links[id].open, n.links[id].data.closed = false, true
		n.sim.w.after(silence, func() { to.unlinked(n.id) })
	}
	n.links, n.order = map[mesh.ID]*link{}, nil
}

// tick lets time pass for the trees.
func (s *sim) tick() {
	for _, n := range append(slices.Clone(s.viewers), s.seed) {
		if n == nil {
			continue
		}
		if n.watch != nil {
			n.watch.spare()
		}
		for r := range renditions {
			if f := n.feeds[r]; f != nil {
				f.sourcing()
				f.flush()
			}
		}
	}
	s.w.after(100_000, s.tick)
}
