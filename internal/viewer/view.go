package viewer

import (
	"math"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// never in µs: what is being checked cannot stall.
const never = 1 << 52

// view is the engine as the schedule sees it.
type view struct {
	*shared
	policy    schedule.Policy
	self      func() swarm.ID
	relayOnly func() bool // viewers meet by relays alone
	listed    func(s *seg) bool
	packaged  func(s *seg) bool // a list has its certificate
	live      bool              // what the player asked for last is of a stream that goes on
	zeroUs    int64             // when the presentation's time zero is played: what a start is added to for a deadline
}

// asked notes that the player asks for a segment: it says where the playhead is.
func (w *view) asked(r request) {
	w.live, w.zeroUs = r.live, w.nowUs()+(r.deadline()-r.Start).Microseconds()
}

// relaxed says whether the playhead leaves the time to measure the line by a segment.
func (w *view) relaxed(s *seg) bool {
	v := w.segment(s)
	return !w.store.get(s.id).complete() && v.DeadlineUs-w.nowUs() >= v.UrgentWindow(w.policy.UrgentPermille)
}

// input completes what the schedule sees now. background says whether something is fetched ahead.
func (w *view) input(in schedule.Input, background bool) schedule.Input {
	in.NowUs, in.Policy, in.Off, in.Live = w.nowUs(), w.policy, w.off, w.live
	in.Segments, in.Peers, in.Requests = []schedule.Segment{}, []schedule.Peer{}, []schedule.Request{}
	in.Policy.Background = background
	self := w.self()
	in.Self = self.Hex()
	relays := w.asksRelays()
	var list []*seg
	for _, s := range w.segments.all() {
		if s.wanted() || s.uncertified != nil || w.listed(s) {
			list = append(list, s)
		}
	}
	inOrder(list)
	for _, s := range list {
		in.Segments = append(in.Segments, w.segment(s))
	}
	for _, r := range w.peers.inOrder() {
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
			paid = w.usOf(at)
		}
		for _, o := range orders {
			sent := w.usOf(o.Sent)
			progress := max(sent, paid)
			if o.Lane == peer.Background {
				in.Policy.PieceCap++
			}
			if o.Checking || o.Lane == peer.Background { // background gives way and does not stall
				progress = never
			}
			in.Requests = append(in.Requests, schedule.Request{
				Segment: o.Target.Segment.String(), Piece: o.Piece, Peer: r.id, Lane: schedule.Lane(o.Lane),
				SentUs: sent, ProgressUs: progress,
			})
		}
		seen := schedule.Peer{
			ID: r.id, Role: r.role, Rate: r.download.Rate(), RTTUs: r.download.RTT().Microseconds(), Slots: r.maxRequests - len(orders),
			Queued: r.download.Queued(), OnDemand: r.onDemand, StalledUntilUs: r.patience.stalledUs, BehindUntilUs: r.patience.behindUs, Holds: r.holdings.holds, Heard: r.holdings.heard,
		}
		if !r.acks {
			seen.BehindUntilUs = never
		}
		if unwanted {
			seen = unasked(seen)
		}
		in.Peers = append(in.Peers, seen)
	}
	return in
}

// segment is a segment as the schedule sees it.
func (w *view) segment(s *seg) schedule.Segment {
	v := schedule.Segment{
		ID: s.id, DeadlineUs: w.deadlineUs(s), DurationUs: s.ref.Duration.Microseconds(), AskedUs: -1, Certificate: s.state,
		CertAskedUs: s.certAsked, CertHeldUs: s.certHeld, CertPeers: append([]string{}, s.certPeers...), Have: []int{}, Origin: s.origin, OriginUs: w.originUs(s),
	}
	if s.wanted() {
		v.AskedUs = s.askedUs
	}
	v.Packaged = s.cert == nil && w.packaged(s)
	if s.cert != nil {
		v.Pieces = segment.Pieces(s.cert.Length)
		v.Have = w.store.get(s.id).held()
	}
	return v
}

func (w *view) deadlineUs(s *seg) int64 {
	least := int64(math.MaxInt64)
	for _, l := range s.loads {
		least = min(least, w.nowUs()+l.request.deadline().Microseconds())
	}
	if least < math.MaxInt64 {
		return least
	}
	return w.zeroUs + s.ref.Start.Microseconds()
}

// originUs is what the origin takes for what is left of a segment, as far as its size is known; -1 unknown.
func (w *view) originUs(s *seg) int64 {
	if s.cert == nil {
		return w.line.timeUs(sizeGuess(s.bitrate, s.ref))
	}
	left := s.cert.Length
	if held := w.store.get(s.id); held != nil && !w.line.wholes {
		left = max(1, left-int64(held.count)*segment.PieceSize)
	}
	return w.line.timeUs(float64(left))
}

// sizeGuess is how many bytes a segment of a rendition has, roughly; 0 unknown.
func sizeGuess(bitrate int64, r Reference) float64 {
	return float64(bitrate) * r.Duration.Seconds() / 8
}

// asksRelays says whether peers behind a relay are asked for anything (spec/schedule.md, "Input"): each of their bytes is
// paid for twice, so only where no other source can serve, or where the site has its viewers meet by relays alone.
func (w *view) asksRelays() bool {
	if w.relayOnly() {
		return true
	}
	if !w.line.fails() {
		return false
	}
	for _, r := range w.peers.byID {
		if r.ready && r.role == schedule.Seed && r.path == transfer.Direct {
			return false
		}
	}
	return true
}

// unasked is how the schedule sees a peer that nothing more is to be asked of: as long as something is on its way from it.
func unasked(p schedule.Peer) schedule.Peer {
	p.OnDemand, p.Slots, p.Holds, p.Heard = false, 0, map[string]schedule.Holding{}, map[string]int64{}
	return p
}
