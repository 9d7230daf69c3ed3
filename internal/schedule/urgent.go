package schedule

import "slices"

// mostProving is of how many peers pieces are outstanding while none has been verified and the origin serves.
const mostProving = 4

// urgent is what peers are asked for of a segment whose turn has come (rule 3).
type urgent struct {
	in       *Input
	timer    *timer
	peers    *peers
	requests *requests
}

// window is the segment's urgent window in µs.
func (u *urgent) window(s *Segment) int64 { return s.UrgentWindow(u.in.Policy.UrgentPermille) }

// slack is the time in µs until the playhead is at the segment.
func (u *urgent) slack(s *Segment) int64 { return s.DeadlineUs - u.in.NowUs }

// deep says whether no more than a third of the segment's urgent window is left.
func (u *urgent) deep(s *Segment) bool { return u.slack(s) < u.window(s)/3 }

// ask asks one holder for each of the pieces that is not on its way, until done.
func (u *urgent) ask(s *Segment, pieces []int, done func() bool, ok func(*peer) bool) {
	for _, n := range pieces {
		if u.requests.full() || done() {
			return
		}
		if u.requests.of(s, n) != nil {
			continue
		}
		if p := quickest(u.peers.all, func(p *peer) bool { return p.has(s.ID, n) && ok(p) }); p != nil {
			u.requests.send(s, n, p, WhyRace)
		}
	}
}

// prove asks a few holders for a piece each, beside the origin: with one verified, what comes next may wait for peers.
func (u *urgent) prove(s *Segment) {
	pieces := s.open()
	slices.Reverse(pieces)
	enough := func() bool {
		busy := 0
		for _, p := range u.peers.all {
			if p.Queued > 0 {
				busy++
			}
		}
		return busy >= mostProving
	}
	u.ask(s, pieces, enough, func(p *peer) bool { return p.Queued == 0 && u.peers.usable(p, s) })
}

// rescue asks a seed for all that is not in hand, if it would bring that in a quarter of the time left: the origin would send the whole
// segment again for the sake of a few pieces. It says whether the origin can wait.
func (u *urgent) rescue(s *Segment) bool {
	half := u.window(s) / 2
	if u.slack(s) < half {
		return false
	}
	open := s.open()
	// The seed that was asked already, lest two seeds take turns.
	best := u.rescuer(s, open, 0)
	if best == nil {
		best = u.rescuer(s, open, len(open))
	}
	if best == nil {
		return false
	}
	for _, n := range open {
		if u.requests.asked(s, n, best.ID) {
			continue
		}
		for _, r := range u.requests.of(s, n) {
			u.requests.cancel(r, WhyLate)
		}
		u.requests.send(s, n, best, WhyRace)
	}
	u.timer.waits(s.DeadlineUs - half + 1)
	return true
}

// rescuer is the quickest seed that would bring the pieces in time and has been asked for all but most of them.
func (u *urgent) rescuer(s *Segment, pieces []int, most int) *peer {
	return quickest(u.peers.all, func(p *peer) bool {
		more := 0
		for _, n := range pieces {
			if !p.has(s.ID, n) {
				return false
			}
			if !u.requests.asked(s, n, p.ID) {
				more++
			}
		}
		return p.Role == Seed && more <= most && u.requests.count+more <= u.requests.most && p.Rate > 0 && !p.stalled && p.Slots >= more &&
			p.after(more) <= u.slack(s)/4
	})
}

// race asks the quickest holder, viewer or seed, for what is not on its way if the origin may be late: deep in the urgent window in
// any case, else for a segment for which peers had no time before. While the origin is within its time no peer is asked, because the
// data of peers would take part of the same line.
func (u *urgent) race(s *Segment, turn int64) {
	due := max(s.AskedUs, turn) + min(s.OriginUs*3/2, s.DurationUs)
	if s.OriginUs >= 0 && u.timer.waits(due+1) {
		return
	}
	window := u.window(s)
	deep := !u.timer.waits(s.DeadlineUs - window/3 + 1)
	if !deep && (len(s.Have) > 0 || s.DeadlineUs-s.AskedUs >= window) {
		return
	}
	never := func() bool { return false }
	u.ask(s, s.open(), never, func(p *peer) bool { return !p.stalled && p.Slots > 0 })
}
