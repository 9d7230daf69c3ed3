// Package mesh decides which peer pushes which pieces of a live stream's parts to which: one tree of subscriptions a stripe, and how
// trees repair themselves (spec/parts.md). It is pure: time is an argument, and what is to be sent is returned.
package mesh

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/leeway-video/leeway/internal/swarm"
)

// ID is the ID of a peer.
type ID = swarm.ID

// Bounds of spec/parts.md; times are µs.
const (
	// MaxPath is how many nodes there may be from a source to a leaf, both included.
	MaxPath = 8
	// MaxSlots bounds what a peer may say of its slots.
	MaxSlots = 255
	// MaxChildren is how many children a viewer takes at most, of all stripes together. A peer that says more counts as one of as many.
	MaxChildren = 8
	// LeaseTime is how long a subscription lasts that is not made again.
	LeaseTime = 8_000_000
	// Renewal is how often a subscription is made again.
	Renewal = LeaseTime / 2
	// Trial is how long a peer that was subscribed to may send nothing.
	Trial = 1_500_000
	// MinAvoid and MaxAvoid are how long a peer is avoided that sent nothing or refused: doubled each time.
	MinAvoid = 2_000_000
	MaxAvoid = 30_000_000
	// TellEvery is how often a place is told at most.
	TellEvery = 250_000
	// Calm is how long no piece waits before a node takes one more child.
	Calm = 8_000_000
	// MaxApart is how long a child is not taken again that pieces have waited for: Calm at first, doubled each time.
	MaxApart = 8 * Calm
)

// None is the rank of a node that nothing feeds.
const None = uint64(1)<<53 - 1

// Place is what a node says of its place in the tree of one stripe.
type Place struct {
	Rank  uint64 // of the source at the top of the tree; the lowest is preferred, 0 is a seed
	Path  []ID   // the nodes from the source to this one, both included
	Room  uint8  // further children that the node takes
	Least uint8  // slots of the child that has the fewest
}

func (p Place) same(q Place) bool {
	return p.Rank == q.Rank && p.Room == q.Room && p.Least == q.Least && slices.Equal(p.Path, q.Path)
}

// Kind of a message.
type Kind uint8

// What peers say to each other.
const (
	Tell        Kind = iota + 1 // a place
	Subscribe                   // pieces are to be pushed from now on
	Unsubscribe                 // no more
	End                         // a subscription is refused, or over
)

// Message is what one peer says to another of one stripe.
type Message struct {
	Kind   Kind
	Stripe int
	Place  Place // Tell
	Slots  uint8 // Subscribe: children that the sender takes
}

// Send is a message that the caller is to send.
type Send struct {
	To ID
	Message
}

// Config of a node.
type Config struct {
	Self      ID
	Stripes   int  // number of trees
	Slots     int  // children that the node takes, of all stripes together, while its uplink carries them
	PerStripe int  // and of one stripe; 0: as many
	Seed      bool // the node has every part from the origin, and is rank 0
	Whole     bool // a source has all stripes from the origin, so that there is to be one of all, unless there is a seed
}

// Mesh is a node's view of the trees of one rendition.
type Mesh struct {
	cfg     Config
	peers   map[ID]*peer
	order   []ID // of peers, by ID
	trees   []tree
	uplink  uplink
	sources bool // certificates come without a parent, so that the node can be a source
	seeded  bool // a linked seed sends them
	holds   bool // parents are told to push nothing
	lost    int  // parents of which the node was left without one
	out     []Send
}

type peer struct {
	places []Place
	parent pause // it is no parent: it sent nothing, or refused
	child  pause // it is no child: pieces have waited for it
}

// pause is for how long a peer is left alone.
type pause struct {
	until  int64
	length int64 // of the last one; 0: it has kept its word since
}

// begin begins one, of twice the length of the last.
func (p *pause) begin(now, least, most int64) {
	p.length = min(max(least, 2*p.length), most)
	p.until = now + p.length
}

type tree struct {
	parent, next ID    // the zero ID is none; next is on trial
	asked        int64 // when next was subscribed to
	renewed      int64 // when parent was
	missed       int   // parts in a row that the parent did not bring in time
	children     []child
	told         Place
	toldAt       int64
	displaced    int64 // when a child last lost its place to a stronger one
}

type child struct {
	id    ID
	slots uint8
	until int64
}

// New is a node without peers.
func New(cfg Config) *Mesh {
	m := &Mesh{cfg: cfg, peers: map[ID]*peer{}, trees: make([]tree, cfg.Stripes), uplink: uplink{slots: cfg.Slots, shrunk: -Calm}}
	for i := range m.trees {
		m.trees[i] = tree{told: Place{Rank: None}, toldAt: -TellEvery, displaced: -Trial}
	}
	return m
}

// CanSource says whether certificates reach the node without a parent. Only then may it be the source of a tree.
func (m *Mesh) CanSource(can bool) { m.sources = can }

// Seeded says whether a linked seed sends certificates. While none does there is to be one source of all stripes, where a source has all.
func Seeded(m *Mesh, on bool) { m.seeded = on }

// Hold says whether the node has its parents push nothing for now. No peer is tried meanwhile: it could not send what ends its trial.
func Hold(m *Mesh, on bool) { m.holds = on }

// Linked adds a peer, and tells it the node's places.
func (m *Mesh) Linked(id ID) {
	if m.peers[id] != nil {
		return
	}
	p := &peer{places: make([]Place, m.cfg.Stripes)}
	for i := range p.places {
		p.places[i].Rank = None
	}
	m.peers[id] = p
	at, _ := slices.BinarySearchFunc(m.order, id, compare)
	m.order = slices.Insert(m.order, at, id)
	for s := range m.trees {
		if place := m.place(s); place.Rank != None {
			m.send(id, Message{Kind: Tell, Stripe: s, Place: place})
		}
	}
}

// Gone removes a peer.
func (m *Mesh) Gone(id ID) {
	if m.peers[id] == nil {
		return
	}
	delete(m.peers, id)
	m.order = slices.DeleteFunc(m.order, func(o ID) bool { return o == id })
	for s := range m.trees {
		t := &m.trees[s]
		t.children = slices.DeleteFunc(t.children, func(c child) bool { return c.id == id })
		if t.parent == id {
			orphaned(m, s)
		}
		if t.next == id {
			t.next = ID{}
		}
	}
}

// Heard takes a message of a peer. What is out of range is ignored: the codec refuses it first.
func (m *Mesh) Heard(now int64, from ID, msg Message) {
	if msg.Stripe < 0 || msg.Stripe >= len(m.trees) {
		return
	}
	m.Linked(from)
	t, p := &m.trees[msg.Stripe], m.peers[from]
	switch msg.Kind {
	case Tell:
		p.places[msg.Stripe] = msg.Place
		if t.parent == from && !m.feeds(msg.Place) {
			m.drop(msg.Stripe)
		}
	case Subscribe:
		m.admit(now, msg.Stripe, from, msg.Slots)
	case Unsubscribe:
		t.children = slices.DeleteFunc(t.children, func(c child) bool { return c.id == from })
	case End:
		if t.next == from {
			t.next = ID{}
			p.avoid(now)
		}
		if t.parent == from {
			orphaned(m, msg.Stripe)
			p.avoid(now)
		}
	}
}

// Arrived says that a verified piece of a stripe came from a peer.
func (m *Mesh) Arrived(now int64, from ID, stripe int) {
	t := &m.trees[stripe]
	switch from {
	case t.parent:
		t.missed = 0
	case t.next:
		if !m.feeds(m.peers[from].places[stripe]) {
			return // its place leads to this node by now
		}
		if t.parent != (ID{}) {
			m.send(t.parent, Message{Kind: Unsubscribe, Stripe: stripe})
		}
		t.parent, t.next, t.missed, t.renewed = from, ID{}, 0, t.asked
	}
}

// Missed says that the parent of a stripe had not brought its pieces of a part when they were due. After the second part in a row
// it is the parent no more.
func (m *Mesh) Missed(now int64, stripe int) {
	t := &m.trees[stripe]
	if t.parent == (ID{}) {
		return
	}
	if t.missed++; t.missed >= 2 {
		m.peers[t.parent].avoid(now)
		m.drop(stripe)
	}
}

// Parent is the parent in a stripe, the zero ID if there is none: a part's pieces of it are waited for, since a peer sends them that has
// kept its word before.
func (m *Mesh) Parent(stripe int) ID { return m.trees[stripe].parent }

// Children are the peers that pieces of a stripe are pushed to.
func (m *Mesh) Children(stripe int) []ID {
	var out []ID
	for _, c := range m.trees[stripe].children {
		out = append(out, c.id)
	}
	return out
}

// Path is the way from the source of a stripe to the node; empty if nothing feeds it.
func (m *Mesh) Path(stripe int) []ID { return m.place(stripe).Path }

// Trees says how often a piece is passed on from the source to the node, in the deepest of its trees (0: it is a source, or is not fed),
// and how often the node has lost the parent of a stripe. A parent is lost when it misses parts, gives the node up, or is gone.
func (m *Mesh) Trees() (hops, lost int) {
	for s := range m.trees {
		hops = max(hops, len(m.place(s).Path)-1)
	}
	return hops, m.lost
}

// Leave ends all subscriptions, either way, and returns what is to be sent. The mesh is of no use afterwards.
func (m *Mesh) Leave() []Send {
	for s := range m.trees {
		t := &m.trees[s]
		for _, id := range []ID{t.parent, t.next} {
			if id != (ID{}) {
				m.send(id, Message{Kind: Unsubscribe, Stripe: s})
			}
		}
		for _, c := range t.children {
			m.send(c.id, Message{Kind: End, Stripe: s})
		}
	}
	return m.out
}

// Decide looks for parents, ends what has run out, and tells changes. It returns what is to be sent since the last call, in order.
func (m *Mesh) Decide(now int64) []Send {
	grow(m, now)
	for s := range m.trees {
		m.expire(now, s)
		if !m.cfg.Seed {
			m.seek(now, s)
		}
		m.tell(now, s)
	}
	out := m.out
	m.out = nil
	return out
}

func (m *Mesh) send(to ID, msg Message) { m.out = append(m.out, Send{to, msg}) }

// drop gives up the parent of a stripe.
func (m *Mesh) drop(stripe int) {
	m.send(m.trees[stripe].parent, Message{Kind: Unsubscribe, Stripe: stripe})
	orphaned(m, stripe)
}

// orphaned notes that a stripe has lost its parent: its tree is to be repaired.
func orphaned(m *Mesh, stripe int) {
	m.trees[stripe].parent, m.trees[stripe].missed = ID{}, 0
	m.lost++
}

func (p *peer) avoid(now int64) { p.parent.begin(now, MinAvoid, MaxAvoid) }

func compare(a, b ID) int { return bytes.Compare(a[:], b[:]) }

// SourceRank is the rank of a viewer as the source of a stripe: the more slots the lower, ties by a hash.
func SourceRank(id ID, stripe, slots int) uint64 {
	h := fnv.New32a()
	h.Write(id[:])
	h.Write([]byte{byte(stripe)})
	var b [8]byte
	binary.BigEndian.PutUint32(b[:4], 1+uint32(MaxSlots-min(slots, MaxSlots)))
	binary.BigEndian.PutUint32(b[4:], h.Sum32())
	return binary.BigEndian.Uint64(b[:])
}

// StripeOf is the stripe of a piece. Each part is cut into runs of pieces, one a stripe. The runs move on by a stripe with turn, which is
// the number of the segment and the part's number in it, added.
func StripeOf(turn, piece, pieces, stripes int) int {
	return (turn + piece*stripes/pieces) % stripes
}

// patience is how long peers are waited for beside a short part, µs: a piece takes as long by a few hops, however short its part is.
const patience = 400_000

// Due is when the origin is asked for what is missing of a part that the player asks for. Since is when the player asked or, if that
// was later, when a peer's last piece of the part came; origin is how long the origin takes for what is missing; part is how long a
// part plays. All are µs.
func Due(since, deadline, origin, part int64) int64 {
	return min(since+awaited(part), deadline-origin*3/2-part/8)
}

// awaited is how long a child waits for a piece of a part that plays so long.
func awaited(part int64) int64 { return max(part/2, patience) }

// Parents are the peers that push to the node, each once.
func (m *Mesh) Parents() []ID {
	var out []ID
	for i := range m.trees {
		for _, id := range []ID{m.trees[i].parent, m.trees[i].next} {
			if id != (ID{}) && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// Kept are the parents that are not on trial in any stripe, each once.
func Kept(m *Mesh) []ID {
	return slices.DeleteFunc(m.Parents(), func(id ID) bool {
		return slices.ContainsFunc(m.trees, func(t tree) bool { return t.next == id })
	})
}

// AllChildren are the peers that the node pushes to, each once.
func (m *Mesh) AllChildren() []ID {
	var out []ID
	for i := range m.trees {
		for _, c := range m.trees[i].children {
			if !slices.Contains(out, c.id) {
				out = append(out, c.id)
			}
		}
	}
	return out
}
