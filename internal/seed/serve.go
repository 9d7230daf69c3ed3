package seed

import (
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Piece takes data from a viewer. A seed asks viewers for nothing, so all of it is unsolicited.
func (v *viewer) Piece(m peer.Data) error {
	v.mu.Lock()
	v.unsolicited += peer.Unsolicited(len(m.Payload))
	over := v.unsolicited > peer.MaxUnsolicited
	v.mu.Unlock()
	if over {
		return transfer.Overrun(peer.LimitData)
	}
	return nil
}

// lane is the background transport of a link. It satisfies transfer.Lane.
type lane struct{ v *viewer }

// BackgroundData implements transfer.Lane: like all data, nothing that a seed asked for.
func (l lane) BackgroundData(b []byte) error { return l.v.Piece(peer.Data{Payload: b}) }

// Ack implements transfer.Lane.
func (l lane) Ack(b []byte) error {
	if _, upload := l.v.parts(); upload != nil {
		return upload.Ack(b)
	}
	return nil
}

// wanted takes a request for certificates: they are shown in turn, as fast as the viewer reads them.
func (v *viewer) wanted(ids []peer.ID) {
	v.mu.Lock()
	session := v.session
	room := min(len(ids), peer.MaxAsked-len(v.asked))
	for _, id := range ids[:room] {
		v.asked = append(v.asked, id)
	}
	v.mu.Unlock()
	for _, id := range ids[room:] {
		session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
	v.showMore()
}

// showMore has the next certificates made ready that the viewer asked for.
func (v *viewer) showMore() {
	for {
		v.mu.Lock()
		session := v.session
		if v.closed || len(v.asked) == 0 || v.worked >= maxWorked {
			v.mu.Unlock()
			return
		}
		v.held.Store(true) // before it is looked: Drain may come in between
		if !transfer.HasControlRoom(v.link) {
			v.mu.Unlock()
			return
		}
		v.held.Store(false)
		id := v.asked[0]
		if v.asked = v.asked[1:]; len(v.asked) == 0 {
			v.asked = nil
		}
		v.worked++
		v.mu.Unlock()
		if v.service.work(func() {
			v.certify(session, id)
			v.worksLess()
			v.showMore()
		}) {
			continue
		}
		v.worksLess()
		session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
}

func (v *viewer) worksLess() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.worked--
}

func (v *viewer) certify(session *transfer.Session, id segment.ID) {
	s, t := v.service, v.title
	v.use()
	r, why := t.find(v.ctx, id, v.from)
	if r == nil {
		session.Send(peer.CertificateNone{Segment: id, Reason: why})
		return
	}
	if t.audience() < t.site.rules.Config().Policy.CertifyFrom {
		session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneTooFewViewers})
		return
	}
	s.demand.note(wantedID{t.swarm, id}, s.cfg.Now())
	w := wish{t, r, v.payer()}
	got := s.certify(v.ctx, w)
	if got.held != nil && !s.maySend(w.payer, len(got.held.cert.Bytes())) {
		got = verdict{none: peer.NoneBudget}
	}
	if got.held == nil {
		session.Send(peer.CertificateNone{Segment: id, Reason: got.none, ObjectLength: uint64(got.object)})
		return
	}
	session.Send(v.show(got.held))
	s.lookAhead(w)
}

// show makes the message that shows a certificate, and remembers its content: other bytes than that would verify are not
// sent.
func (v *viewer) show(h *held) peer.Certificate {
	v.mu.Lock()
	if v.sent == nil || len(v.sent) >= maxSentNoted {
		v.sent = map[segment.ID][32]byte{}
	}
	v.sent[h.id] = h.sum
	v.mu.Unlock()
	return peer.Certificate{Segment: peer.ID(h.id), Raw: h.cert.Bytes()}
}

// shown are the certificates that go with an answer: of the segments that the offer names, those that are in memory. An offer
// costs its sender nothing, so nothing is read or fetched for it: what is missing is there when the link asks for it.
func (v *viewer) shown(wanted []signal.ID) []peer.Message {
	s, t, now := v.service, v.title, v.service.cfg.Now()
	if len(wanted) == 0 || t.audience() < t.site.rules.Config().Policy.CertifyFrom {
		return nil
	}
	payer := s.accountOf(v, 0)
	var out []peer.Message
	for _, id := range wanted {
		h := s.store.cached(segment.ID(id))
		if h == nil || !s.good(h.cert, now) || t.lookup(h.id) == nil {
			continue
		}
		if n := len(h.cert.Bytes()); n <= transfer.MostShown && s.maySend(payer, n) {
			s.demand.note(wantedID{t.swarm, h.id}, now)
			s.cfg.Metrics.Add(mFetches, 1, t.site.name, fetchedCache)
			out = append(out, v.show(h))
		}
	}
	return out
}

// pieces is the view of the store that one link has. It satisfies transfer.Pieces.
type pieces struct{ v *viewer }

// Piece implements transfer.Pieces: bytes of segments of the link's own title, under the certificate that the viewer knows.
func (p pieces) Piece(id peer.ID, piece int) ([]byte, transfer.Refusal) {
	v := p.v
	s := v.service
	v.mu.Lock()
	content, sent := v.sent[id]
	v.mu.Unlock()
	r := v.title.lookup(id)
	if r == nil && !sent {
		return nil, transfer.Refuse(peer.RejectNotHeld)
	}
	h := s.store.cached(id)
	if h == nil && s.store.onDisk(id) > 0 && !v.unreadable(id) {
		if !s.load(v.payer(), id, func(h *held) { v.loaded(id, h) }) {
			return nil, transfer.Refuse(peer.RejectBudget)
		}
		return nil, transfer.Later
	}
	switch {
	case h == nil:
		if r != nil && v.title.audience() >= v.title.site.rules.Config().Policy.CertifyFrom {
			s.fly(wish{v.title, r, v.payer()}, nil) // it was pushed out; the next request finds it again
		}
		return nil, transfer.Refuse(peer.RejectNotHeld)
	case sent && h.sum != content, s.withdraws(h.cert):
		return nil, transfer.Refuse(peer.RejectWithdrawn) // other bytes than the viewer would verify
	case piece >= segment.Pieces(h.cert.Length):
		return nil, transfer.Refuse(peer.RejectOutOfRange)
	}
	from := piece * segment.PieceSize
	return h.data[from : from+segment.PieceLen(h.cert.Length, piece)], transfer.Served
}

// loaded says that a segment which a request waits for has been read, or could not be.
func (v *viewer) loaded(id segment.ID, h *held) {
	v.mu.Lock()
	if h == nil {
		v.missing = id
	}
	upload := v.upload
	v.mu.Unlock()
	upload.Loaded()
}

// unreadable says whether a segment on disk could just not be read; the next request tries again.
func (v *viewer) unreadable(id segment.ID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	is := v.missing == id
	if is {
		v.missing = segment.ID{}
	}
	return is
}

// Sent implements transfer.Observer.
func (v *viewer) Sent(lane peer.Lane, bytes int) {
	v.use()
	v.service.cfg.Metrics.Add(mLane, float64(bytes), metric.Lanes[lane])
	v.service.cfg.Metrics.Add(mSent, float64(bytes), v.title.site.name, string(*v.path.Load()))
}

// Served implements transfer.Observer.
func (v *viewer) Served() { v.service.cfg.Metrics.Add(mRequests, 1, "served") }

// Promoted implements transfer.Observer.
func (v *viewer) Promoted(n int) { v.service.cfg.Metrics.Add(mPromotions, float64(n)) }

// Rejected implements transfer.Observer.
func (v *viewer) Rejected(_ peer.RejectReason, n int) {
	v.service.cfg.Metrics.Add(mRequests, float64(n), "rejected")
}

// Canceled implements transfer.Observer.
func (v *viewer) Canceled(n int) { v.service.cfg.Metrics.Add(mRequests, float64(n), "canceled") }
