package viewer

import (
	"math"
	"slices"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// never in µs: what is being checked cannot stall.
const never = 1 << 52

// input is what the schedule sees now.
func (e *engine) input() schedule.Input {
	in := schedule.Input{
		NowUs: e.nowUs(), Policy: e.cfg.Policy, Linking: e.linking, SeedLinking: e.seedComes, CreditUs: e.credit.leftUs(e.loop.Now()), Off: e.off,
		Segments: []schedule.Segment{}, Peers: []schedule.Peer{}, Requests: []schedule.Request{},
	}
	in.Policy.Background = e.ahead.running
	self := e.self()
	in.Self = segment.ID(self).String()
	relays := e.asksRelays()
	var list []*seg
	for _, s := range e.segments.all() {
		if s.wanted() || s.uncertified != nil || e.listed(s) {
			list = append(list, s)
		}
	}
	inOrder(list)
	for _, s := range list {
		in.Segments = append(in.Segments, e.view(s))
	}
	for _, r := range e.peersInOrder() {
		in.Linking = in.Linking || !r.ready
		in.SeedLinking = in.SeedLinking || !r.ready && r.role == schedule.Seed
		if !r.ready || r.noUpload {
			continue
		}
		orders := r.download.Orders()
		unwanted := r.path == transfer.Relay && !relays
		if unwanted && len(orders) == 0 {
			continue
		}
		paid := int64(math.MinInt64)
		if at := r.download.Paid(); !at.IsZero() {
			paid = e.usOf(at)
		}
		for _, o := range orders {
			sent := e.usOf(o.Sent)
			progress := max(sent, paid)
			if o.Lane == peer.Background {
				in.Policy.PieceCap++
			}
			if o.Checking || o.Lane == peer.Background { // who gives way does not stall
				progress = never
			}
			in.Requests = append(in.Requests, schedule.Request{
				Segment: segment.ID(o.Target.Segment).String(), Piece: o.Piece, Peer: r.id, Lane: schedule.Lane(o.Lane),
				SentUs: sent, ProgressUs: progress,
			})
		}
		seen := schedule.Peer{
			ID: r.id, Role: r.role, Rate: r.download.Rate(), RTTUs: r.download.RTT().Microseconds(), Slots: r.maxRequests - len(orders),
			Queued: r.download.Queued(), OnDemand: r.onDemand, StalledUntilUs: r.stalledUs, Holds: r.holdings.holds, Heard: r.holdings.heard,
		}
		if unwanted {
			seen = unasked(seen)
		}
		in.Peers = append(in.Peers, seen)
	}
	return in
}

// view is a segment as the schedule sees it.
func (e *engine) view(s *seg) schedule.Segment {
	v := schedule.Segment{
		ID: s.id, DeadlineUs: e.deadlineUs(s), DurationUs: s.ref.Duration.Microseconds(), AskedUs: -1, Certificate: s.state,
		CertAskedUs: s.certAsked, CertPeers: append([]string{}, s.certPeers...), Have: []int{}, Origin: s.origin, OriginUs: e.originUs(s),
	}
	if s.wanted() {
		v.AskedUs = s.askedUs
	}
	if s.cert != nil {
		v.Pieces = segment.Pieces(s.cert.Length)
		v.Have = e.store.get(s.id).held()
	}
	return v
}

func (e *engine) deadlineUs(s *seg) int64 {
	least := int64(math.MaxInt64)
	for _, l := range s.loads {
		least = min(least, e.nowUs()+l.request.deadline().Microseconds())
	}
	if least < math.MaxInt64 {
		return least
	}
	return e.zeroUs + s.ref.Start.Microseconds()
}

// originUs is what the origin takes for what is left of a segment, as far as its size is known; -1 unknown.
func (e *engine) originUs(s *seg) int64 {
	if s.cert == nil {
		return e.line.timeUs(sizeGuess(s.bitrate, s.ref))
	}
	left := s.cert.Length
	if held := e.store.get(s.id); held != nil && !e.line.wholes {
		left = max(1, left-int64(held.count)*segment.PieceSize)
	}
	return e.line.timeUs(float64(left))
}

// sizeGuess is how many bytes a segment of a rendition has, roughly; 0 unknown.
func sizeGuess(bitrate int64, r Reference) float64 {
	return float64(bitrate) * r.Duration.Seconds() / 8
}

// run decides and does it.
func (e *engine) run() {
	e.due = false
	if e.stopped {
		return
	}
	if e.timer != nil {
		e.timer()
		e.timer = nil
	}
	e.lookAhead()
	in := e.input()
	actions := schedule.Decide(in)
	if e.cfg.Record != nil {
		if err := schedule.Record(e.cfg.Record, in, actions); err != nil {
			e.cfg.Record = nil
			e.notice("record", err.Error())
		}
	}
	e.perform(in.NowUs, actions)
	e.credit.settle(e.loop.Now(), slices.ContainsFunc(e.segments.all(), func(s *seg) bool { return s.wanted() && s.origin == schedule.OriginIdle }))
}

// batch is requests that travel together.
type batch struct {
	peer   *remote
	target *transfer.Target
	lane   schedule.Lane
	why    string
	pieces []int
}

// perform does what the schedule says; requests to one peer travel together.
func (e *engine) perform(now int64, actions []schedule.Action) {
	asks := map[*remote][]peer.ID{}
	var batches []*batch
	var stalled []*remote
	for _, a := range actions {
		s, r := e.segments.byID[a.Segment], e.peers[a.Peer]
		switch a.Type {
		case schedule.DoWake:
			e.wake(a.AtUs - now)
		case schedule.DoOrigin:
			e.startOrigin(s, schedule.Reason(a.Why))
		case schedule.DoStopOrigin:
			e.finish(s)
		case schedule.DoFail:
			e.giveUp(s)
		case schedule.DoCertificate:
			s.state = schedule.CertAsked
			if s.certAsked < 0 {
				s.certAsked = now
			}
			s.certPeers = append(s.certPeers, a.Peer)
			asks[r] = append(asks[r], peer.ID(s.key))
		case schedule.DoRequest:
			if s.target != nil && a.Lane == schedule.Foreground {
				batches = e.collect(batches, s, r, a)
			}
		case schedule.DoPromote:
			e.ledger.promoted(r.download.Promote(peer.ID(s.key), a.Piece))
		case schedule.DoCancel:
			e.cancel(a)
			if a.Why == schedule.WhyStalled && !slices.Contains(stalled, r) {
				stalled = append(stalled, r)
			}
		}
	}
	for _, r := range e.peersInOrder() {
		for part := range slices.Chunk(asks[r], 255) {
			r.session.Send(peer.CertificateRequest{Segments: part})
		}
	}
	for _, b := range batches {
		b.peer.download.Request(b.target, peer.Lane(b.lane), b.why, b.pieces...)
	}
	e.askBehind(actions)
	for _, r := range stalled {
		r.stall()
		e.changed()
	}
}

func (e *engine) collect(batches []*batch, s *seg, r *remote, a schedule.Action) []*batch {
	if e.store.get(s.id) == nil {
		e.store.open(s.id, s.cert.Length)
		e.announce(s.id) // an empty bitmap: it is being fetched
	}
	for _, b := range batches {
		if b.peer == r && b.target == s.target && b.lane == a.Lane && b.why == a.Why {
			b.pieces = append(b.pieces, a.Piece)
			return batches
		}
	}
	return append(batches, &batch{r, s.target, a.Lane, a.Why, []int{a.Piece}})
}

func (e *engine) cancel(a schedule.Action) {
	s, r := e.segments.byID[a.Segment], e.peers[a.Peer]
	gone := r.download.Cancel(func(o transfer.Order) bool {
		return o.Piece == a.Piece && segment.ID(o.Target.Segment).String() == a.Segment
	})
	if a.Why == schedule.WhyLate {
		r.late(s, gone)
	}
}
