package schedule

import (
	"cmp"
	"math"
	"slices"
)

// UrgentWindow is how long before the playhead gets to a segment its origin must run, in µs.
func (s *Segment) UrgentWindow(permille int64) int64 {
	full := s.DurationUs * permille / 1000
	if s.OriginUs < 0 {
		return full
	}
	return min(full, s.DurationUs/4+3*s.OriginUs)
}

// turnUs is when a segment becomes urgent: when its window begins; or earlier, where it is waited for longer than it plays. A
// player asks for one after the other, and that time is the buffer's. The last duration before the deadline is the window of a
// segment that the origin would now just bring in the time that it plays; a duration and a quarter are waited at most.
func (s *Segment) turnUs(permille int64) int64 {
	inTime := s.AskedUs + s.DurationUs - max(0, s.OriginUs)
	return min(s.DeadlineUs-s.UrgentWindow(permille), max(inTime, s.DeadlineUs-s.DurationUs), s.AskedUs+s.DurationUs*5/4)
}

func (s *Segment) complete() bool { return s.Pieces > 0 && len(s.Have) >= s.Pieces }

// segment decides for one segment (rules 0 and 2 to 5).
func (d *decision) segment(s *Segment) {
	urgent := s.UrgentWindow(d.in.Policy.UrgentPermille)
	asked := s.AskedUs >= 0
	switch {
	case s.complete():
		if s.Origin == OriginRunning {
			d.act(Action{Type: DoStopOrigin, Segment: s.ID})
		}
	case d.in.Off != "":
		if asked {
			d.origin(s, d.in.Off)
		}
	case !asked:
		if s.Certificate == CertNone {
			d.askCertificate(s)
		} else if s.Certificate == CertHeld && d.in.Policy.Background {
			d.assign(s, WhyBackground)
		}
	default:
		d.promote(s)
		turn := s.turnUs(d.in.Policy.UrgentPermille)
		until := d.heldUntil(s, turn)
		if d.in.NowUs > until && s.Origin != OriginFailed {
			d.urgent(s, turn, urgent)
		} else if s.Origin != OriginRunning {
			d.near(s, until)
		}
	}
}

// proven says whether a piece has been verified in this session.
func (d *decision) proven() bool { return d.in.CreditUs < 0 }

// rates is what the holders of a segment send together, bytes/s.
func (d *decision) rates(s *Segment) (sum int64) {
	for _, p := range d.peers {
		if p.offers(s) {
			sum += p.Rate
		}
	}
	return sum
}

// worth says whether the holders of a segment send enough together, by their rates, for it to be held until its turn.
func (d *decision) worth(s *Segment) bool {
	sum := d.rates(s)
	return sum > 0 && sum >= int64(s.Pieces)*pieceSize*1_000_000/worthShare/max(1, s.DurationUs)
}

// filling says whether a segment was asked for with little in hand, on a line that is thin for what is played, and its holders are
// not known to bring it clearly sooner than the origin.
func (d *decision) filling(s *Segment) bool {
	if s.DeadlineUs-s.AskedUs >= fillUs || s.OriginUs < s.DurationUs/2 {
		return false
	}
	return !d.proven() || s.Certificate == CertHeld && d.rates(s) < int64(s.Pieces)*pieceSize*1_250_000/max(1, s.OriginUs)
}

// heldUntil is from when on a segment is not held: its turn; earlier, where a buffer is filled over a thin line, where nothing has
// been verified, or where its holders are not known to send enough, and the time for that runs out.
func (d *decision) heldUntil(s *Segment, turn int64) int64 {
	switch {
	case d.filling(s):
		return min(turn, s.AskedUs-1)
	case !d.proven():
		return min(turn, d.in.NowUs+d.in.CreditUs-1)
	case d.worth(s):
		return turn
	}
	return min(turn, d.in.NowUs+d.in.SlowCreditUs-1)
}

// promote is rule 8.
func (d *decision) promote(s *Segment) {
	for _, r := range d.flying {
		if r.Segment == s.ID && r.Lane == Background {
			d.act(Action{Type: DoPromote, Segment: r.Segment, Piece: r.Piece, Peer: r.Peer})
		}
	}
}

// urgent is rule 3.
func (d *decision) urgent(s *Segment, turn, window int64) {
	certified := s.Certificate == CertHeld
	if certified && d.proven() && s.Origin == OriginIdle && d.rescue(s, window) {
		return
	}
	switch {
	case !slices.ContainsFunc(d.peers, func(p *peer) bool { return p.offers(s) }):
		d.origin(s, NoHolder)
	case !certified && s.CertAskedUs >= 0:
		d.origin(s, NoCert)
	default:
		d.origin(s, Urgent)
	}
	if s.Certificate == CertNone {
		d.askCertificate(s)
	}
	if certified {
		if d.proven() || s.DeadlineUs-d.in.NowUs < window/3 {
			d.race(s, turn, window)
		} else {
			d.prove(s)
		}
	}
}

// prove asks a few holders for a piece each, beside the origin: with one verified, what comes next may wait for peers.
func (d *decision) prove(s *Segment) {
	for _, n := range slices.Backward(d.open(s)) {
		busy := 0
		for _, p := range d.peers {
			if p.Queued > 0 {
				busy++
			}
		}
		if busy >= mostProving || d.full() {
			return
		}
		if d.requested(s, n) != nil {
			continue
		}
		if p := quickest(d.peers, func(p *peer) bool { return p.Queued == 0 && p.has(s.ID, n) && d.free(p) }); p != nil {
			d.request(s, n, p, WhyRace)
		}
	}
}

// rescue asks a seed for all that is not in hand, if it would bring that in a quarter of the time left: the origin would send the whole
// segment again for the sake of a few pieces. It says whether the origin can wait (rule 3).
func (d *decision) rescue(s *Segment, window int64) bool {
	if s.DeadlineUs-d.in.NowUs < window/2 {
		return false
	}
	open := d.open(s)
	// The seed that was asked already, lest two seeds take turns.
	best := d.rescuer(s, open, 0)
	if best == nil {
		best = d.rescuer(s, open, len(open))
	}
	if best == nil {
		return false
	}
	for _, n := range open {
		if d.asked(s, n, best.ID) {
			continue
		}
		for _, r := range d.requested(s, n) {
			d.act(Action{Type: DoCancel, Segment: s.ID, Piece: n, Peer: r.Peer, Why: WhyLate})
		}
		d.request(s, n, best, WhyRace)
	}
	d.waits(s.DeadlineUs - window/2 + 1)
	return true
}

// rescuer is the quickest seed that would bring the pieces in time and has been asked for all but most of them.
func (d *decision) rescuer(s *Segment, pieces []int, most int) *peer {
	return quickest(d.peers, func(p *peer) bool {
		more := 0
		for _, n := range pieces {
			if !p.has(s.ID, n) {
				return false
			}
			if !d.asked(s, n, p.ID) {
				more++
			}
		}
		return p.Role == Seed && more <= most && d.inFlight+more <= d.in.Policy.PieceCap && p.Rate > 0 && !p.stalled && p.Slots >= more &&
			p.after(more) <= (s.DeadlineUs-d.in.NowUs)/4
	})
}

// asked says whether a piece is in flight with a peer.
func (d *decision) asked(s *Segment, piece int, from string) bool {
	return slices.ContainsFunc(d.requested(s, piece), func(r Request) bool { return r.Peer == from })
}

// race asks the quickest holder, viewer or seed, for what is not on its way if the origin may be late: deep in the urgent window in
// any case, else for a segment for which peers had no time before (rule 3). While the origin is within its time no peer is asked,
// because the data of peers would take part of the same line.
func (d *decision) race(s *Segment, turn, window int64) {
	due := max(s.AskedUs, turn) + min(s.OriginUs*3/2, s.DurationUs)
	if s.OriginUs >= 0 && d.waits(due+1) {
		return
	}
	deep := !d.waits(s.DeadlineUs - window/3 + 1)
	if !deep && (len(s.Have) > 0 || s.DeadlineUs-s.AskedUs >= window) {
		return
	}
	for _, n := range d.open(s) {
		if d.full() {
			return
		}
		if d.requested(s, n) != nil {
			continue
		}
		if p := quickest(d.peers, func(p *peer) bool { return p.has(s.ID, n) && !p.stalled && p.Slots > 0 }); p != nil {
			d.request(s, n, p, WhyRace)
		}
	}
}

// near is rules 4 and 5, for a segment whose origin does not run.
func (d *decision) near(s *Segment, until int64) {
	policy := &d.in.Policy
	if s.Origin == OriginIdle {
		d.waits(until + 1)
	}
	switch {
	case s.Certificate == CertHeld:
		d.nearCertified(s)
	case s.Certificate == CertRefused:
		d.origin(s, NoCert)
	case s.Certificate == CertAsked && slices.ContainsFunc(d.peers, func(p *peer) bool { return slices.Contains(s.CertPeers, p.ID) && p.offers(s) }):
		if !d.waits(max(s.CertAskedUs, s.AskedUs) + policy.CertPatienceUs) {
			d.origin(s, NoCert)
		} else if !d.waits(s.CertAskedUs + int64(len(s.CertPeers))*(policy.CertPatienceUs/4)) {
			d.askCertificate(s)
		}
	case d.askCertificate(s):
	case len(s.CertPeers) > 0 && len(d.peers) > 0:
		d.origin(s, NoCert)
	case d.in.SeedLinking && d.waits(s.AskedUs+policy.LinkPatienceUs), d.mayYet(s):
	default:
		d.origin(s, NoHolder)
	}
}

// mayYet says whether the error of an origin waits for a first link, or for what linked viewers may say. The request has left.
func (d *decision) mayYet(s *Segment) bool {
	switch {
	case s.Origin != OriginFailed:
		return false
	case len(d.peers) > 0:
		return len(d.viewers) > 0 && d.waits(s.AskedUs+d.in.Policy.PatienceUs)
	}
	return d.in.Linking && d.waits(s.AskedUs+d.in.Policy.LinkPatienceUs)
}

func (d *decision) nearCertified(s *Segment) {
	if !d.assign(s, WhyNear) {
		return
	}
	if len(d.interested(s)) == 0 && s.Origin != OriginFailed || !d.waits(s.AskedUs+d.in.Policy.PatienceUs) {
		d.origin(s, NoHolder)
	}
}

// interested are the viewers that hold a part of the segment.
func (d *decision) interested(s *Segment) []*peer {
	var out []*peer
	for _, p := range d.viewers {
		if p.partly(s.ID) {
			out = append(out, p)
		}
	}
	return out
}

// assign is rule 6. It says whether a piece stayed without any source.
func (d *decision) assign(s *Segment, why string) (stranded bool) {
	interested := d.interested(s)
	// What a viewer would send too late is not asked of it, nor what would take longer than the segment plays: the player asks for
	// one after the other. Without an origin to fall back on, late is better than never.
	left := min(s.turnUs(d.in.Policy.UrgentPermille), s.AskedUs+s.DurationUs) - d.in.NowUs
	if s.AskedUs < 0 || s.Origin == OriginFailed {
		left = math.MaxInt64
	}
	var fromSeeds []int
	for _, n := range d.order(s) {
		if d.requested(s, n) != nil {
			continue
		}
		holds := func(p *peer) bool { return !p.stalled && p.has(s.ID, n) }
		if best := quickest(d.viewers, func(p *peer) bool { return holds(p) && d.free(p) && p.eta() <= left }); best != nil {
			if !d.full() {
				d.request(s, n, best, why)
			}
			continue
		}
		if s.AskedUs < 0 {
			continue // what a seed sends is no offload, and a later viewer may hold it
		}
		seeded := slices.ContainsFunc(d.peers, func(p *peer) bool { return p.Role == Seed && holds(p) })
		// A viewer that holds it is only busy: its next free slot is worth waiting for. A seed may have a quicker line than that viewer,
		// for which others wait as well.
		most := d.in.Policy.MaxWaitUs
		if seeded {
			most = min(most, s.DurationUs/2)
		}
		if slices.ContainsFunc(d.viewers, holds) && d.waits(s.AskedUs+most) {
			continue
		}
		if !seeded {
			// A stalled holder may be asked again before that is over.
			until := s.AskedUs + d.in.Policy.MaxWaitUs
			held := slices.ContainsFunc(d.peers, func(p *peer) bool { return p.StalledUntilUs < until && p.has(s.ID, n) })
			if !held || !d.waits(until) {
				stranded = true
			}
			continue
		}
		if !d.leaves(s, n, interested) {
			fromSeeds = append(fromSeeds, n)
		}
	}
	d.assignToSeeds(s, fromSeeds, why)
	return stranded
}

// order lists the pieces that are not verified as they are assigned. The last is the shortest: as long as no viewer has sent
// anything it comes first, since it fits into the first flight of a path.
func (d *decision) order(s *Segment) []int {
	open, last := d.open(s), s.Pieces-1
	n := len(open) - 1
	fresh := !slices.ContainsFunc(d.viewers, func(p *peer) bool { return p.Rate > 0 })
	if fresh && n > 0 && open[n] == last && slices.ContainsFunc(d.viewers, func(p *peer) bool { return p.has(s.ID, last) }) {
		copy(open[1:], open[:n])
		open[0] = last
	}
	return open
}

// leaves says whether a piece is left to another viewer to fetch from a seed, for now: to any that has a quicker line, since others would
// wait for what a slow one passes on; then to its owner.
func (d *decision) leaves(s *Segment, piece int, interested []*peer) bool {
	from := max(s.AskedUs, s.CertHeldUs) + min(max(0, s.OriginUs), s.DurationUs/4)
	if len(d.viewers) > 0 && d.waits(from) {
		return true
	}
	var waiting []*peer
	for _, p := range interested {
		if !p.has(s.ID, piece) {
			waiting = append(waiting, p)
		}
	}
	first := owner(s.ID, piece, d.in.Self, waiting)
	if first == d.in.Self {
		return false
	}
	heard := d.byID[first].Heard[s.ID]
	policy := &d.in.Policy
	return d.waits(min(max(from, heard)+policy.PatienceUs, from+policy.MaxWaitUs))
}

// assignToSeeds goes in an order of one's own, so that two viewers that start together take different pieces from the seed. Ranks are
// hashes: none is made while no seed takes a piece, and one for each piece otherwise.
func (d *decision) assignToSeeds(s *Segment, pieces []int, why string) {
	if d.full() || !slices.ContainsFunc(d.peers, func(p *peer) bool { return p.Role == Seed && d.free(p) }) {
		return
	}
	if len(d.viewers) > 0 {
		ranks := make(map[int]uint32, len(pieces))
		for _, n := range pieces {
			ranks[n] = Rank(s.ID, n, d.in.Self)
		}
		slices.SortFunc(pieces, func(a, b int) int {
			return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(a, b))
		})
	}
	for _, n := range pieces {
		if d.full() {
			return
		}
		seed := quickest(d.peers, func(p *peer) bool { return p.Role == Seed && p.has(s.ID, n) && d.free(p) })
		if seed != nil {
			d.request(s, n, seed, why)
		}
	}
}
