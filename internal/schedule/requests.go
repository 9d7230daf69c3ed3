package schedule

import "slices"

// requests are those on their way, and what is asked for in addition.
type requests struct {
	plan   *plan
	most   int       // on their way at once
	flying []Request // without the stalled
	count  int       // flying and made
}

// newRequests is rule 1: the stalled requests are canceled.
func newRequests(in *Input, ps *peers, t *timer, out *plan) requests {
	rs := requests{plan: out, most: in.Policy.PieceCap}
	for _, r := range in.Requests {
		if p := ps.byID[r.Peer]; p != nil && !t.waits(r.ProgressUs+p.stallTime()+1) {
			rs.cancel(r, WhyStalled)
			p.stalled = true
			continue
		}
		rs.flying = append(rs.flying, r)
	}
	rs.count = len(rs.flying)
	for _, p := range ps.all {
		t.waits(p.StalledUntilUs)
	}
	return rs
}

func (rs *requests) full() bool { return rs.count >= rs.most }

func (rs *requests) cancel(r Request, why string) {
	rs.plan.act(Action{Type: DoCancel, Segment: r.Segment, Piece: r.Piece, Peer: r.Peer, Why: why})
}

func (rs *requests) send(s *Segment, piece int, p *peer, why string) {
	p.Slots--
	p.Queued += pieceSize
	rs.count++
	lane := Foreground
	if why == WhyBackground {
		lane = Background
	}
	rs.plan.act(Action{Type: DoRequest, Segment: s.ID, Piece: piece, Peer: p.ID, Lane: lane, Why: why})
}

// promote is rule 8.
func (rs *requests) promote(s *Segment) {
	for _, r := range rs.flying {
		if r.Segment == s.ID && r.Lane == Background {
			rs.plan.act(Action{Type: DoPromote, Segment: r.Segment, Piece: r.Piece, Peer: r.Peer})
		}
	}
}

// of lists the requests for a piece.
func (rs *requests) of(s *Segment, piece int) []Request {
	var out []Request
	for _, r := range rs.flying {
		if r.Piece == piece && r.Segment == s.ID {
			out = append(out, r)
		}
	}
	return out
}

// any says whether any piece of the segment is in flight.
func (rs *requests) any(s *Segment) bool {
	return slices.ContainsFunc(rs.flying, func(r Request) bool { return r.Segment == s.ID })
}

// asked says whether a piece is in flight with a peer.
func (rs *requests) asked(s *Segment, piece int, from string) bool {
	return slices.ContainsFunc(rs.of(s, piece), func(r Request) bool { return r.Peer == from })
}
