package seed

import (
	"context"
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// answerWait is how long an answer waits for the certificates that the offer wants: less than what they save on any path
// that is long enough to be felt.
const answerWait = 20 * time.Millisecond

// Piece takes data from a viewer. A seed asks viewers for nothing, so all of it is unsolicited.
func (v *viewer) Piece(m peer.Data) error {
	v.mu.Lock()
	v.unsolicited += len(m.Payload)
	over := v.unsolicited > peer.MaxUnsolicited
	v.mu.Unlock()
	if over {
		return &transfer.LinkError{Close: peer.CloseLimit, Bye: peer.ByeOverLimit, Cause: errors.New("unsolicited data")}
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

// wanted answers one certificate request, when the segment is there.
func (v *viewer) wanted(id segment.ID) {
	s := v.service
	v.mu.Lock()
	session := v.session
	full := v.asked >= maxAsked
	if !full {
		v.asked++
	}
	v.mu.Unlock()
	if full || !s.work(func() {
		v.certify(session, id)
		v.mu.Lock()
		v.asked--
		v.mu.Unlock()
	}) {
		session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
}

func (v *viewer) certify(session *transfer.Session, id segment.ID) {
	s, t := v.service, v.title
	r := t.find(v.ctx, id)
	if r == nil {
		reason := peer.NoneUnknown
		if t.empty() {
			reason = peer.NoneOrigin // no playlist could be had yet
		}
		session.Send(peer.CertificateNone{Segment: id, Reason: reason})
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

// shown are the certificates that go with an answer: of the segments that the offer names, those that are at hand, or
// fetched in no time. What comes later is there when the link asks for it.
func (v *viewer) shown(wanted []signal.ID) []peer.Message {
	s, t := v.service, v.title
	if len(wanted) == 0 || t.audience() < t.site.rules.Config().Policy.CertifyFrom {
		return nil
	}
	ctx, cancel := context.WithTimeout(v.ctx, answerWait)
	defer cancel()
	payer := s.accountOf(v, 0)
	var out []peer.Message
	for _, id := range wanted {
		r := t.lookup(segment.ID(id))
		if r == nil {
			continue
		}
		s.demand.note(wantedID{t.swarm, r.id}, s.cfg.Now())
		h := s.certify(ctx, wish{t, r, payer}).held
		if h == nil {
			continue
		}
		if n := len(h.cert.Bytes()); n <= transfer.MostShown && s.maySend(payer, n) {
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
	h := s.store.get(id)
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

// Sent implements transfer.Observer.
func (v *viewer) Sent(lane peer.Lane, bytes int) {
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
