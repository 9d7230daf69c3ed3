package seed

import (
	"sync"
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	maxWorked    = 32 // certificates of one link that are made ready, or fetched, at a time
	maxSentNoted = 8192
)

// showing is how a link's viewer gets the certificates that it asks for: in turn, as fast as it reads them.
type showing struct {
	link *viewerLink
	held atomic.Bool // the next one waits until the viewer has read those before

	mu     sync.Mutex
	asked  []segment.ID            // guarded by mu: that it waits for
	worked int                     // guarded by mu: of them that are made ready
	sent   map[segment.ID][32]byte // guarded by mu: content of those that went out
}

// wanted takes a request for certificates.
func (s *showing) wanted(ids []segment.ID) {
	s.mu.Lock()
	room := min(len(ids), peer.MaxAsked-len(s.asked))
	s.asked = append(s.asked, ids[:room]...)
	s.mu.Unlock()
	session, _ := s.link.conn.parts()
	for _, id := range ids[room:] {
		session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
	s.more()
}

// drained goes on when the viewer has read what was sent.
func (s *showing) drained() {
	if s.held.CompareAndSwap(true, false) {
		s.link.all.tasks.begin(s.more) // beside SCTP, which calls under its locks
	}
}

// more has the next certificates made ready that the viewer asked for.
func (s *showing) more() {
	session, _ := s.link.conn.parts()
	for {
		id, ok := s.next()
		if !ok {
			return
		}
		if s.link.all.tasks.begin(func() {
			s.show(session, id)
			s.worksLess()
			s.more()
		}) {
			continue
		}
		s.worksLess()
		session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
}

// next takes the next segment whose certificate may be made ready.
func (s *showing) next() (id segment.ID, ok bool) {
	if s.link.conn.isClosed() {
		return id, false
	}
	wire := s.link.conn.wire()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 || s.worked >= maxWorked {
		return id, false
	}
	s.held.Store(true) // before it is looked: Drain may come in between
	if !transfer.HasControlRoom(wire) {
		return id, false
	}
	s.held.Store(false)
	id = s.asked[0]
	if s.asked = s.asked[1:]; len(s.asked) == 0 {
		s.asked = nil
	}
	s.worked++
	return id, true
}

func (s *showing) worksLess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worked--
}

// show answers one request for a certificate.
func (s *showing) show(session *transfer.Session, id segment.ID) {
	v, t := s.link, s.link.title
	l := v.all
	v.use()
	ref, why := t.find(v.ctx, id, v.from)
	if ref == nil {
		session.Send(peer.CertificateNone{Segment: id, Reason: why})
		return
	}
	if !v.certifies() {
		session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneTooFewViewers})
		return
	}
	l.supply.fleet.Asked(t.swarm, id)
	r := request{t, ref, v.conn.payer()}
	got := l.supply.certified(v.ctx, r)
	if got.held != nil && !l.budgets.maySend(r.payer, len(got.held.cert.Bytes())) {
		got = result{none: peer.NoneBudget}
	}
	if got.held == nil {
		session.Send(peer.CertificateNone{Segment: id, Reason: got.none, ObjectLength: uint64(got.object)})
		return
	}
	session.Send(s.message(got.held))
	l.supply.ahead(r)
}

// message shows a certificate, and its content is remembered: other bytes than the viewer would verify are not sent.
func (s *showing) message(h *held) peer.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil || len(s.sent) >= maxSentNoted {
		s.sent = map[segment.ID][32]byte{}
	}
	s.sent[h.id] = h.sum
	return peer.Certificate{Segment: h.id, Raw: h.cert.Bytes()}
}

// shown is the content of the certificate that the viewer got.
func (s *showing) shown(id segment.ID) (content [32]byte, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, was = s.sent[id]
	return content, was
}

// early are the certificates that go with an answer: of the segments that the offer names, those that are in memory. An offer
// costs its sender nothing, so nothing is read or fetched for it: what is missing is there when the link asks for it.
func (s *showing) early(wanted []signal.ID) (out []peer.Message) {
	v, supply := s.link, s.link.all.supply
	if len(wanted) == 0 || !v.certifies() {
		return nil
	}
	payer := v.account(0)
	for _, id := range wanted {
		h := supply.shelf.cached(segment.ID(id))
		if h == nil || !supply.issuer.good(h.cert) || v.title.lookup(h.id) == nil {
			continue
		}
		if n := len(h.cert.Bytes()); n <= transfer.MostShown && v.all.budgets.maySend(payer, n) {
			supply.fleet.Asked(v.title.swarm, h.id)
			v.all.sink.Add(mFetches, 1, v.title.site.name, fetchedCache)
			out = append(out, s.message(h))
		}
	}
	return out
}
