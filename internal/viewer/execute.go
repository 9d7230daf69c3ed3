package viewer

import (
	"slices"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// executor does what the schedule says.
type executor struct {
	*shared
	loads    *loads
	ahead    *lookAhead
	announce func(id string)
	wake     func(us int64)
}

// batch is requests that travel together.
type batch struct {
	peer   *remote
	target *transfer.Target
	lane   schedule.Lane
	why    string
	pieces []int
}

// execute does what the schedule says; requests to one peer travel together.
func (x *executor) execute(now int64, actions []schedule.Action) {
	asks := map[*remote][]segment.ID{}
	var batches []*batch
	var stalled []*remote
	for _, a := range actions {
		s, r := x.segments.byID[a.Segment], x.peers.byID[a.Peer]
		switch a.Type {
		case schedule.DoWake:
			x.wake(a.AtUs - now)
		case schedule.DoOrigin:
			x.loads.startOrigin(s, schedule.Reason(a.Why))
		case schedule.DoStopOrigin:
			x.loads.finish(s)
		case schedule.DoFail:
			x.loads.giveUp(s)
		case schedule.DoCertificate:
			s.asked(a.Peer, now)
			asks[r] = append(asks[r], s.key)
		case schedule.DoRequest:
			if s.target != nil && a.Lane == schedule.Foreground {
				batches = x.collect(batches, s, r, a)
			}
		case schedule.DoPromote:
			x.ledger.promoted(r.download.Promote(s.key, a.Piece))
		case schedule.DoCancel:
			x.cancel(a)
			if a.Why == schedule.WhyStalled && !slices.Contains(stalled, r) {
				stalled = append(stalled, r)
			}
		}
	}
	for _, r := range x.peers.inOrder() {
		for part := range slices.Chunk(asks[r], 255) {
			r.session.Send(peer.CertificateRequest{Segments: part})
		}
	}
	for _, b := range batches {
		b.peer.download.Request(b.target, peer.Lane(b.lane), b.why, b.pieces...)
	}
	x.ahead.ask(actions)
	for _, r := range stalled {
		r.patience.stalled()
		x.changed()
	}
}

func (x *executor) collect(batches []*batch, s *seg, r *remote, a schedule.Action) []*batch {
	if x.store.get(s.id) == nil {
		x.store.open(s.id, s.cert.Length)
		x.announce(s.id) // an empty bitmap: it is being fetched
	}
	for _, b := range batches {
		if b.peer == r && b.target == s.target && b.lane == a.Lane && b.why == a.Why {
			b.pieces = append(b.pieces, a.Piece)
			return batches
		}
	}
	return append(batches, &batch{r, s.target, a.Lane, a.Why, []int{a.Piece}})
}

func (x *executor) cancel(a schedule.Action) {
	s, r := x.segments.byID[a.Segment], x.peers.byID[a.Peer]
	gone := r.download.Cancel(func(o transfer.Order) bool {
		return o.Piece == a.Piece && o.Target.Segment.String() == a.Segment
	})
	if a.Why == schedule.WhyLate {
		r.late(s, gone)
	}
}
