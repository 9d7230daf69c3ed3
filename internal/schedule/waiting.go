package schedule

// worthShare: a segment is held until its turn for holders that together send this part of what it plays at.
const worthShare = 32

// waiting is how long requests of the player wait for peers (spec/schedule.md, "Waiting").
type waiting struct {
	in    *Input
	timer *timer
	peers *peers
}

// proven says whether a piece has been verified in this session.
func (w *waiting) proven() bool { return w.in.CreditUs < 0 }

// until is from when on a segment is not held: its turn; earlier, where a buffer is filled over a thin line, where nothing has
// been verified, or where its holders are not known to send enough, and the time for that runs out.
func (w *waiting) until(s *Segment, turn int64) int64 {
	switch {
	case w.filling(s):
		return min(turn, s.AskedUs-1)
	case !w.proven():
		return min(turn, w.in.NowUs+w.in.CreditUs-1)
	case w.worth(s):
		return turn
	}
	return min(turn, w.in.NowUs+w.in.SlowCreditUs-1)
}

// worth says whether the holders of a segment send enough together, by their rates, for it to be held until its turn.
func (w *waiting) worth(s *Segment) bool {
	sum := w.peers.rates(s)
	return sum > 0 && sum >= int64(s.Pieces)*pieceSize*1_000_000/worthShare/max(1, s.DurationUs)
}

// filling says whether a segment was asked for with little in hand, on a line that is thin for what is played, and its holders are
// not known to bring it clearly sooner than the origin. At a live stream there is nothing to fill a buffer with.
func (w *waiting) filling(s *Segment) bool {
	if w.in.Live || !s.thin(s.DeadlineUs-s.AskedUs) {
		return false
	}
	return !w.proven() || s.Certificate == CertHeld && w.peers.rates(s) < int64(s.Pieces)*pieceSize*1_250_000/max(1, s.OriginUs)
}

// holder says whether a segment that no peer offers waits for a link: to a seed, or, as the request has left and its origin has
// failed, to any first peer and for what linked viewers may say.
func (w *waiting) holder(s *Segment) bool {
	policy := &w.in.Policy
	switch {
	case w.in.SeedLinking && w.timer.waits(s.AskedUs+policy.LinkPatienceUs):
		return true
	case s.Origin != OriginFailed:
		return false
	case len(w.peers.all) > 0:
		return len(w.peers.viewers) > 0 && w.timer.waits(s.AskedUs+policy.PatienceUs)
	}
	return w.in.Linking && w.timer.waits(s.AskedUs+policy.LinkPatienceUs)
}
