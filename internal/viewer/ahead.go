package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	mostBehind  = 64 // requests of the background at a time
	quietBehind = 30 * time.Second
)

// lookAhead is what is fetched before the player asks for it (spec/schedule.md, "Prefetch").
type lookAhead struct {
	*shared
	rules     func() schedule.Ahead // as the site and the viewer's device have it; nil: nothing is fetched ahead
	playhead  func() (position, buffered time.Duration)
	dated     func(adaptive bool, bitrate int64) bool
	requester *background.Requester

	running  bool
	allowed  bool            // the last look could have fetched something ahead
	list     []*seg          // what the schedule may fetch ahead now
	kept     map[string]*seg // with pieces that came ahead
	again    time.Duration   // when the receiver's controller may allow another request
	timer    func()          // has the schedule asked again then
	coming   map[int][]*seg  // behind the last asked one, by track
	adaptive bool            // the player chooses among renditions itself
	live     bool            // more may follow than is listed
}

// next are the segments behind what the player has asked for last, in playback order.
func (a *lookAhead) next() []*seg {
	var all []*seg
	for _, list := range a.coming {
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
func (a *lookAhead) near(s *seg) bool {
	for _, list := range a.coming {
		if slices.Contains(list[:min(lookahead, len(list))], s) {
			return true
		}
	}
	return false
}

// listed says whether the schedule hears of a segment that the player does not wait for.
func (a *lookAhead) listed(s *seg) bool {
	return slices.Contains(a.list, s) || a.near(s) && (!a.running || s.state != schedule.CertHeld)
}

// look decides how far ahead is fetched, and takes back and counts what is not to be fetched or played any more.
func (a *lookAhead) look() {
	var in schedule.Ahead
	if a.rules != nil {
		in = a.rules()
	}
	in.Off, in.Live = a.off != "", a.live
	was := a.allowed
	if a.allowed = in.Possible(); !a.allowed && !was && len(a.kept) == 0 {
		return // nothing is asked for ahead, nor kept: most sites, and every decision
	}
	position, buffered := a.playhead()
	in.BufferedUs = buffered.Microseconds()
	in.Received, in.Wasted = a.ledger.came(), a.ledger.total.PrefetchWasted
	next := a.next()
	for _, s := range next {
		in.Segments = append(in.Segments, schedule.AheadSegment{DurationUs: s.ref.Duration.Microseconds(), Bytes: a.costs(s)})
	}
	n := schedule.Prefetch(in)
	a.running, a.list = n > 0, a.list[:0]
	lacking, left := 0, len(next) > 0 && a.dated(a.adaptive, next[0].bitrate)
	for _, s := range next[:n] {
		held := a.store.get(s.id)
		if left && (held == nil || held.count == 0) {
			left = false // for the player to ask for, and to measure the line by
			continue
		}
		if lacking < mostBehind && (held != nil && held.count > 0 || a.near(s) || a.peers.announced(s)) {
			a.list = append(a.list, s)
			if s.cert != nil && !held.complete() {
				lacking += segment.Pieces(s.cert.Length) - len(held.held())
			}
		}
	}
	if !a.allowed {
		next = nil
	}
	a.takeBack(next)
	for _, s := range a.kept {
		if !s.wanted() && s.ref.Start+s.ref.Duration <= position {
			a.lose(s.id)
		}
	}
}

// costs is what would be lost of a segment that is fetched ahead, in bytes.
func (a *lookAhead) costs(s *seg) int64 {
	if s.cert == nil {
		return int64(sizeGuess(s.bitrate, s.ref))
	}
	left := s.cert.Length
	for n, p := range a.store.get(s.id).all() {
		if p != nil && s.ahead[n] == 0 {
			left -= int64(len(p))
		}
	}
	return left
}

// takeBack cancels what is asked for in the background and no longer behind the asked segment, or of a peer that sends
// nothing.
func (a *lookAhead) takeBack(next []*seg) {
	now := a.loop.Now()
	for _, r := range a.peers.inOrder() {
		if r.acking.Link == nil {
			continue
		}
		last := r.download.LastBehind()
		gone := r.download.Cancel(func(o transfer.Order) bool {
			s := a.segments.byID[o.Target.Segment.String()]
			since := o.Sent
			if last.After(since) {
				since = last
			}
			quiet := now.Sub(since) > quietBehind
			if o.Lane == peer.Background && quiet { // another holder is asked, if there is one
				r.patience.behindUs = max(r.patience.behindUs, a.nowUs()+quietBehind.Microseconds())
			}
			return o.Lane == peer.Background && (s == nil || !s.wanted() && !slices.Contains(next, s) || quiet)
		})
		for _, o := range gone {
			a.ledger.lost(o.Received())
		}
		a.ledger.lost(r.download.LateBehind())
	}
}

// mayAsk says whether another piece may be asked for in the background.
func (a *lookAhead) mayAsk(outstanding int) bool {
	if outstanding >= mostBehind {
		return false
	}
	ok, again := a.requester.May(segment.PieceSize)
	if !ok {
		a.again = min(a.again, again)
	}
	return ok
}

// ask makes the requests of the background that the controller allows; the others come again with another decision.
func (a *lookAhead) ask(actions []schedule.Action) {
	if a.timer != nil {
		a.timer()
		a.timer = nil
	}
	outstanding := -1
	a.again = longestSleep
	for _, act := range actions {
		s, r := a.segments.byID[act.Segment], a.peers.byID[act.Peer]
		if act.Type != schedule.DoRequest || act.Lane != schedule.Background || s.target == nil {
			continue
		}
		if outstanding < 0 {
			outstanding = a.peers.behind()
		}
		if !a.mayAsk(outstanding) {
			continue
		}
		if a.store.get(s.id) == nil {
			a.store.open(s.id, s.cert.Length)
		}
		r.download.Request(s.target, peer.Background, act.Why, act.Piece)
		outstanding++
	}
	if a.again < longestSleep {
		a.timer = a.loop.After(max(a.again, time.Millisecond), func() {
			a.timer = nil
			a.changed()
		})
	}
}

// came notes a piece that came in the background.
func (a *lookAhead) came(s *seg, n, size int) {
	a.ledger.prefetched(size)
	if s.wanted() {
		return
	}
	if s.ahead == nil {
		s.ahead = map[int]int{}
	}
	s.ahead[n] = size
	a.kept[s.id] = s
}

// lose counts what came ahead of a segment and is not going to be played.
func (a *lookAhead) lose(id string) {
	s := a.kept[id]
	if s == nil {
		return
	}
	for _, size := range s.ahead {
		a.ledger.lost(size)
		a.ledger.wasted(size)
	}
	a.played(s)
}

// played notes that what came ahead of a segment is the player's now, or lost.
func (a *lookAhead) played(s *seg) {
	s.ahead = nil
	delete(a.kept, s.id)
}

// possible says whether anything may be asked for before the player does.
func (a *lookAhead) possible() bool { return a.rules != nil && a.rules().Possible() }

// stop ends its timer.
func (a *lookAhead) stop() {
	if a.timer != nil {
		a.timer()
	}
}

// asked notes that the player asked for a segment, and what follows it.
func (a *lookAhead) asked(r request, coming []*seg) {
	a.coming[r.track], a.adaptive, a.live = coming, r.adaptive, r.live
}

// loseAll counts what is still ahead when the viewer leaves.
func (a *lookAhead) loseAll() {
	for id := range a.kept {
		a.lose(id)
	}
	a.takeBack(nil)
}
