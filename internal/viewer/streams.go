package viewer

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// streams is a viewer's part in low-latency streams: what internal/parts says is done here, to links, to the origin and to the player.
type streams struct {
	*shared
	self    func() swarm.ID
	uploads func() bool
	capped  func() int64 // what the site lets it send, kbit/s; 0: any
	certs   *partCertificates
	drop    func(r *remote, reason peer.CloseReason, why peer.ByeReason)
	fresh   *freshness
	agrees  func() // the origin sends what a certificate says
	differs func() // it does not
	chunks  chunkLoads

	node   *parts.Node // nil: no peer that speaks parts was linked yet
	tracks map[int]*followed
	acting bool
	tick   func() // stops the timer
	wasted int64  // that the node had dropped, as of the last count
}

// followed is the stream that a track plays.
type followed struct {
	playlist string
	stream   *parts.Stream
	id       segment.ID
	slots    int                       // children that the node takes in it
	sources  map[uint32]map[int]Source // of verified pieces that peers sent, by turn
	load     *partLoad                 // that the player waits for; nil: for none
	chunked                            // of a stream of chunks
	differs  map[uint32]bool           // turns of which the origin has sent something else than was signed
	lost     int                       // parents of its trees, as of the last report of a part

	certifying func() // takes back the load of a packager's certificate that runs; nil: none does
}

// with hands the node to f, and does what is to be done then.
func (s *streams) with(f func(n *parts.Node, now int64)) {
	if s.node == nil {
		s.node = parts.New(parts.Config{Self: s.self()})
	}
	f(s.node, s.nowUs())
	if s.acting {
		return
	}
	s.acting = true
	for acts := s.node.Take(); len(acts) > 0; acts = s.node.Take() {
		for _, a := range acts {
			s.act(a)
		}
	}
	s.acting = false
	s.ledger.wasted(int(s.node.Counts.Dropped - s.wasted))
	s.wasted = s.node.Counts.Dropped
	s.wake()
}

// wake has the node look again.
func (s *streams) wake() {
	now := s.nowUs()
	for track, f := range s.tracks {
		if parts.Idle(f.stream, now) { // the player is paused, plays what is long past, or has no newer playlist
			s.leave(track) // until it asks again
		}
	}
	if s.tick != nil {
		s.tick()
		s.tick = nil
	}
	if s.stopped || len(s.tracks) == 0 {
		return
	}
	wait := time.Duration(s.node.Next(now)-now) * time.Microsecond
	s.tick = s.loop.After(max(wait, time.Millisecond), func() {
		s.tick = nil
		s.with(func(n *parts.Node, now int64) { n.Tick(now) })
	})
}

func (s *streams) linked(r *remote) {
	s.with(func(n *parts.Node, _ int64) { n.Linked(linkID(r.id), r.role == schedule.Seed) })
}

func (s *streams) gone(r *remote) {
	if r.speaksParts {
		s.with(func(n *parts.Node, now int64) { n.Gone(now, linkID(r.id)) })
	}
}

func (s *streams) heard(r *remote, m peer.Message) {
	s.with(func(n *parts.Node, now int64) { n.Heard(now, linkID(r.id), m) })
}

// pushed takes data in the link's goroutine.
func (s *streams) pushed(r *remote, m peer.Data) error {
	m.Payload = bytes.Clone(m.Payload)
	s.loop.Post(func() {
		if r.speaksParts && !r.gone {
			s.with(func(n *parts.Node, now int64) { n.Data(now, linkID(r.id), m) })
		}
	})
	return nil
}

// sent hears in any goroutine that a link has sent a pushed piece, or has given it up.
func (s *streams) sent(r *remote) {
	s.loop.Post(func() {
		if !r.gone {
			s.with(func(n *parts.Node, now int64) { n.Sent(now, linkID(r.id)) })
		}
	})
}

func (s *streams) remote(id swarm.ID) *remote { return s.peers.byID[id.Hex()] }

// act does one thing that is to be done.
func (s *streams) act(a parts.Act) {
	switch a := a.(type) {
	case parts.Say:
		if r := s.remote(a.To); r != nil {
			r.session.Send(a.Message)
		}
	case parts.Push:
		if r := s.remote(a.To); r != nil {
			r.upload.Push(a.Request, a.Data)
		}
	case parts.Verify:
		s.judge(a)
	case parts.Check:
		s.check(a)
	case parts.Fetch:
		switch f := s.of(a.Stream); {
		case f == nil:
		case f.load != nil && f.load.turn == a.Turn:
			s.fetch(f, a.Runs)
		case f.grows != nil && f.grows.turn == a.Turn:
			f.grows.rest()
		}
	case parts.Ready:
		switch f := s.of(a.Stream); {
		case f != nil && f.grows != nil && f.grows.turn == a.Turn:
			f.grows.advance()
		case f == nil || f.load == nil || f.load.turn != a.Turn:
		case f.differs[a.Turn]: // pieces of two versions are none of either
			s.fetch(f, nil)
		default:
			s.ready(f)
		}
	case parts.Certificate:
		s.certs.load(s, a)
	case parts.GiveUp:
		s.certs.late(s.of(a.Stream))
	case parts.Blame:
		s.blame(a)
	}
}

func (s *streams) of(id segment.ID) *followed {
	for _, f := range s.tracks {
		if f.id == id {
			return f
		}
	}
	return nil
}

// judge verifies a certificate that a peer told.
func (s *streams) judge(a parts.Verify) {
	c, err := certificate.Parse(a.Raw)
	if err == nil {
		err = s.certs.verify(c)
	}
	if r := s.remote(a.From); r != nil && slices.Contains(dishonest, certificate.OutcomeOf(err)) {
		s.drop(r, peer.CloseProtocol, peer.ByeProtocolError)
	}
	if err != nil {
		s.node.Refused(s.nowUs(), a)
		return
	}
	s.node.Certified(s.nowUs(), a, s.certs.content(c))
	if a.Turn%segmentTurns == parts.End {
		s.chunks.ended(c)
	}
}

// check compares the digest of a piece; of the origin's at once, for the player may wait for nothing else.
func (s *streams) check(a parts.Check) {
	ok := false
	if a.From == (swarm.ID{}) {
		if ok = sha256.Sum256(a.Data) == a.Digest; !ok {
			if f := s.of(a.Stream); f != nil && f.contradicted(a.Turn) {
				s.differs()
			}
		} else if f := s.of(a.Stream); f != nil && a.Piece == 0 {
			s.agrees() // once for each part, as a contradiction is counted
		}
		s.with(func(n *parts.Node, now int64) { n.Checked(now, a, ok) })
		return
	}
	s.loop.Go(func() { ok = sha256.Sum256(a.Data) == a.Digest }, func() {
		if r := s.remote(a.From); r != nil {
			s.brought(r, a, ok)
		}
		s.with(func(n *parts.Node, now int64) { n.Checked(now, a, ok) })
	})
}

// contradicted notes that the origin contradicts a part. It says whether that is new.
func (f *followed) contradicted(turn uint32) bool {
	if f.differs[turn] {
		return false
	}
	if len(f.differs) > 4*parts.Kept {
		clear(f.differs)
	}
	f.differs[turn] = true
	return true
}

// brought counts a piece of a peer.
func (s *streams) brought(r *remote, a parts.Check, ok bool) {
	if !ok {
		s.ledger.rejected(len(a.Data))
		return
	}
	s.line.others(len(a.Data))
	s.ledger.received(r.id, r.role, r.path, len(a.Data))
	f := s.of(a.Stream)
	if f == nil {
		return
	}
	if f.sources[a.Turn] == nil {
		maps.DeleteFunc(f.sources, func(turn uint32, _ map[int]Source) bool { return f.stream.Pieces(turn) == 0 })
		f.sources[a.Turn] = map[int]Source{}
	}
	f.sources[a.Turn][a.Piece] = sourceFrom(r.role)
}

func (s *streams) blame(a parts.Blame) {
	r := s.remote(a.From)
	if r == nil {
		return
	}
	switch a.Why {
	case parts.BadPiece:
		s.ledger.rejected(a.Bytes)
		s.drop(r, peer.CloseBadPiece, peer.ByeBadPiece)
	case parts.Malformed:
		s.drop(r, peer.CloseProtocol, peer.ByeProtocolError)
	case parts.Crumbs:
		r.session.Fail(transfer.Overrun(peer.LimitData))
	case parts.TooMuch:
		r.session.Fail(transfer.Overrun(peer.LimitMessages))
	case parts.Unsolicited:
		r.session.Fail(r.download.Unsolicited(a.Bytes))
	}
}

// leave leaves the stream of a track. What the player waits for comes from the origin.
func (s *streams) leave(track int) {
	f := s.tracks[track]
	if f == nil {
		return
	}
	delete(s.tracks, track)
	f.giveUp()
	if f.load != nil {
		s.fetch(f, nil)
	}
	if f.grows != nil {
		f.grows.rest()
	}
	s.with(func(n *parts.Node, now int64) { n.Unfollow(now, f.id) })
}

// leaveAll leaves all streams.
func (s *streams) leaveAll() {
	for track := range s.tracks {
		s.leave(track)
	}
}
