package viewer

import (
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestRequestsToOnePeerTravelTogether: one message a segment, lane and reason; the segment is announced as being fetched.
func TestRequestsToOnePeerTravelTogether(t *testing.T) {
	r := newRig(t)
	data := media(3)
	s, other := r.segment(0, data), r.segment(1, data)
	f, g := r.peer(2, schedule.Viewer, 0), r.peer(3, schedule.Viewer, 0)
	r.waits(s, 0)
	var announced []string
	r.executor.announce = func(id string) { announced = append(announced, id) }
	ask := func(f *friend, s *seg, n int, why string) schedule.Action {
		return schedule.Action{Type: schedule.DoRequest, Segment: s.id, Peer: f.id, Piece: n, Why: why}
	}
	certificate := func(f *friend, s *seg) schedule.Action {
		return schedule.Action{Type: schedule.DoCertificate, Segment: s.id, Peer: f.id}
	}
	unknown := r.segment(2, nil)
	r.executor.execute(r.nowUs(), []schedule.Action{
		ask(f, s, 0, "near"), ask(g, s, 1, "near"), ask(f, s, 2, "near"), ask(f, other, 0, "near"), ask(f, s, 1, "urgent"), ask(f, unknown, 0, "near"),
		certificate(g, unknown), certificate(f, unknown), certificate(g, r.segment(3, nil)),
	})
	var pieces [][]int
	for _, m := range of[peer.Request](f) {
		var list []int
		for _, q := range m.Requests {
			list = append(list, int(q.Piece))
		}
		pieces = append(pieces, list)
	}
	if len(pieces) != 3 || !slices.Equal(pieces[0], []int{0, 2}) || !slices.Equal(pieces[1], []int{0}) || !slices.Equal(pieces[2], []int{1}) || len(of[peer.Request](g)) != 1 {
		t.Errorf("one peer was asked for %v", pieces)
	}
	if a := of[peer.CertificateRequest](g); len(a) != 1 || len(a[0].Segments) != 2 || len(of[peer.CertificateRequest](f)) != 1 {
		t.Errorf("certificates: %+v", a)
	}
	if !slices.Equal(announced, []string{s.id, other.id}) {
		t.Errorf("announced are %v", announced)
	}
	if unknown.state != schedule.CertAsked || !slices.Equal(unknown.certPeers, []string{g.id, f.id}) || r.store.get(s.id) == nil || r.store.get(unknown.id) != nil {
		t.Errorf("%s of %v", unknown.state, unknown.certPeers)
	}
}

func TestActionsOnRequests(t *testing.T) {
	r := newRig(t)
	s := r.segment(0, media(3))
	f := r.peer(2, schedule.Viewer, peer.AcksBackground)
	f.download.Request(s.target, peer.Foreground, "near", 0, 1)
	f.download.Request(s.target, peer.Background, "background", 2)
	woken := int64(0)
	r.executor.wake = func(us int64) { woken = us }
	do := func(kind schedule.ActionType, piece int, why string) schedule.Action {
		return schedule.Action{Type: kind, Segment: s.id, Peer: f.id, Piece: piece, Why: why}
	}
	r.executor.execute(1000, []schedule.Action{
		do(schedule.DoPromote, 2, ""), do(schedule.DoCancel, 0, schedule.WhyStalled), do(schedule.DoCancel, 1, schedule.WhyStalled), {Type: schedule.DoWake, AtUs: 6000},
	})
	orders := f.download.Orders()
	if len(orders) != 1 || orders[0].Piece != 2 || orders[0].Lane != peer.Foreground || r.ledger.sum().Promotions != 1 {
		t.Errorf("%+v, %d promotions", orders, r.ledger.sum().Promotions)
	}
	if f.patience.stalledUs <= r.nowUs() || f.patience.stalls != 1 || woken != 5000 {
		t.Errorf("stalled until %d, woken after %d µs", f.patience.stalledUs, woken)
	}
	o := r.waits(s, 0)
	r.executor.execute(1000, []schedule.Action{{Type: schedule.DoOrigin, Segment: s.id, Why: string(schedule.Urgent)}})
	if len(r.fetches) != 1 || s.originReason != schedule.Urgent || o.n != 0 {
		t.Errorf("%d fetches for reason %s", len(r.fetches), s.originReason)
	}
}
