package seed

import (
	"time"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

const (
	// chunksOfSegment is how many chunks a segment is taken to have where that is not known (spec/parts.md, "Chunks").
	chunksOfSegment = 4
	// endTurn is the number, among those of its chunks, under which a segment is told once it is complete.
	endTurn = 255
	// longRest is how many segments are not read after one that was too long: viewers would have most of each twice.
	longRest = 32
	// opensAhead is how long before the first chunk viewers are told that some come. They leave a peer alone that sends none for mesh.Trial.
	opensAhead = mesh.Trial / 3 * time.Microsecond
)

// chunks is a stream of chunks that is followed (spec/parts.md, "Chunks"): each segment is read from when it can be asked for.
type chunks struct {
	*openStream
	part     time.Duration // how long a chunk is taken to play
	after    time.Time     // what could be asked for by then has had its turn
	sequence int64         // of the last segment that has had its turn
	any      bool          // one has
	last     *growing      // that was begun; nil: none was
	skipped  int           // segments that are still not read
}

// follow follows the stream until no viewer does. It begins with the first segment that can be asked for from now on: of the one before, the
// chunks that were there when it began would be told late.
func (c *chunks) follow() {
	defer c.leave()
	defer c.cancel()
	ticks := time.NewTicker(decideEvery)
	defer ticks.Stop()
	for c.ctx.Err() == nil {
		c.rest(c.step(), ticks)
	}
}

// step gives the segment that can be asked for its turn, and returns how long there is nothing else to do: the MPD may change meanwhile.
func (c *chunks) step() time.Duration {
	now := c.sharing.all.now()
	if now.Before(c.after) { // the clock was set back
		c.after = now
	}
	next, ok := c.next()
	if !ok { // it may be in an MPD that is not read yet
		c.want(c.charged())
		return decideEvery
	}
	wait := next.Asked.Sub(now)
	if wait <= opensAhead {
		c.sharing.with(func(n *parts.Node, at int64) { c.opens(n, at, c.part) })
	}
	if wait > 0 {
		return min(wait, decideEvery)
	}
	if c.after = next.Asked; now.Sub(next.Asked) >= next.Duration { // the machine was asleep
		c.after = now.Add(-next.Duration)
		return 0
	}
	switch ahead := next.Sequence - c.sequence; {
	case c.any && (ahead < -1 || ahead >= leap):
		c.sharing.restart(c.openStream)
		return 0
	case c.any && ahead <= 0: // of two periods that do not fit together
		return 0
	}
	c.sequence, c.any = next.Sequence, true
	c.begin(next)
	return 0
}

// next is the segment whose turn comes; false: none is known.
func (c *chunks) next() (playlist.Growing, bool) {
	ix := c.index()
	if ix == nil {
		return playlist.Growing{}, false
	}
	_, _, chunked := ix.lowLatency(c.id)
	if chunked == nil {
		return playlist.Growing{}, false
	}
	return chunked.Next(c.after)
}

// skips says whether a segment is not read because one before was too long.
func (c *chunks) skips() bool {
	if c.last != nil && c.last.long.Swap(false) {
		c.skipped = longRest
	}
	if c.skipped == 0 {
		return false
	}
	c.skipped--
	return true
}

// begin reads a segment, if it may be certified and is paid for.
func (c *chunks) begin(next playlist.Growing) {
	s, outcome := c.sharing, partIdle
	payer := s.payer(c.id, false)
	if payer != nil {
		c.want(payer.from) // the MPD is read again as long as it is wanted
	}
	if !c.idle() && !c.skips() {
		if payer != nil {
			g := newGrowing(c, next, payer)
			if !s.all.tasks.begin(g.read) {
				g.cancel()
				return
			}
			c.last = g
			return
		}
		outcome = partUnpaid
	}
	s.all.sink.Add(mParts, 1, s.title.site.name, outcome)
}
