// Package parts is a node's part in low-latency streams (spec/parts.md): which parts it has, which pieces it pushes to which peers, what
// it takes of them, and when the origin is asked for what the player waits for. It is pure: time is an argument in µs, and what is to be
// done is returned by Take. The messages are of package peer, the trees of package mesh.
package parts

import (
	"bytes"
	"slices"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// ID is the ID of a peer. The zero ID stands for the origin.
type ID = mesh.ID

// Bounds of spec/parts.md. Times are µs.
const (
	// Kept is how many parts of a stream are held that its playlist lists, the latest, and how many besides that it does not list yet.
	Kept = 16
	// Ahead is how many segments these may be ahead of the playlist.
	Ahead = 8
	// MaxPart is the longest part that is taken and pushed, bytes. The origin sends longer ones. The end of a segment of chunks, of which
	// no pieces are pushed, may be as long as a segment.
	MaxPart = 3 << 20
	// Backlog is how much may wait for a child, and how much of a push that was refused is no fault, bytes.
	Backlog = 128 << 10
	// MaxStreams is how many streams a peer may follow.
	MaxStreams = 8
	// DecideEvery is how often the trees are looked after at least.
	DecideEvery = 100_000
	// Grace is how long pieces are taken after the end of a subscription.
	Grace = 2_000_000

	seedChildren = 2           // of a seed, in each stripe
	mostHanded   = 2           // pushed pieces that a link has and has not sent
	mostPushes   = 64          // of a peer that are remembered
	mostEarly    = 16          // of them whose data may wait to be judged
	mostOpen     = 16          // pieces of a peer that are there in part
	mostAhead    = 4 * Backlog // bytes of it
	idle         = 12          // parts without a further one in the playlist after which a stream is left
	silence      = 4           // parts without a certificate after which a seed, or a packager, is not counted on
)

// Config of a node.
type Config struct {
	Self ID
	Seed bool // it has every part from the origin, and tells each certificate to all that follow the stream
}

// Settings of a stream that the node follows.
type Settings struct {
	Slots  int   // children that a viewer takes, of all stripes together, while its uplink carries them
	Part   int64 // how long a part plays
	Listed int64 // how long what is listed at a time plays, where that is less than Part; 0: it is Part
	Whole  bool  // of chunks: the origin sends all stripes, or none
}

// Content is what a verified certificate says of a part.
type Content struct {
	Segment segment.ID
	Length  int
	Digests [][32]byte
	Raw     []byte       // the certificate, to pass on
	Name    segment.Name // of a viewer's: what Segment is made of
	// Packaged: a packager has signed it, so this node can have other certificates without a seed, too.
	Packaged bool
}

func (c *Content) same(d *Content) bool {
	return c.Segment == d.Segment && c.Length == d.Length && slices.Equal(c.Digests, d.Digests)
}

// Counts are totals since the node was made, bytes.
type Counts struct {
	Shed    int64 // waited for a child that did not read, and was dropped
	Dropped int64 // of peers, and of no use: ahead of its certificate, of a part that was given up, or twice
}

// Node is a node's part in all streams that it follows.
type Node struct {
	Counts Counts

	cfg     Config
	links   map[ID]*link
	order   []ID // of links, by ID
	streams map[segment.ID]*Stream
	follows []segment.ID         // streams, as they were begun
	watched map[segment.ID]int   // by how many peers a stream is followed
	left    map[segment.ID]int64 // streams that the node does not follow any more: until when pieces of them may still come
	out     []Act
}

// New is a node without links that follows nothing.
func New(cfg Config) *Node {
	return &Node{cfg: cfg, links: map[ID]*link{}, streams: map[segment.ID]*Stream{}, watched: map[segment.ID]int{}, left: map[segment.ID]int64{}}
}

// Take returns what is to be done since the last call, in order. Bytes of it stay unchanged.
func (n *Node) Take() []Act {
	out := n.out
	n.out = nil
	return out
}

func (n *Node) do(a Act) { n.out = append(n.out, a) }

func (n *Node) say(to ID, m peer.Message) { n.do(Say{to, m}) }

// Linked adds a peer that speaks parts: both hellos are there, with SpeaksParts.
func (n *Node) Linked(id ID, seed bool) {
	if n.links[id] != nil {
		return
	}
	n.links[id] = newLink(n, id, seed)
	at, _ := slices.BinarySearchFunc(n.order, id, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	n.order = slices.Insert(n.order, at, id)
	for _, s := range n.follows {
		n.say(id, peer.Follow{Stream: s, On: true})
	}
}

// Gone removes a peer.
func (n *Node) Gone(now int64, id ID) {
	l := n.links[id]
	if l == nil {
		return
	}
	for _, stream := range l.follows {
		n.watch(stream, -1)
	}
	delete(n.links, id)
	n.order = slices.DeleteFunc(n.order, func(o ID) bool { return o == id })
	for _, s := range n.follows {
		n.streams[s].lost(now, id)
	}
}

// Follow begins to follow a stream. What its playlist lists is to be told right behind (Stream.Listed): nothing is taken before.
func (n *Node) Follow(now int64, id segment.ID, set Settings) *Stream {
	if s := n.streams[id]; s != nil {
		return s
	}
	s := newStream(n, id, set)
	n.streams[id] = s
	n.follows = append(n.follows, id)
	for _, to := range n.order {
		n.say(to, peer.Follow{Stream: id, On: true})
		if n.links[to].following(id) {
			s.mesh.Linked(to)
		}
	}
	s.flush(now)
	return s
}

// Unfollow leaves a stream. What is on its way of it is dropped.
func (n *Node) Unfollow(now int64, id segment.ID) {
	s := n.streams[id]
	if s == nil {
		return
	}
	s.deliver(now, s.mesh.Leave())
	delete(n.streams, id)
	n.follows = slices.DeleteFunc(n.follows, func(o segment.ID) bool { return o == id })
	n.left[id] = now + Grace
	for _, to := range n.order {
		l := n.links[to]
		delete(l.held, id)
		l.out.close(id)
		l.close(func(u *push) bool { return u.stream == id })
		n.say(to, peer.Follow{Stream: id})
	}
}

// Followers is how many peers follow a stream, whether the node does or not.
func (n *Node) Followers(id segment.ID) int { return n.watched[id] }

// watch notes that more peers follow a stream, or fewer.
func (n *Node) watch(id segment.ID, more int) {
	if n.watched[id] += more; n.watched[id] == 0 {
		delete(n.watched, id)
	}
}

// Follows says whether a peer follows a stream.
func (n *Node) Follows(id ID, stream segment.ID) bool {
	l := n.links[id]
	return l != nil && l.following(stream)
}

// Heard takes a message of parts. Its byte slices may be kept.
func (n *Node) Heard(now int64, from ID, m peer.Message) {
	l := n.links[from]
	if l == nil {
		return
	}
	switch m := m.(type) {
	case peer.Follow:
		n.followed(now, l, m)
	case peer.Place:
		n.tree(now, l, m.Stream, mesh.Message{Kind: mesh.Tell, Stripe: int(m.Stripe), Place: mesh.Place{Rank: m.Rank, Path: m.Path, Room: m.Room, Least: m.Least}})
	case peer.Subscribe:
		n.tree(now, l, m.Stream, mesh.Message{Kind: mesh.Subscribe, Stripe: int(m.Stripe), Slots: m.Slots})
	case peer.Unsubscribe:
		n.tree(now, l, m.Stream, mesh.Message{Kind: mesh.Unsubscribe, Stripe: int(m.Stripe)})
	case peer.End:
		l.ends(now, stripeID{m.Stream, int(m.Stripe)})
		n.tree(now, l, m.Stream, mesh.Message{Kind: mesh.End, Stripe: int(m.Stripe)})
	case peer.Part:
		l.announced(now, m)
	case peer.Enough:
		if s := n.streams[m.Stream]; s != nil {
			s.enoughOf(now, l, m.Segment)
		}
	case peer.Hold:
		n.hold(l, m)
	}
}

// followed notes what a peer follows, also what this node does not: it may later.
func (n *Node) followed(now int64, l *link, m peer.Follow) {
	s, was := n.streams[m.Stream], l.following(m.Stream)
	switch {
	case m.On && !was && len(l.follows) >= MaxStreams:
		n.do(Blame{From: l.id, Why: TooMuch})
		return
	case m.On && !was:
		l.follows = append(l.follows, m.Stream)
		n.watch(m.Stream, 1)
	case !m.On && was:
		l.follows = slices.DeleteFunc(l.follows, func(o segment.ID) bool { return o == m.Stream })
		n.watch(m.Stream, -1)
		delete(l.held, m.Stream)
	}
	switch {
	case s == nil:
	case m.On:
		s.mesh.Linked(l.id)
		s.flush(now)
	default:
		s.lost(now, l.id)
	}
}

// hold has nothing pushed to a peer until it says so, or this node leaves the stream: then the peer forgets that it has said it. It may be
// on its way then.
func (n *Node) hold(l *link, m peer.Hold) {
	switch {
	case !m.On:
		delete(l.held, m.Stream)
	case n.streams[m.Stream] != nil && l.following(m.Stream):
		l.held[m.Stream] = true
		l.out.forget(func(q queued) bool { return q.stream == m.Stream })
	}
}

// tree hands a message to the mesh of a stream that both sides follow. Any other is about a stream that this side has left.
func (n *Node) tree(now int64, l *link, stream segment.ID, m mesh.Message) {
	if s := n.streams[stream]; s != nil && l.following(stream) {
		s.mesh.Heard(now, l.id, m)
		s.flush(now)
	}
}

// Tick looks what is due. It is to be called when Next says so.
func (n *Node) Tick(now int64) {
	for _, id := range n.follows {
		s := n.streams[id]
		s.player.look(now)
		late(s, now)
		goOn(s, now)
		s.flush(now)
	}
	for id, until := range n.left {
		if until <= now {
			delete(n.left, id)
		}
	}
}

// Next is when Tick is to be called, at the latest.
func (n *Node) Next(now int64) int64 {
	next := now + DecideEvery
	for _, s := range n.streams {
		if due, waits := s.player.due(); waits {
			next = min(next, max(now, due))
		}
	}
	return next
}
