package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	mostBehind  = 64 // requests of the background at a time
	quietBehind = 30 * time.Second
)

// ahead is what is fetched before the player asks for it (spec/schedule.md, "Prefetch").
type ahead struct {
	running  bool
	allowed  bool            // the last look could have fetched something ahead
	list     []*seg          // what the schedule may fetch ahead now
	kept     map[string]*seg // with pieces that came ahead
	again    time.Duration   // when the receiver's law may allow another request
	timer    func()          // has the schedule asked again then
	coming   map[int][]*seg  // behind the last asked one, by track
	adaptive bool            // who asked for that chooses among renditions itself
}

// next are the segments behind what the player has asked for last, in playback order.
func (e *engine) next() []*seg {
	var all []*seg
	for _, list := range e.ahead.coming {
		for _, s := range list {
			if !s.wanted() && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	inOrder(all)
	return all
}

// near says whether a segment is one of the few whose certificates are asked for ahead.
func (e *engine) near(s *seg) bool {
	for _, list := range e.ahead.coming {
		if slices.Contains(list[:min(lookahead, len(list))], s) {
			return true
		}
	}
	return false
}

// listed says whether the schedule hears of a segment that nobody waits for.
func (e *engine) listed(s *seg) bool {
	return slices.Contains(e.ahead.list, s) || e.near(s) && (!e.ahead.running || s.state != schedule.CertHeld)
}

// lookAhead decides how far ahead is fetched, and takes back and counts what is not to be fetched or played any more.
func (e *engine) lookAhead() {
	a := &e.ahead
	var in schedule.Ahead
	if e.cfg.Prefetch != nil {
		in = e.cfg.Prefetch()
	}
	in.Off = e.off != ""
	was := a.allowed
	if a.allowed = in.Possible(); !a.allowed && !was && len(a.kept) == 0 {
		return // nothing is asked for ahead, nor kept: most sites, and every decision
	}
	position, buffered := e.cfg.Playhead()
	in.Running, in.BufferedUs = a.running, buffered.Microseconds()
	in.Received, in.Wasted = e.ledger.came(), e.ledger.total.PrefetchWasted
	next := e.next()
	for _, s := range next {
		in.Segments = append(in.Segments, schedule.AheadSegment{DurationUs: s.ref.Duration.Microseconds(), Bytes: e.costs(s)})
	}
	n := schedule.Prefetch(in)
	a.running, a.list = n > 0, a.list[:0]
	lacking, left := 0, e.dated(a.adaptive)
	for _, s := range next[:n] {
		held := e.store.get(s.id)
		if left && (held == nil || held.count == 0) {
			left = false // for the player to ask for, and to measure the line by
			continue
		}
		if lacking < mostBehind && (held != nil && held.count > 0 || e.near(s) || e.announced(s)) {
			a.list = append(a.list, s)
			if s.cert != nil && !held.complete() {
				lacking += segment.Pieces(s.cert.Length) - len(held.held())
			}
		}
	}
	if !a.allowed {
		next = nil
	}
	e.takeBack(next)
	for _, s := range a.kept {
		if !s.wanted() && s.ref.Start+s.ref.Duration <= position {
			e.lose(s.id)
		}
	}
}

// announced says whether a linked viewer has said that it holds something of a segment.
func (e *engine) announced(s *seg) bool {
	for _, r := range e.peers {
		if r.ready && !r.noUpload && r.role == schedule.Viewer {
			if _, ok := r.holdings.holds[s.id]; ok {
				return true
			}
		}
	}
	return false
}

// costs is what would be lost of a segment that is fetched ahead, in bytes.
func (e *engine) costs(s *seg) int64 {
	if s.cert == nil {
		return int64(sizeGuess(s.bitrate, s.ref))
	}
	left := s.cert.Length
	for n, p := range e.store.get(s.id).all() {
		if p != nil && s.ahead[n] == 0 {
			left -= int64(len(p))
		}
	}
	return left
}

// takeBack cancels what is asked for in the background and no longer behind the asked segment, or of a peer that sends
// nothing.
func (e *engine) takeBack(next []*seg) {
	now := e.loop.Now()
	for _, r := range e.peersInOrder() {
		if r.wire == nil {
			continue
		}
		last := r.download.LastBehind()
		gone := r.download.Cancel(func(o transfer.Order) bool {
			s := e.segments.byID[segment.ID(o.Target.Segment).String()]
			since := o.Sent
			if last.After(since) {
				since = last
			}
			return o.Lane == peer.Background && (s == nil || !s.wanted() && !slices.Contains(next, s) || now.Sub(since) > quietBehind)
		})
		for _, o := range gone {
			e.ledger.lost(o.Received)
		}
		e.ledger.lost(r.download.LateBehind())
	}
}

// behind is how many requests of the background are outstanding.
func (e *engine) behind() (n int) {
	for _, r := range e.peers {
		for _, o := range r.download.Orders() {
			if o.Lane == peer.Background && !o.Checking {
				n++
			}
		}
	}
	return n
}

// mayAsk says whether another piece may be asked of a peer in the background.
func (e *engine) mayAsk(r *remote, outstanding int) bool {
	if !r.acks || r.behindUs > e.nowUs() || outstanding >= mostBehind {
		return false
	}
	ok, again := e.requester.May(segment.PieceSize)
	if !ok {
		e.ahead.again = min(e.ahead.again, again)
	}
	return ok
}

// askBehind makes the requests of the background that the law allows; the others come again with another decision.
func (e *engine) askBehind(actions []schedule.Action) {
	a := &e.ahead
	if a.timer != nil {
		a.timer()
		a.timer = nil
	}
	outstanding := -1
	a.again = longestSleep
	for _, act := range actions {
		s, r := e.segments.byID[act.Segment], e.peers[act.Peer]
		if act.Type != schedule.DoRequest || act.Lane != schedule.Background || s.target == nil {
			continue
		}
		if outstanding < 0 {
			outstanding = e.behind()
		}
		if !e.mayAsk(r, outstanding) {
			continue
		}
		if e.store.get(s.id) == nil {
			e.store.open(s.id, s.cert.Length)
		}
		r.download.Request(s.target, peer.Background, act.Why, act.Piece)
		outstanding++
	}
	if a.again < longestSleep {
		a.timer = e.loop.After(max(a.again, time.Millisecond), func() {
			a.timer = nil
			e.changed()
		})
	}
}

// cameAhead notes a piece that came in the background.
func (e *engine) cameAhead(s *seg, n, size int) {
	e.ledger.prefetched(size)
	if s.wanted() {
		return
	}
	if s.ahead == nil {
		s.ahead = map[int]int{}
	}
	s.ahead[n] = size
	e.ahead.kept[s.id] = s
}

// lose counts what came ahead of a segment and is not going to be played.
func (e *engine) lose(id string) {
	s := e.ahead.kept[id]
	if s == nil {
		return
	}
	for _, size := range s.ahead {
		e.ledger.lost(size)
		e.ledger.wasted(size)
	}
	e.played(s)
}

// played notes that what came ahead of a segment is the player's now, or nobody's.
func (e *engine) played(s *seg) {
	s.ahead = nil
	delete(e.ahead.kept, s.id)
}

// loseAll counts what is still ahead when the viewer leaves.
func (e *engine) loseAll() {
	for id := range e.ahead.kept {
		e.lose(id)
	}
	e.takeBack(nil)
}
