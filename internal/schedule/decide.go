package schedule

import (
	"cmp"
	"math"
	"slices"
)

const (
	pieceSize  = 16384     // bytes
	leastRate  = 65_536    // bytes per second, of a peer whose rate is unknown, and of stalls
	leastPace  = 16_384    // bytes per second, of a peer whose rate is known
	leastStall = 1_000_000 // µs
	// probation is the bytes outstanding to a peer whose rate is unknown; more would only be waited for if it never answers.
	probation = 65_536
	// mostProving is of how many peers pieces are outstanding while none has been verified and the origin serves.
	mostProving = 4
	// worthShare: a segment is held until its turn for holders that together send this part of what it plays at.
	worthShare = 32
	// fillUs of film are in hand before a thin line's segments wait for peers that are no quicker than the origin.
	fillUs = 10_000_000
)

// Decide says what to do now. It keeps nothing of its input, and changes nothing in it; the same input gives the same
// actions, in the same order. Its last action is a wake if anything waits.
func Decide(in Input) []Action {
	d := newDecision(&in)
	for i := range in.Segments {
		s, before := &in.Segments[i], len(d.actions)
		d.waiting = false
		d.segment(s)
		if over := !d.waiting && len(d.actions) == before && !d.flies(s); over && s.AskedUs >= 0 && s.Origin == OriginFailed && !s.complete() {
			d.act(Action{Type: DoFail, Segment: s.ID}) // rule 9
		}
	}
	if d.wake < math.MaxInt64 {
		d.act(Action{Type: DoWake, AtUs: d.wake})
	}
	return d.actions
}

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

// decision is one call of Decide on its way.
type decision struct {
	in       *Input
	actions  []Action
	peers    []*peer
	viewers  []*peer
	byID     map[string]*peer
	flying   []Request // without the stalled
	inFlight int
	wake     int64
	waiting  bool // for something that the segment at hand needs
}

func newDecision(in *Input) *decision {
	d := &decision{in: in, byID: make(map[string]*peer, len(in.Peers)), wake: math.MaxInt64}
	for i := range in.Peers {
		p := &peer{Peer: in.Peers[i], stalled: in.Peers[i].StalledUntilUs > in.NowUs}
		d.peers = append(d.peers, p)
		d.byID[p.ID] = p
		if p.Role == Viewer {
			d.viewers = append(d.viewers, p)
		}
	}
	d.cancelStalled()
	return d
}

// cancelStalled is rule 1; what goes on is counted and remembered.
func (d *decision) cancelStalled() {
	for _, r := range d.in.Requests {
		if p := d.byID[r.Peer]; p != nil && !d.waits(r.ProgressUs+p.stallTime()+1) {
			d.act(Action{Type: DoCancel, Segment: r.Segment, Piece: r.Piece, Peer: r.Peer, Why: WhyStalled})
			p.stalled = true
			continue
		}
		d.inFlight++
		d.flying = append(d.flying, r)
	}
	for _, p := range d.peers {
		if p.stalled && p.StalledUntilUs > d.in.NowUs {
			d.waits(p.StalledUntilUs)
		}
	}
}

func (d *decision) act(a Action) { d.actions = append(d.actions, a) }

// waits remembers when a wait ends and says whether it still lasts.
func (d *decision) waits(until int64) bool {
	if d.in.NowUs >= until {
		return false
	}
	d.wake = min(d.wake, until)
	d.waiting = true
	return true
}

// free says whether a peer may be given one more piece (rule 6).
func (d *decision) free(p *peer) bool {
	most := d.in.Policy.PeerCap
	if p.Role == Seed && len(d.viewers) > 0 {
		most = d.in.Policy.SeedCap
	}
	if p.Rate == 0 {
		most = min(most, probation)
	} else {
		most = min(most, max(pieceSize, 4*p.Rate))
	}
	return !p.stalled && p.Slots > 0 && p.Queued < most
}

func (d *decision) full() bool { return d.inFlight >= d.in.Policy.PieceCap }

func (d *decision) request(s *Segment, piece int, p *peer, why string) {
	p.Slots--
	p.Queued += pieceSize
	d.inFlight++
	lane := Foreground
	if why == WhyBackground {
		lane = Background
	}
	d.act(Action{Type: DoRequest, Segment: s.ID, Piece: piece, Peer: p.ID, Lane: lane, Why: why})
}

func (d *decision) origin(s *Segment, why Reason) {
	if s.Origin == OriginIdle {
		d.act(Action{Type: DoOrigin, Segment: s.ID, Why: string(why)})
	}
}

// open lists the pieces that are not verified.
func (d *decision) open(s *Segment) []int {
	var out []int
	for n := range s.Pieces {
		if _, have := slices.BinarySearch(s.Have, n); !have {
			out = append(out, n)
		}
	}
	return out
}

// requested lists the requests for a piece.
func (d *decision) requested(s *Segment, piece int) []Request {
	var out []Request
	for _, r := range d.flying {
		if r.Piece == piece && r.Segment == s.ID {
			out = append(out, r)
		}
	}
	return out
}

// flies says whether any piece of the segment is in flight.
func (d *decision) flies(s *Segment) bool {
	return slices.ContainsFunc(d.flying, func(r Request) bool { return r.Segment == s.ID })
}

// listed says whether a list of the packager spares the question to a seed. What the origin does not send cannot be completed by a
// list.
func (s *Segment) listed() bool { return s.Packaged && s.Origin != OriginFailed }

// askCertificate asks the next peer for the certificate: holders first, then on-demand peers, the lowest round trip
// first; holders alone where a list has it. It says whether there was one left to ask.
func (d *decision) askCertificate(s *Segment) bool {
	var next *peer
	for _, holds := range []bool{true, false} {
		for _, p := range d.peers {
			_, holder := p.Holds[s.ID]
			if p.stalled || slices.Contains(s.CertPeers, p.ID) || holds && !holder || !holds && (!p.OnDemand || s.listed()) {
				continue
			}
			if next == nil || cmp.Or(cmp.Compare(p.RTTUs, next.RTTUs), cmp.Compare(p.ID, next.ID)) < 0 {
				next = p
			}
		}
		if next != nil {
			d.act(Action{Type: DoCertificate, Segment: s.ID, Peer: next.ID})
			return true
		}
	}
	return false
}
