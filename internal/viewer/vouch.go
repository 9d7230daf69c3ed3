package viewer

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// suspectTime is how long a peer whose piece differs has to show a certificate under which it is right.
const suspectTime = time.Second

// formerlyTime is how long after a dispute the certificate is still shown under which pieces were sent.
const formerlyTime = 3 * time.Second

// suspect is a peer's piece that did not match, until the peer is cleared or dropped.
type suspect struct {
	segment string
	piece   int
	data    []byte
	stop    func()
}

// dishonest are the outcomes that only a peer which forges or garbles brings about.
var dishonest = []certificate.Outcome{certificate.Malformed, certificate.BadSignature, certificate.WrongSite, certificate.WrongName}

// Shares of contradictions that turn a title's peer delivery off (spec/certificate.md).
const (
	contradictedInRow = 3
	comparedLeast     = 50
)

func (e *engine) drop(r *remote, reason peer.CloseReason, why peer.ByeReason) {
	r.session.End(reason, why)
	e.linkEnded(r, reason)
}

// certificateAsked takes a peer's request for certificates.
func (e *engine) certificateAsked(r *remote, ids []peer.ID) {
	room := min(len(ids), peer.MaxAsked-len(r.asked))
	r.asked = append(r.asked, ids[:room]...)
	for _, id := range ids[room:] {
		r.session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
	e.showMore(r)
}

// showMore shows the certificates that a peer asked for, as fast as it reads them.
func (e *engine) showMore(r *remote) {
	for len(r.asked) > 0 && transfer.HasControlRoom(r.link) {
		id := r.asked[0]
		if r.asked = r.asked[1:]; len(r.asked) == 0 {
			r.asked = nil
		}
		if c := e.shows(e.segments.byID[hex.EncodeToString(id[:])]); c != nil {
			r.session.Send(peer.Certificate{Segment: id, Raw: c.Bytes()})
		} else {
			r.session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneUnknown})
		}
	}
}

// shows is the certificate that peers are shown of a segment: for a moment also one that turned out to be disputed, since
// two that find out at the same time suspect each other.
func (e *engine) shows(s *seg) *certificate.Certificate {
	switch {
	case s == nil:
		return nil
	case s.cert == nil && s.disputed != nil && e.loop.Now().Sub(s.withdrawn) < formerlyTime:
		return s.formerly
	}
	return s.cert
}

// certificateCame judges a certificate that a peer showed.
func (e *engine) certificateCame(r *remote, id string, raw []byte) {
	s := e.segments.byID[id]
	suspected := r.suspect != nil && r.suspect.segment == id
	if s == nil || !suspected && !slices.Contains(s.certPeers, r.id) {
		return // nobody asked
	}
	c, err := certificate.Parse(raw)
	if err == nil {
		err = e.keys.Verify(c, e.rules.Name(), s.name, e.loop.Now().Add(e.offset), e.revoked)
	}
	if slices.Contains(dishonest, certificate.OutcomeOf(err)) {
		e.drop(r, peer.CloseProtocol, peer.ByeProtocolError)
		return
	}
	if err != nil {
		c = nil
	}
	switch {
	case suspected:
		e.hearSuspect(r, s, c)
		return
	case c == nil:
		e.certificateNone(r, id)
		return
	case s.disputed != nil, s.state == schedule.CertRefused && !s.wanted():
		return
	case s.cert == nil:
		e.certify(s, c)
		if s.uncertified != nil {
			e.holdOrigin(s, s.uncertified)
		}
	case !s.cert.SameContent(c):
		e.dispute(s, s.cert, c)
	case c.NotAfter.After(s.cert.NotAfter):
		s.cert = c // the target stays: the digests are the same
	}
	e.changed()
}

func (e *engine) certify(s *seg, c *certificate.Certificate) {
	s.cert, s.state = c, schedule.CertHeld
	s.target = &transfer.Target{Segment: peer.ID(s.key), Length: c.Length, Digests: c.Digests}
}

// certificateNone notes that a peer has no certificate to show.
func (e *engine) certificateNone(r *remote, id string) {
	s := e.segments.byID[id]
	if r.suspect != nil && r.suspect.segment == id {
		e.drop(r, peer.CloseBadPiece, peer.ByeBadPiece)
		return
	}
	r.holdings.forget(id)
	// Nothing is outstanding any more unless another was asked later.
	if s != nil && s.state == schedule.CertAsked && len(s.certPeers) > 0 && s.certPeers[len(s.certPeers)-1] == r.id {
		s.state = schedule.CertNone
	}
	e.changed()
}

// certifierGone opens a gone peer's unanswered requests for certificates again.
func (e *engine) certifierGone(r *remote) {
	for _, s := range e.segments.all() {
		at := slices.Index(s.certPeers, r.id)
		if at < 0 {
			continue
		}
		s.certPeers = slices.Delete(s.certPeers, at, at+1)
		if s.state == schedule.CertAsked && len(s.certPeers) == 0 {
			s.state = schedule.CertNone
		}
	}
}

// forget lets go of a certificate and of what is held under it.
func (e *engine) forget(s *seg, state schedule.Certification) {
	s.cert, s.target, s.state, s.certPeers, s.certAsked = nil, nil, state, nil, -1
	s.sources, s.pieceReason = map[int]Source{}, ""
	e.lose(s.id)
	e.store.drop(s.id)
	e.cancelDownloads(s)
	e.announce(s.id) // before the rejects: who refuses what it still announces is a liar
	for _, r := range e.peersInOrder() {
		r.upload.Withdraw(peer.ID(s.key))
	}
}

// dispute withdraws a name for which there are two contents.
func (e *engine) dispute(s *seg, a, b *certificate.Certificate) {
	if b.IssuedAt.Before(a.IssuedAt) {
		a, b = b, a
	}
	s.disputed = &[2]*certificate.Certificate{a, b}
	s.formerly, s.withdrawn = s.cert, e.loop.Now()
	e.ledger.dispute()
	e.forget(s, schedule.CertRefused)
}

// arrived takes a whole piece.
func (e *engine) arrived(r *remote, o transfer.Order, data []byte, matches bool) {
	r.download.Remove(o.ID)
	s := e.segments.byID[segment.ID(o.Target.Segment).String()]
	switch {
	case s == nil || s.target != o.Target: // withdrawn or replaced while it was on the way: nobody's fault
	case matches:
		first := e.store.piece(s.id, o.Piece) == nil
		e.accepted(s, o.Piece, data, r, o.Why)
		if first && o.Lane == peer.Background {
			e.cameAhead(s, o.Piece, len(data))
		}
		return
	default:
		e.ledger.rejected(len(data))
		e.suspectPeer(r, s, o.Piece, data)
	}
	e.changed()
}

// suspectPeer asks a peer whose piece differs for its certificate: right under another one, the name is at fault.
func (e *engine) suspectPeer(r *remote, s *seg, piece int, data []byte) {
	if r.gone || r.suspect != nil {
		return
	}
	r.stalledUs = never
	r.suspect = &suspect{segment: s.id, piece: piece, data: data}
	r.suspect.stop = e.loop.After(suspectTime, func() { e.drop(r, peer.CloseBadPiece, peer.ByeBadPiece) })
	r.download.Cancel(func(transfer.Order) bool { return true })
	r.session.Send(peer.CertificateRequest{Segments: []peer.ID{peer.ID(s.key)}})
}

func (e *engine) hearSuspect(r *remote, s *seg, c *certificate.Certificate) {
	held := s.cert
	if held == nil && s.disputed != nil {
		held = s.disputed[1]
	}
	if c == nil || held == nil || c.SameContent(held) || !c.CheckPiece(r.suspect.piece, r.suspect.data) {
		e.drop(r, peer.CloseBadPiece, peer.ByeBadPiece)
		return
	}
	r.suspect.stop()
	r.suspect, r.stalledUs = nil, 0
	if s.cert != nil {
		e.dispute(s, s.cert, c)
	}
	e.changed()
}

// accepted stores a piece that passed. from is nil for one of the origin.
func (e *engine) accepted(s *seg, n int, data []byte, from *remote, why string) {
	if from != nil {
		e.line.others(len(data))
		e.credit.proven = true
	}
	e.store.open(s.id, s.cert.Length)
	if !e.store.put(s.id, n, data) {
		e.ledger.duplicate(len(data))
		e.changed()
		return
	}
	s.sources[n] = FromOrigin
	if from != nil {
		s.sources[n] = FromPeer
		from.downloaded += int64(len(data))
		from.lateness.bring()
		e.ledger.received(from.id, from.role, from.path, len(data))
		if from.role == schedule.Seed {
			s.sources[n] = FromSeed
			if s.pieceReason == "" {
				s.pieceReason = schedule.Urgent
				if why == schedule.WhyNear || why == schedule.WhyBackground {
					s.pieceReason = schedule.NoHolder
				}
			}
		}
		e.outdone(s, n)
	}
	e.announce(s.id)
	if e.store.get(s.id).complete() {
		e.finish(s)
	}
	e.changed()
}

// holdOrigin compares what the origin sent with the certificate, or keeps it until there is one.
func (e *engine) holdOrigin(s *seg, data []byte) {
	c := s.cert
	if c == nil {
		s.uncertified = data
		return
	}
	s.uncertified = nil
	e.compared++
	same := int64(len(data)) == c.Length
	for n := 0; same && n < len(c.Digests); n++ {
		same = c.CheckPiece(n, pieceOf(data, n))
	}
	if !same {
		e.ledger.contradiction()
		e.contradicted++
		e.inRow++
		if e.inRow >= contradictedInRow || e.compared >= comparedLeast && e.contradicted*100 > e.compared {
			e.turnOff(schedule.ByPolicy)
		}
		return
	}
	e.inRow = 0
	for n := range c.Digests {
		e.accepted(s, n, pieceOf(data, n), nil, "")
	}
}

// adopt takes what the origin sent before the engine was there.
func (e *engine) adopt(b bypassed) {
	s, err := e.segments.resolve(b.ref, b.bitrate)
	if err != nil || s.disputed != nil || e.off != "" || e.stopped || e.store.get(s.id).complete() {
		return
	}
	e.holdOrigin(s, b.data)
	e.changed()
}

func pieceOf(data []byte, n int) []byte {
	from := n * segment.PieceSize
	to := min(from+segment.PieceSize, len(data))
	return data[from:to:to]
}

// revoke takes revocations in, and applies them to what is held.
func (e *engine) revoke(list []certificate.Revocation) {
	_ = e.revoked.Add(list...) // what cannot be taken in names nothing
	for _, s := range e.segments.all() {
		switch {
		case s.disputed != nil && e.revoked.Withdraws(s.disputed[0]):
			s.disputed = nil
			e.forget(s, schedule.CertNone)
		case s.cert != nil && e.revoked.Withdraws(s.cert):
			e.forget(s, schedule.CertNone)
		}
	}
	e.changed()
}
