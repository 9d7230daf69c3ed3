package viewer

import (
	"cmp"
	"slices"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
)

// bridge is how many pieces that are not left are taken along between two that are: asking twice takes longer.
const bridge = 4

// loads is what the player asked for: results, and the origin's part in them.
type loads struct {
	*shared
	credit     *credit
	fromOrigin func(s *seg, data []byte)        // all of it came
	accepted   func(s *seg, n int, data []byte) // a piece of it, which fits the certificate
	played     func(s *seg)                     // what came of it ahead is the player's
	lost       func(id string)                  // it came again
	released   func(id string)                  // no request waits for it any more
	streams    *streams                         // of which the player asks for parts
}

// originFetch is one fetch from the origin on its way: of the whole, or of pieces from to until alone.
type originFetch struct {
	cancel      func()
	seen        *looks
	part        bool
	from, until int
}

// ask joins a load to its segment.
func (ls *loads) ask(s *seg, l *load) {
	if !s.wanted() {
		s.askedUs = ls.nowUs()
	}
	l.seg = s
	s.loads = append(s.loads, l)
	ls.finish(s)
}

// release takes a load back.
func (ls *loads) release(l *load) {
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
	ls.stopOrigin(s)
	s.origin = schedule.OriginIdle
	if s.id != "" {
		ls.peers.cancel(s)
		ls.released(s.id)
	}
	ls.changed()
}

// finish hands the pieces to the player, if they are all there and of one certificate.
func (ls *loads) finish(s *seg) {
	held := ls.store.get(s.id)
	if !held.complete() || !s.wanted() {
		return
	}
	ls.stopOrigin(s)
	bytes := map[Source]int64{}
	for n, p := range held.pieces {
		from, ok := s.sources[n]
		if !ok {
			from = FromPeer
		}
		bytes[from] += int64(len(p))
	}
	ls.settle(s, held.pieces, bytes)
	ls.peers.cancel(s)
}

func (ls *loads) settle(s *seg, pieces [][]byte, bytes map[Source]int64) {
	result := Result{Reference: s.ref, Pieces: pieces, Source: sourceOf(bytes), Bytes: bytes}
	switch {
	case bytes[FromOrigin] > 0:
		result.Reason = s.originReason
	case bytes[FromSeed] > 0:
		result.Reason = cmp.Or(s.pieceReason, schedule.NoHolder)
	}
	if bytes[FromOrigin] == 0 {
		ls.line.byPeers(bytes[FromSeed]+bytes[FromPeer], ls.loop.Now().Sub(s.loads[0].started))
	}
	ls.played(s)
	loads := s.loads
	s.loads = nil
	for _, l := range loads {
		ls.ledger.segment(result.Source, result.Reason)
		own := result
		own.Rendition, own.Took = l.request.rendition, ls.loop.Now().Sub(l.started)
		ls.hand(l, &own, nil)
	}
}

// hand tells the player in a turn of its own: what it does then must not happen in the midst of this.
func (ls *loads) hand(l *load, r *Result, err error) {
	ls.loop.Post(func() {
		if !l.over {
			l.over = true
			l.done(r, err)
		}
	})
}

func (ls *loads) stopOrigin(s *seg) {
	if s.origin != schedule.OriginRunning {
		return
	}
	f := s.fetch
	s.fetch, s.origin = nil, schedule.OriginIdle
	f.cancel()
	ls.ledger.wasted(int(f.seen.loaded()))
}

func (ls *loads) startOrigin(s *seg, reason schedule.Reason) {
	if !s.wanted() || s.origin == schedule.OriginRunning {
		return
	}
	f := ls.stretch(s)
	what := s.ref.fetch()
	if what.Growing = s.loads[0].request.fetch().Growing; f.part {
		what = s.part(f.from, f.until)
		for n := f.from; n < f.until; n++ {
			ls.peers.outdone(s, n)
		}
	}
	s.fetch, s.origin, s.originReason = f, schedule.OriginRunning, reason
	f.cancel, f.seen = ls.line.fetch(what, f.part, func(got Fetched, err error) {
		s.fetch = nil
		switch {
		case f.part:
			ls.partCame(s, f, got, err)
		case err != nil:
			ls.originFailed(s, err)
		default:
			ls.originCame(s, got)
		}
		ls.changed()
	})
}

// stretch is what the origin is asked for: where pieces are in hand, those that are neither in hand nor on their way, or
// that are on their way where there are no others; up to the first gap.
func (ls *loads) stretch(s *seg) *originFetch {
	held := ls.store.get(s.id)
	if s.cert == nil || held == nil || held.count == 0 || held.complete() || ls.line.wholes || !ls.sharing() {
		return &originFetch{}
	}
	flying := ls.peers.flying(s, held)
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
func (ls *loads) partCame(s *seg, f *originFetch, got Fetched, err error) {
	data := got.Data
	s.origin = schedule.OriginIdle
	if s.cert == nil || !ls.sharing() {
		ls.startOrigin(s, s.originReason)
		return
	}
	fits := err == nil && !got.Unshared
	for n := f.from; fits && n < f.until; n++ {
		fits = len(data) > (n-f.from)*segment.PieceSize && s.cert.CheckPiece(n, pieceOf(data, n-f.from))
	}
	if !fits {
		ls.ledger.wasted(len(data))
		ls.line.wholes = true
		ls.startOrigin(s, s.originReason)
		return
	}
	ls.ledger.played(len(data))
	for n := f.from; n < f.until; n++ {
		ls.accepted(s, n, pieceOf(data, n-f.from))
	}
}

func (ls *loads) originFailed(s *seg, err error) {
	s.origin, s.originErr = schedule.OriginFailed, err
	ls.line.wholes = false // that it sends nothing is not about parts
	if s.id == "" || ls.stopped {
		ls.giveUp(s)
	}
}

func (ls *loads) originCame(s *seg, got Fetched) {
	s.origin = schedule.OriginIdle
	size := len(got.Data)
	if s.id != "" && ls.credit.proven { // else what comes yet shows whether peers are worth waiting for
		ls.peers.outdone(s, -1)
	}
	ls.ledger.played(size)
	ls.lost(s.id) // it came again, as a whole
	ls.settle(s, [][]byte{got.Data}, map[Source]int64{FromOrigin: int64(size)})
	if s.id != "" && s.disputed == nil && !got.Unshared && ls.sharing() {
		ls.fromOrigin(s, got.Data)
	}
}

// giveUp hands the origin's error to the player: no other source can help. A peer that had no certificate may have one when the player
// tries again.
func (ls *loads) giveUp(s *seg) {
	loads := s.loads
	s.loads, s.origin = nil, schedule.OriginIdle
	if s.cert == nil && s.state != schedule.CertRefused {
		s.reset(schedule.CertNone)
	}
	for _, l := range loads {
		ls.hand(l, nil, s.originErr)
	}
	if s.id != "" {
		ls.peers.cancel(s)
	}
}
