package parts

import (
	"cmp"
	"math"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Stream is a stream that the node follows.
type Stream struct {
	node   *Node
	id     segment.ID
	set    Settings
	mesh   *mesh.Mesh
	shelf  shelf
	player player
	signed packager
	heard  int64       // when a seed's certificate came last
	holds  map[ID]bool // peers that were told to push nothing
}

const stripes = peer.Stripes

// leap is two segments: where the playlist goes on by so many turns at once, parts of it may never be seen.
const leap = 2 * turns

func newStream(n *Node, id segment.ID, set Settings) *Stream {
	cfg := mesh.Config{Self: n.cfg.Self, Stripes: stripes, Slots: set.Slots, Whole: set.Whole}
	if n.cfg.Seed {
		cfg.Seed, cfg.PerStripe, cfg.Slots = true, seedChildren, seedChildren*stripes
	}
	s := &Stream{node: n, id: id, set: set, mesh: mesh.New(cfg), shelf: shelf{parts: map[uint32]*part{}}, signed: packager{heard: never, loading: none}, heard: never, holds: map[ID]bool{}}
	s.player.stream, s.player.idle = s, math.MaxInt64
	return s
}

// lost removes a peer from the stream.
func (s *Stream) lost(now int64, id ID) {
	s.mesh.Gone(id)
	delete(s.holds, id)
	for _, p := range s.shelf.parts {
		delete(p.without, id)
	}
	if l := s.node.links[id]; l != nil {
		l.out.close(s.id)
		for stripe := range stripes {
			l.ends(now, stripeID{s.id, stripe})
		}
	}
	s.flush(now)
}

// flush sends what the mesh wants to say.
func (s *Stream) flush(now int64) {
	fed := seeded(s, now)
	s.mesh.CanSource(fed || vouches(s, now))
	mesh.Seeded(s.mesh, fed)
	mesh.Hold(s.mesh, s.player.short)
	s.deliver(now, s.mesh.Decide(now))
	s.hold()
}

func (s *Stream) deliver(now int64, sends []mesh.Send) {
	for _, m := range sends {
		l, stripe := s.node.links[m.To], uint8(m.Stripe)
		if l == nil {
			continue
		}
		switch m.Kind {
		case mesh.Tell:
			s.node.say(m.To, peer.Place{Stream: s.id, Stripe: stripe, Rank: m.Place.Rank, Room: m.Place.Room, Least: m.Place.Least, Path: m.Place.Path})
		case mesh.Subscribe:
			l.subscribes(stripeID{s.id, m.Stripe})
			s.node.say(m.To, peer.Subscribe{Stream: s.id, Stripe: stripe, Slots: m.Slots})
		case mesh.Unsubscribe:
			l.ends(now, stripeID{s.id, m.Stripe})
			s.node.say(m.To, peer.Unsubscribe{Stream: s.id, Stripe: stripe})
		case mesh.End:
			s.node.say(m.To, peer.End{Stream: s.id, Stripe: stripe})
		}
	}
}

// Trees says how often a piece of the stream is passed on from the source to the node at most, and how often the node has lost the
// parent of a stripe.
func Trees(s *Stream) (hops, lost int) { return s.mesh.Trees() }

// Listed says that the node's own playlist names a part: at a turn, with an ID, and a length in bytes if it says one. A peer's turn is a
// claim, for the certificate signs the name only. A seed's is believed until the playlist contradicts it. A viewer's waits until the
// playlist lists the turn, or a seed has told the same: it could take the place of what is true.
func (s *Stream) Listed(now int64, turn uint32, id segment.ID, length int) {
	passes := len(s.shelf.listed) > 0 && s.shelf.ahead(turn) < leap
	list(s, now, turn)
	if !s.shelf.near(turn) {
		return
	}
	p := s.shelf.part(turn)
	if c := p.content; c != nil && (c.Segment != id || length > 0 && c.Length != length) {
		s.contradicted(p)
		p = s.shelf.part(turn)
	}
	if p.named = id; p.length == 0 && length > 0 && length <= longest(turn) { // of a longer one nothing is held, whatever the playlist says
		p.size(length)
	}
	claims(s, turn, passes)
	s.player.look(now)
}

// list notes that the own playlist lists a turn, or that the player is there.
func list(s *Stream, now int64, turn uint32) {
	if s.shelf.list(turn) {
		s.player.idle = now + idle*cmp.Or(s.set.Listed, s.set.Part)
		s.shelf.evict(s.player.turn())
	}
}

// contradicted forgets a part that peers have told under a turn that is another's.
func (s *Stream) contradicted(p *part) {
	delete(s.shelf.parts, p.turn)
	for _, id := range s.node.order {
		l := s.node.links[id]
		l.close(func(u *push) bool { return u.stream == s.id && u.turn == p.turn })
		l.out.forget(func(q queued) bool { return q.stream == s.id && q.turn == p.turn })
		l.out.untell(partID{s.id, p.turn})
	}
}

// Certify takes a certificate that the node has signed.
func (s *Stream) Certify(now int64, turn uint32, c Content) {
	s.certify(now, turn, &c)
	s.flush(now)
}

// certify takes a verified certificate, and says whether it is that of the part at its turn.
func (s *Stream) certify(now int64, turn uint32, c *Content) bool {
	if !s.shelf.near(turn) || c.Length > longest(turn) || len(c.Digests) != segment.Pieces(int64(c.Length)) {
		return false
	}
	p := s.shelf.part(turn)
	known := p.content != nil
	if known && !p.content.same(c) {
		return false
	}
	if p.misfits(c) || p.length > 0 && p.length != c.Length || s.shelf.elsewhere(turn, c.Segment) {
		return false
	}
	if c.Packaged {
		s.signed.heard = now // others can be had without a seed, too
	}
	if known {
		return true
	}
	if a := s.player.asked; a != nil && a.turn == turn && p.fits != nil {
		a.at = max(a.at, now) // until now it need not have been there
	}
	if p.content = c; p.length == 0 {
		p.size(c.Length)
	}
	s.heads(p)
	if a := s.player.asked; a != nil && p.fits != nil && turn == a.turn|End {
		s.node.do(Ready{s.id, a.turn}) // there may be no chunk at the turn that the player waits for
	}
	for i := range p.pieces {
		if pc := &p.pieces[i]; pc.data != nil && !pc.verified {
			s.check(ID{}, p, i, pc.data)
		}
	}
	s.player.look(now)
	return true
}

func (s *Stream) check(from ID, p *part, i int, data []byte) {
	s.node.do(Check{From: from, Stream: s.id, Turn: p.turn, Piece: i, Data: data, Digest: p.content.Digests[i], of: p})
}

// Checked takes the outcome of a Check.
func (n *Node) Checked(now int64, c Check, ok bool) {
	if !ok && c.From != (ID{}) {
		n.do(Blame{From: c.From, Why: BadPiece})
	}
	s := n.streams[c.Stream]
	if s == nil || s.shelf.parts[c.Turn] != c.of {
		return
	}
	pc := &c.of.pieces[c.Piece]
	if c.From != (ID{}) {
		if ok { // while it still counts as one that does not lack
			came(s, now, c.From, c.of, c.of.stripe(c.Piece))
		}
		pc.checking--
	}
	if ok && !pc.verified {
		s.accept(now, c.of, c.Piece, c.Data)
	} else {
		s.player.look(now)
	}
	s.flush(now)
}

// Have takes a piece whose digest the node has made itself: a seed's.
func (s *Stream) Have(now int64, turn uint32, i int, data []byte) {
	if p := s.shelf.parts[turn]; p != nil && p.content != nil && i < len(p.pieces) && !p.pieces[i].verified {
		s.accept(now, p, i, data)
	}
}

// accept has a verified piece, and pushes it. A seed has no player, and keeps nothing that is pushed.
func (s *Stream) accept(now int64, p *part, i int, data []byte) {
	pc := &p.pieces[i]
	pc.verified, pc.data = true, data
	for _, id := range s.mesh.Children(p.stripe(i)) {
		s.push(now, id, p, i)
	}
	if s.node.cfg.Seed {
		pc.data = nil
	}
	s.player.look(now)
}

// Bytes are those of a piece, verified or of the origin; nil: it has not come.
func (s *Stream) Bytes(turn uint32, i int) []byte {
	if p := s.shelf.parts[turn]; p != nil && i < len(p.pieces) {
		return p.pieces[i].data
	}
	return nil
}

// Pieces is how many pieces a part has; 0: its length is not known.
func (s *Stream) Pieces(turn uint32) int {
	if p := s.shelf.parts[turn]; p != nil {
		return len(p.pieces)
	}
	return 0
}

// Length is how long a part is, bytes; 0: it is not known.
func (s *Stream) Length(turn uint32) int {
	if p := s.shelf.parts[turn]; p != nil {
		return p.length
	}
	return 0
}
