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

// verification compares what peers and the origin send with the certificates that peers show, and decides about blame,
// contradictions, revocations.
type verification struct {
	*shared
	site      string
	keys      *certificate.KeySet
	revoked   *certificate.Revocations
	offset    time.Duration // of tracker time
	lists     *lists
	agreement agreement
	suspects  map[*remote]*suspect // peers whose piece did not match, until they are cleared or gone

	accepted  func(s *seg, n int, data []byte, from *remote, why string) // a piece passed
	cameAhead func(s *seg, n, size int)                                  // one that was asked for in the background
	withdrawn func(s *seg)                                               // what is held of the segment is no longer certified
	drop      func(r *remote, reason peer.CloseReason, why peer.ByeReason)
	turnOff   func(schedule.Reason)
}

// ended takes the certificate of a segment that was told as the end of its chunks.
func (v *verification) ended(c *certificate.Certificate) {
	s := v.segments.byID[segment.NewID(v.site, c.Name).String()]
	if s == nil || s.cert != nil || s.disputed != nil || s.state == schedule.CertRefused {
		return
	}
	v.certify(s, c)
	if s.uncertified != nil {
		v.origin(s, s.uncertified)
	}
	v.changed()
}

// answer is what a peer is shown that asked for a certificate.
func (v *verification) answer(id segment.ID) peer.Message {
	if c := v.shows(v.segments.byID[hex.EncodeToString(id[:])]); c != nil {
		return peer.Certificate{Segment: id, Raw: c.Bytes()}
	}
	return peer.CertificateNone{Segment: id, Reason: peer.NoneUnknown}
}

// shows is the certificate that peers are shown of a segment: for a moment also one that turned out to be disputed, since
// two that find out at the same time suspect each other.
func (v *verification) shows(s *seg) *certificate.Certificate {
	switch {
	case s == nil:
		return nil
	case s.cert == nil && s.disputed != nil && v.loop.Now().Sub(s.withdrawn) < formerlyTime:
		return s.formerly
	}
	return s.cert
}

// certificate judges a certificate that a peer showed.
func (v *verification) certificate(r *remote, id string, raw []byte) {
	s := v.segments.byID[id]
	suspect := v.suspects[r]
	suspected := suspect != nil && suspect.segment == id
	if s == nil || !suspected && !slices.Contains(s.certPeers, r.id) {
		return // it was not asked for
	}
	c, err := certificate.Parse(raw)
	if err == nil {
		err = v.verify(c, s)
	}
	if slices.Contains(dishonest, certificate.OutcomeOf(err)) {
		v.drop(r, peer.CloseProtocol, peer.ByeProtocolError)
		return
	}
	if err != nil {
		c = nil
	}
	switch {
	case suspected:
		v.hearSuspect(r, s, c)
		return
	case c == nil:
		v.none(r, id)
		return
	case s.disputed != nil, s.state == schedule.CertRefused && !s.wanted():
		return
	case s.cert == nil && v.differs(s, c):
		v.dispute(s, v.lists.entry(s), c)
	case s.cert == nil:
		v.certify(s, c)
		if s.uncertified != nil {
			v.origin(s, s.uncertified)
		}
	case !s.cert.SameContent(c):
		v.dispute(s, s.cert, c)
	case c.NotAfter.After(s.cert.NotAfter):
		s.cert = c // the target stays: the digests are the same
	}
	v.changed()
}

// now is tracker time.
func (v *verification) now() time.Time { return v.loop.Now().Add(v.offset) }

func (v *verification) verify(c *certificate.Certificate, s *seg) error {
	return v.keys.Verify(c, v.site, s.name, v.now(), v.revoked)
}

func (v *verification) certify(s *seg, c *certificate.Certificate) {
	s.cert, s.state, s.certHeld = c, schedule.CertHeld, v.nowUs()
	s.target = &transfer.Target{Segment: s.key, Certificate: c}
}

// none notes that a peer has no certificate to show.
func (v *verification) none(r *remote, id string) {
	s := v.segments.byID[id]
	if suspect := v.suspects[r]; suspect != nil && suspect.segment == id {
		v.drop(r, peer.CloseBadPiece, peer.ByeBadPiece)
		return
	}
	r.holdings.forget(id)
	if s != nil {
		s.none(r.id)
	}
	v.changed()
}

// acquit ends the suspicion of a peer.
func (v *verification) acquit(r *remote) {
	if s := v.suspects[r]; s != nil {
		s.stop()
		delete(v.suspects, r)
	}
}

// gone opens a gone peer's unanswered requests for certificates again.
func (v *verification) gone(r *remote) {
	v.acquit(r)
	for _, s := range v.segments.all() {
		s.gone(r.id)
	}
}

// forget lets go of a certificate and of what is held under it.
func (v *verification) forget(s *seg, state schedule.Certification) {
	s.reset(state)
	s.sources, s.pieceReason = map[int]Source{}, ""
	v.withdrawn(s)
}

// dispute withdraws a name for which there are two contents.
func (v *verification) dispute(s *seg, a, b *certificate.Certificate) {
	if b.IssuedAt.Before(a.IssuedAt) {
		a, b = b, a
	}
	s.disputed = &[2]*certificate.Certificate{a, b}
	s.formerly, s.withdrawn = s.cert, v.loop.Now()
	v.ledger.dispute()
	v.forget(s, schedule.CertRefused)
}

// piece takes a whole piece.
func (v *verification) piece(r *remote, o transfer.Order, data []byte, matches bool) {
	r.download.Remove(o.ID)
	s := v.segments.byID[o.Target.Segment.String()]
	switch {
	case s == nil || s.target != o.Target: // withdrawn or replaced while it was on the way: no peer's fault
	case matches:
		first := v.store.piece(s.id, o.Piece) == nil
		v.accepted(s, o.Piece, data, r, o.Why)
		if first && o.Lane == peer.Background {
			v.cameAhead(s, o.Piece, len(data))
		}
		return
	default:
		v.ledger.rejected(len(data))
		v.suspect(r, s, o.Piece, data)
	}
	v.changed()
}

// suspect asks a peer whose piece differs for its certificate: right under another one, the name is at fault.
func (v *verification) suspect(r *remote, s *seg, piece int, data []byte) {
	if r.gone || v.suspects[r] != nil {
		return
	}
	r.patience.stalledUs = never
	v.suspects[r] = &suspect{s.id, piece, data, v.loop.After(suspectTime, func() { v.drop(r, peer.CloseBadPiece, peer.ByeBadPiece) })}
	r.download.Cancel(func(transfer.Order) bool { return true })
	r.session.Send(peer.CertificateRequest{Segments: []segment.ID{s.key}})
}

func (v *verification) hearSuspect(r *remote, s *seg, c *certificate.Certificate) {
	held := s.cert
	if held == nil && s.disputed != nil {
		held = s.disputed[1]
	}
	if c == nil || held == nil || c.SameContent(held) || !c.CheckPiece(v.suspects[r].piece, v.suspects[r].data) {
		v.drop(r, peer.CloseBadPiece, peer.ByeBadPiece)
		return
	}
	v.acquit(r)
	r.patience.stalledUs = 0
	if s.cert != nil {
		v.dispute(s, s.cert, c)
	}
	v.changed()
}

// origin compares what the origin sent with the certificate, or keeps it until there is one.
func (v *verification) origin(s *seg, data []byte) {
	c := s.cert
	if c == nil {
		s.uncertified = data
		v.complete(s)
		return
	}
	s.uncertified = nil
	same := int64(len(data)) == c.Length
	for n := 0; same && n < len(c.Digests); n++ {
		same = c.CheckPiece(n, pieceOf(data, n))
	}
	v.compared(s, data, same)
}

// compared takes what the origin sent if it is what the certificate says.
func (v *verification) compared(s *seg, data []byte, same bool) {
	if !same {
		v.contradicted()
		return
	}
	v.agreement.agrees()
	for n := range s.cert.Digests {
		v.accepted(s, n, pieceOf(data, n), nil, "")
	}
}

// contradicted counts that the origin sent something else than a certificate says.
func (v *verification) contradicted() {
	v.ledger.contradiction()
	if v.agreement.differs() {
		v.turnOff(schedule.ByPolicy)
	}
}

func pieceOf(data []byte, n int) []byte {
	from := n * segment.PieceSize
	to := min(from+segment.PieceSize, len(data))
	return data[from:to:to]
}

// revoke takes revocations in, and applies them to what is held.
func (v *verification) revoke(list []certificate.Revocation) {
	_ = v.revoked.Add(list...) // what cannot be taken in names nothing
	for _, s := range v.segments.all() {
		switch {
		case s.disputed != nil && v.revoked.Withdraws(s.disputed[0]):
			s.disputed = nil
			v.forget(s, schedule.CertNone)
		case s.cert != nil && v.revoked.Withdraws(s.cert):
			v.forget(s, schedule.CertNone)
		}
	}
	v.changed()
}
