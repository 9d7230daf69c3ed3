package schedule

import "slices"

const (
	pieceSize  = 16384     // bytes
	leastRate  = 65_536    // bytes per second, of a peer whose rate is unknown, and of stalls
	leastPace  = 16_384    // bytes per second, of a peer whose rate is known
	leastStall = 1_000_000 // µs
	// probation is the bytes outstanding to a peer whose rate is unknown; more would only be waited for if it never answers.
	probation = 65_536
	// liveCap bounds the bytes outstanding to a near seed of a live stream, while viewers are linked. Viewers ask for a segment at about the same
	// time. With so little on its way, a viewer hears of the others before it has asked the seed for the whole segment.
	liveCap = 32_768
)

// peer is a working copy: slots and queues are counted down as pieces are assigned within a call.
type peer struct {
	Peer
	stalled bool
}

// has says whether the peer holds a piece.
func (p *peer) has(segment string, piece int) bool {
	if h, ok := p.Holds[segment]; ok {
		return h.has(piece)
	}
	return p.OnDemand
}

// offers says whether the peer has said that it holds the segment, at least in part, or gets what it is asked for. An on-demand peer
// is not asked for what a list has the certificate of, unless it was asked before.
func (p *peer) offers(s *Segment) bool {
	_, holds := p.Holds[s.ID]
	return holds || p.OnDemand && (s.Certificate != CertNone || !s.listed())
}

// partly says whether the peer announced the segment as partial.
func (p *peer) partly(segment string) bool {
	h, ok := p.Holds[segment]
	return ok && !h.Complete
}

// eta is the time in µs after which one more piece would be here.
func (p *peer) eta() int64 {
	return p.after(1)
}

// after is the time in µs after which so many more pieces would be here.
func (p *peer) after(pieces int) int64 {
	pace := int64(leastRate)
	if p.Rate > 0 {
		pace = max(p.Rate, leastPace)
	}
	return p.RTTUs + (p.Queued+int64(pieces)*pieceSize)*1_000_000/pace
}

// stallTime is how long in µs a request to the peer may go without progress.
func (p *peer) stallTime() int64 {
	return max(leastStall, 4*p.RTTUs+3_000_000*min(p.Queued, probation)/max(p.Rate, leastRate))
}

// quickest is the peer with the least eta; of equals the first, which has the lowest ID.
func quickest(peers []*peer, ok func(*peer) bool) *peer {
	var best *peer
	for _, p := range peers {
		if ok(p) && (best == nil || p.eta() < best.eta()) {
			best = p
		}
	}
	return best
}

// peers are those that are linked, in working copies.
type peers struct {
	policy  *Policy
	live    bool
	all     []*peer // by ID
	viewers []*peer
	byID    map[string]*peer
}

func newPeers(in *Input) peers {
	ps := peers{policy: &in.Policy, live: in.Live, byID: make(map[string]*peer, len(in.Peers))}
	for i := range in.Peers {
		p := &peer{Peer: in.Peers[i], stalled: in.Peers[i].StalledUntilUs > in.NowUs}
		ps.all = append(ps.all, p)
		ps.byID[p.ID] = p
		if p.Role == Viewer {
			ps.viewers = append(ps.viewers, p)
		}
	}
	return ps
}

// usable says whether a peer may be given one more piece of a segment (rule 6).
func (ps *peers) usable(p *peer, s *Segment) bool {
	most := ps.policy.PeerCap
	if p.Role == Seed && len(ps.viewers) > 0 {
		most = ps.policy.SeedCap
		if ps.live {
			// A seed that is far is asked for what a round trip takes at twice the rate of the segment.
			most = min(most, max(liveCap, 2*int64(s.Pieces)*pieceSize*p.RTTUs/max(1, s.DurationUs)))
		}
	}
	if p.Rate == 0 {
		most = min(most, probation)
	} else {
		most = min(most, max(pieceSize, 4*p.Rate))
	}
	return !p.stalled && p.Slots > 0 && p.Queued < most
}

// offered says whether any peer offers the segment.
func (ps *peers) offered(s *Segment) bool {
	return slices.ContainsFunc(ps.all, func(p *peer) bool { return p.offers(s) })
}

// rates is what the holders of a segment send together, bytes/s.
func (ps *peers) rates(s *Segment) (sum int64) {
	for _, p := range ps.all {
		if p.offers(s) {
			sum += p.Rate
		}
	}
	return sum
}

// interested are the viewers that hold a part of the segment.
func (ps *peers) interested(s *Segment) []*peer {
	var out []*peer
	for _, p := range ps.viewers {
		if p.partly(s.ID) {
			out = append(out, p)
		}
	}
	return out
}
