package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// piece has a piece of a segment come from a peer that was asked for it.
func (r *rig) piece(f *friend, s *seg, n int, data []byte) {
	id := f.download.Request(s.target, peer.Foreground, "near", n)[0]
	r.verification.piece(f.remote, transfer.Order{ID: id, Target: s.target, Piece: n, Length: len(data)}, data, s.cert.CheckPiece(n, data))
}

func TestAPieceThatMatchesIsKeptAndOneThatDoesNotIsNot(t *testing.T) {
	r := newRig(t)
	data := media(2)
	s := r.segment(0, data)
	f := r.peer(2, schedule.Viewer, 0)
	o := r.waits(s, time.Minute)
	r.piece(f, s, 0, pieceOf(data, 0))
	bad := append([]byte(nil), pieceOf(data, 1)...)
	bad[7] ^= 1
	r.piece(f, s, 1, bad)
	if r.store.piece(s.id, 0) == nil || r.store.piece(s.id, 1) != nil || o.n != 0 {
		t.Error("not the one that matches is kept")
	}
	if asked := of[peer.CertificateRequest](f); len(asked) != 1 || asked[0].Segments[0] != s.key || f.gone {
		t.Fatalf("its certificate is asked for %d times, gone: %v", len(asked), f.gone)
	}
	if st := r.ledger.sum(); st.RejectedBytes != int64(len(bad)) {
		t.Errorf("%d bytes are rejected", st.RejectedBytes)
	}
	r.w.run(suspectTime)
	if !f.gone || f.noted.ended != peer.CloseBadPiece || len(r.banned) != 1 {
		t.Errorf("gone: %v, %q, banned: %v", f.gone, f.noted.ended, r.banned)
	}
	g := r.peer(3, schedule.Viewer, 0)
	r.piece(g, s, 1, pieceOf(data, 1))
	r.w.run(time.Millisecond)
	if o.n != 1 || o.got.Source != FromPeer || o.got.Len() != len(data) {
		t.Errorf("the player has %+v", o.got)
	}
}

// TestAPieceOfAWithdrawnSegmentIsNobodysFault: it is neither kept nor held against the peer.
func TestAPieceOfAWithdrawnSegmentIsNobodysFault(t *testing.T) {
	r := newRig(t)
	data := media(1)
	s := r.segment(0, data)
	f := r.peer(2, schedule.Viewer, 0)
	was := s.target
	r.verification.forget(s, schedule.CertNone)
	r.verification.piece(f.remote, transfer.Order{ID: 1, Target: was}, []byte("other bytes"), false)
	if r.store.get(s.id) != nil || len(r.verification.suspects) != 0 || r.ledger.sum().RejectedBytes != 0 {
		t.Error("kept, or held against the peer")
	}
}

// TestTheOriginIsHeldAgainstTheCertificate: agreement fills the store, a difference is counted, three in a row turn the title off.
func TestTheOriginIsHeldAgainstTheCertificate(t *testing.T) {
	r := newRig(t)
	data := media(3)
	late := r.segment(0, nil)
	r.verification.origin(late, data)
	if late.uncertified == nil || r.store.get(late.id) != nil {
		t.Error("shared without a certificate")
	}
	s := r.segment(1, data)
	if r.verification.origin(s, data); !r.store.get(s.id).complete() || s.sources[2] != FromOrigin {
		t.Error("what agrees is not kept")
	}
	full := make([]byte, segment.PieceSize)
	longer := r.segment(9, full)
	r.verification.origin(longer, append(full, 1))
	if r.ledger.sum().Contradictions != 1 || r.store.get(longer.id) != nil {
		t.Error("bytes beyond the length of the certificate agree with it")
	}
	r.verification.origin(r.segment(10, data), data)
	for n := range contradictedInRow {
		if r.off != "" {
			t.Errorf("off after %d differences", n)
		}
		r.verification.origin(r.segment(2+n, data), data[:len(data)-1])
	}
	if r.off != schedule.ByPolicy || r.ledger.sum().Contradictions != 1+contradictedInRow {
		t.Errorf("off %q after %d contradictions", r.off, r.ledger.sum().Contradictions)
	}
}

// TestCertificatesThatAreShown: the one that is held, and for a moment the one that was until a dispute.
func TestCertificatesThatAreShown(t *testing.T) {
	r := newRig(t)
	s := r.segment(0, media(1))
	other := &certificate.Certificate{Length: 5, Digests: certificate.DigestPieces([]byte("other")), IssuedAt: time.Unix(5, 0)}
	if r.verification.shows(nil) != nil || r.verification.shows(r.segment(1, nil)) != nil {
		t.Error("shown without being held")
	}
	was := s.cert
	if r.verification.shows(s) != was {
		t.Error("what is held is not shown")
	}
	r.verification.dispute(s, was, other)
	if r.verification.shows(s) != was || s.disputed[0] != was || s.disputed[1] != other || s.state != schedule.CertRefused {
		t.Errorf("in dispute: %v, %s", s.disputed, s.state)
	}
	if r.w.run(formerlyTime); r.verification.shows(s) != nil {
		t.Error("a disputed certificate is shown for ever")
	}
}

// TestAPeerWithoutACertificateIsAskedNoMore: another may be, once nothing is outstanding.
func TestAPeerWithoutACertificateIsAskedNoMore(t *testing.T) {
	r := newRig(t)
	s := r.segment(0, nil)
	one, other := r.peer(2, schedule.Viewer, 0), r.peer(3, schedule.Viewer, 0)
	one.holds(s, 1)
	s.asked(one.id, 1)
	s.asked(other.id, 2)
	if r.verification.none(one.remote, s.id); s.state != schedule.CertAsked || len(one.holdings.holds) != 0 {
		t.Errorf("%s, and %d held by a peer without a certificate", s.state, len(one.holdings.holds))
	}
	if r.verification.none(other.remote, s.id); s.state != schedule.CertNone {
		t.Errorf("%s after the last answer", s.state)
	}
	s.asked(other.id, 3)
	if r.linkEnded(other.remote, peer.CloseClosed); len(s.certPeers) != 2 {
		t.Errorf("%v were asked", s.certPeers)
	}
}

// TestCertificatesAreJudgedByTheTrackersTime, whatever the clock of the viewer's machine says: they are good for six hours, and five
// minutes before they were issued.
func TestCertificatesAreJudgedByTheTrackersTime(t *testing.T) {
	for _, c := range []struct {
		tracker, seed time.Duration // ahead of the viewer
		good          bool
	}{{0, 0, true}, {30 * time.Hour, 30 * time.Hour, true}, {30 * time.Hour, 0, false}, {0, time.Hour, false}, {-time.Hour, -time.Hour, true}} {
		s := newScene(t, fourSeconds(10, 200_000))
		s.tracker.ahead = c.tracker
		s.seed.issue = func(n segment.Name, data []byte) []byte {
			return issue(&world{now: s.w.now.Add(c.seed)}, n, data)
		}
		a := s.viewer(fast, nil)
		s.w.run(50 * time.Second)
		s.check()
		if n := a.now().Stats.Bytes["seed"]; n > 0 != c.good {
			t.Errorf("a tracker %v ahead and a seed %v: %d bytes of the seed", c.tracker, c.seed, n)
		}
	}
}
