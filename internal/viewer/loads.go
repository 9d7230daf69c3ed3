package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
)

// bridge is how many pieces that are not left are taken along between two that are: asking twice takes longer.
const bridge = 4

// originFetch is one fetch from the origin on its way: of the whole, or of pieces from to until alone.
type originFetch struct {
	cancel      func()
	seen        *looks
	part        bool
	from, until int
}

// wake has the schedule asked again after some µs.
func (e *engine) wake(us int64) {
	d := min(max(time.Duration(us)*time.Microsecond, time.Millisecond), longestSleep)
	e.timer = e.loop.After(d, func() {
		e.timer = nil
		e.changed()
	})
}

// load begins what the player asks for. done comes once, later, unless it is aborted.
func (e *engine) load(r request, done func(*Result, error)) *load {
	l := &load{request: r, done: done, started: e.loop.Now()}
	e.zeroUs = e.nowUs() + (r.deadline() - r.Start).Microseconds()
	s, err := e.segments.resolve(r.Reference, r.bitrate)
	if err != nil || e.stopped {
		// Not one of the site's segments, or nobody to share with any more: plain HTTP.
		if err != nil {
			s = newSeg(r.Reference, r.bitrate)
		}
		l.seg = s
		s.loads = append(s.loads, l)
		e.startOrigin(s, schedule.ByPolicy)
		return l
	}
	if !s.wanted() {
		s.askedUs = e.nowUs()
	}
	l.seg = s
	s.loads = append(s.loads, l)
	e.finish(s)
	if s.wanted() && e.stale(s, r) {
		e.startOrigin(s, schedule.ByPolicy)
	}
	e.look(r)
	e.changed()
	return l
}

// look notes the segments that come next, and forgets what nothing needs any more.
func (e *engine) look(r request) {
	var coming []*seg
	for _, ref := range r.upcoming {
		if s, err := e.segments.resolve(ref, r.bitrate); err == nil {
			coming = append(coming, s)
		}
	}
	e.ahead.coming[r.track], e.ahead.adaptive = coming, r.adaptive
	var uncertified []*seg
	for _, s := range e.segments.all() {
		if s.uncertified != nil {
			uncertified = append(uncertified, s)
		}
	}
	for _, s := range uncertified[:max(0, len(uncertified)-mostUncertified)] {
		s.uncertified = nil
	}
	next := e.next()
	e.segments.prune(func(s *seg) bool {
		return s.wanted() || slices.Contains(next, s) || e.store.get(s.id) != nil || s.disputed != nil
	})
}

// stale says whether the estimate is so old that a segment which can wait should come from the origin: once in a while
// only, for peers that send all the time leave no transfer the line to itself.
func (e *engine) stale(s *seg, r request) bool {
	if !e.dated(r.adaptive) || e.store.get(s.id).complete() {
		return false
	}
	for _, other := range e.segments.all() {
		if other.origin == schedule.OriginRunning {
			return false
		}
	}
	v := e.view(s)
	if v.DeadlineUs-e.nowUs() < v.UrgentWindow(e.cfg.Policy.UrgentPermille) {
		return false
	}
	e.looked = e.loop.Now()
	return true
}

// dated says whether the estimate is too old to choose renditions by.
func (e *engine) dated(adaptive bool) bool {
	last := e.line.at
	if e.looked.After(last) {
		last = e.looked
	}
	return adaptive && e.off == "" && (last.IsZero() || e.loop.Now().Sub(last) >= capacityFresh)
}

// abort takes a load back.
func (e *engine) abort(l *load) {
	if l.over {
		return
	}
	l.over = true
	s := l.seg
	if at := slices.Index(s.loads, l); at >= 0 {
		s.loads = slices.Delete(s.loads, at, at+1)
	}
	if s.wanted() {
		return
	}
	e.stopOrigin(s)
	s.origin = schedule.OriginIdle
	if s.id != "" {
		e.cancelDownloads(s)
		e.announce(s.id)
	}
	e.changed()
}

// finish hands the pieces to the player, if they are all there and of one certificate.
func (e *engine) finish(s *seg) {
	held := e.store.get(s.id)
	if !held.complete() || !s.wanted() {
		return
	}
	e.stopOrigin(s)
	bytes := map[Source]int64{}
	for n, p := range held.pieces {
		from, ok := s.sources[n]
		if !ok {
			from = FromPeer
		}
		bytes[from] += int64(len(p))
	}
	e.settle(s, held.pieces, bytes)
	e.cancelDownloads(s)
}

func (e *engine) settle(s *seg, pieces [][]byte, bytes map[Source]int64) {
	result := Result{Reference: s.ref, Pieces: pieces, Source: FromPeer, Bytes: bytes}
	origin, seed, peers := bytes[FromOrigin], bytes[FromSeed], bytes[FromPeer]
	switch {
	case origin > 0:
		result.Reason = s.originReason
	case seed > 0:
		if result.Reason = s.pieceReason; result.Reason == "" {
			result.Reason = schedule.NoHolder
		}
	}
	switch {
	case origin > seed+peers:
		result.Source = FromOrigin
	case seed > peers:
		result.Source = FromSeed
	}
	if origin == 0 {
		e.line.byPeers(seed+peers, e.loop.Now().Sub(s.loads[0].started))
	}
	e.played(s)
	loads := s.loads
	s.loads = nil
	for _, l := range loads {
		e.ledger.segment(result.Source, result.Reason)
		own := result
		own.Rendition, own.Took = l.request.rendition, e.loop.Now().Sub(l.started)
		e.answerLoad(l, &own, nil)
	}
}

// answerLoad tells the player in a turn of its own: what it does then must not happen in the midst of this.
func (e *engine) answerLoad(l *load, r *Result, err error) {
	e.loop.Post(func() {
		if !l.over {
			l.over = true
			l.done(r, err)
		}
	})
}

func (e *engine) stopOrigin(s *seg) {
	if s.origin != schedule.OriginRunning {
		return
	}
	f := s.fetch
	s.fetch, s.origin = nil, schedule.OriginIdle
	f.cancel()
	e.ledger.wasted(int(f.seen.loaded()))
}

func (e *engine) startOrigin(s *seg, reason schedule.Reason) {
	if !s.wanted() || s.origin == schedule.OriginRunning {
		return
	}
	f := e.stretch(s)
	what := s.ref.fetch()
	if f.part {
		what = s.part(f.from, f.until)
		for n := f.from; n < f.until; n++ {
			e.outdone(s, n)
		}
	}
	s.fetch, s.origin, s.originReason = f, schedule.OriginRunning, reason
	f.cancel, f.seen = e.line.fetch(what, f.part, func(got Fetched, err error) {
		s.fetch = nil
		switch {
		case f.part:
			e.partCame(s, f, got, err)
		case err != nil:
			e.originFailed(s, err)
		default:
			e.originCame(s, got)
		}
		e.changed()
	})
}

// stretch is what the origin is asked for: where pieces are in hand, those that are neither in hand nor on their way, or
// that are on their way where there are no others; up to the first gap.
func (e *engine) stretch(s *seg) *originFetch {
	held := e.store.get(s.id)
	if s.cert == nil || held == nil || held.count == 0 || held.complete() || e.line.wholes || e.off != "" || e.stopped {
		return &originFetch{}
	}
	flying := map[int]bool{}
	for _, r := range e.peersInOrder() {
		for _, o := range r.download.Orders() {
			if o.Target == s.target && held.pieces[o.Piece] == nil {
				flying[o.Piece] = true
			}
		}
	}
	all := held.count+len(flying) == len(held.pieces)
	var left []int
	for n, p := range held.pieces {
		if p == nil && (all || !flying[n]) {
			left = append(left, n)
		}
	}
	f := &originFetch{part: true, from: left[0], until: left[0] + 1}
	for _, n := range left {
		if n <= f.until+bridge {
			f.until = n + 1
		}
	}
	return f
}

// partCame takes the stretch that was asked for. What does not fit the certificate, or is not to be kept beside what peers sent,
// is asked for again, as the whole: that will show whose fault it is.
func (e *engine) partCame(s *seg, f *originFetch, got Fetched, err error) {
	data := got.Data
	s.origin = schedule.OriginIdle
	if s.cert == nil || e.off != "" || e.stopped {
		e.startOrigin(s, s.originReason)
		return
	}
	fits := err == nil && !got.Unshared
	for n := f.from; fits && n < f.until; n++ {
		fits = len(data) > (n-f.from)*segment.PieceSize && s.cert.CheckPiece(n, pieceOf(data, n-f.from))
	}
	if !fits {
		e.ledger.wasted(len(data))
		e.line.wholes = true
		e.startOrigin(s, s.originReason)
		return
	}
	e.ledger.played(len(data))
	for n := f.from; n < f.until; n++ {
		e.accepted(s, n, pieceOf(data, n-f.from), nil, "")
	}
}

func (e *engine) originFailed(s *seg, err error) {
	s.origin, s.originErr = schedule.OriginFailed, err
	e.line.wholes = false // that it sends nothing is not about parts
	if s.id == "" || e.stopped {
		e.giveUp(s)
	}
}

func (e *engine) originCame(s *seg, got Fetched) {
	s.origin = schedule.OriginIdle
	size := len(got.Data)
	if s.id != "" && e.credit.proven { // else what comes yet shows whether peers are worth waiting for
		e.outdone(s, -1)
	}
	e.ledger.played(size)
	e.lose(s.id) // it came again, as a whole
	e.settle(s, [][]byte{got.Data}, map[Source]int64{FromOrigin: int64(size)})
	if s.id != "" && s.disputed == nil && !got.Unshared && e.off == "" && !e.stopped {
		e.holdOrigin(s, got.Data)
	}
}

// giveUp hands the origin's error to the player: nobody else can help. Who had no certificate may have one when the player
// tries again.
func (e *engine) giveUp(s *seg) {
	loads := s.loads
	s.loads, s.origin = nil, schedule.OriginIdle
	if s.cert == nil && s.state != schedule.CertRefused {
		s.state, s.certPeers, s.certAsked = schedule.CertNone, nil, -1
	}
	for _, l := range loads {
		e.answerLoad(l, nil, s.originErr)
	}
	if s.id != "" {
		e.cancelDownloads(s)
	}
}
