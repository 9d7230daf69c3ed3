package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/cmaf"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

var (
	errLeft   = errors.New("the stream was left")
	errPart   = errors.New("the origin answers with what there is of the segment, and does not wait for the rest")
	errBroken = errors.New("the origin's answer ends in the middle of a chunk, or has none")
	errFull   = errors.New("the site's segments that are being made have no more room in memory")
)

// growing is a segment that is read while the origin makes it. All but done and cancel is used by read alone.
type growing struct {
	*openStream
	playlist.Growing
	q      question
	before *growing      // whose end is told before anything of this one; nil: it has been
	done   chan struct{} // closed when nothing more of it is told
	long   atomic.Bool   // it was too long
	reads  context.Context
	cancel context.CancelFunc

	data []byte
	cut  cmaf.Cutter
	from int64 // where the next chunk begins
	n    int   // chunks that have ended
}

// newGrowing is a segment that is read until the one after the next can be asked for, at the latest.
func newGrowing(c *chunks, next playlist.Growing, payer *viewerLink) *growing {
	g := &growing{openStream: c.openStream, Growing: next, q: question{payer: payer}, before: c.last, done: make(chan struct{})}
	g.reads, g.cancel = context.WithTimeout(c.ctx, 2*next.Duration)
	return g
}

// read reads the segment, and certifies and tells each chunk when it is there, and then the end.
func (g *growing) read() {
	defer g.cancel()
	got, err := g.flow()
	var whole *held
	if err == nil {
		whole, err = g.end(got)
	}
	close(g.done)
	if whole != nil {
		g.keep(whole)
	}
	g.sharing.title.site.growing.Add(-int64(len(g.data)))
	g.data, g.before = nil, nil
	s, outcome := g.sharing, partFailed
	var unpaid *unpaidError
	var failed *FetchError
	g.long.Store(errors.As(err, &failed) && failed.Outcome == OutcomeTooLarge)
	switch {
	case err == nil || g.ctx.Err() != nil: // it was certified, or the stream was left
		return
	case errors.As(err, &unpaid):
		outcome = partUnpaid
	default:
		s.all.log.Warn("a segment is not certified while it is made", append([]any{"site", s.title.site.name, "stream", g.path, "error", err}, hintOfClock(got, err)...)...)
	}
	s.all.sink.Add(mParts, 1, s.title.site.name, outcome)
}

// hintOfClock is hintOf, or that the clock is off: a seed whose clock is ahead asks for what is not there yet, and one that is behind for what
// is complete already.
func hintOfClock(got *Fetched, err error) []any {
	var failed *FetchError
	off, is := time.Duration(0), "ahead of"
	if errors.As(err, &failed) {
		off = failed.Clock
	} else if got != nil {
		off = got.Clock
	}
	if hint := hintOf(err); hint != nil || off == 0 {
		return hint
	}
	if off < 0 {
		off, is = -off, "behind"
	}
	return []any{"hint", fmt.Sprintf("this machine's clock is %v or more %s the origin's, and segments are asked for by it: set both by NTP", off, is)}
}

// flow has the origin's answer taken as it comes. Where the origin does not have the segment yet it is asked again, until the next one can be
// asked for.
func (g *growing) flow() (got *Fetched, err error) {
	s := g.sharing
	next := g.Asked.Add(g.Duration)
	for pause := freshPause; g.pays(); pause = min(2*pause, freshLast) {
		g.q = g.asks(g.q.payer, g.Name)
		got, err = s.title.site.flow(g.reads, Fetch{Path: g.Path, MaxBytes: segment.MaxLength, Shared: true}, g.take)
		var failed *FetchError
		if !errors.As(err, &failed) || failed.Outcome != OutcomeNotFound || !s.all.now().Add(pause).Before(next) || !sleep.For(g.reads, pause) {
			return got, err
		}
	}
	return nil, &unpaidError{tollSession}
}

// pays says whether a viewer that follows the stream pays for what comes.
func (g *growing) pays() bool {
	s := g.sharing
	s.mu.Lock()
	follows := s.viewers[g.q.payer.from.session] == g.q.payer && s.node.Follows(g.q.payer.from.session, g.id)
	s.mu.Unlock()
	if a := g.q.payer.conn.payer(); follows && a != nil && s.all.supply.budgets.mayFetch(a) {
		return true
	}
	other := s.payer(g.id, false)
	if other != nil {
		g.q.payer = other
	}
	return other != nil
}

// take takes what has come.
func (g *growing) take(b []byte) error {
	s := g.sharing
	came := s.all.now()
	s.all.supply.budgets.charge(g.q.payer.conn.payer(), len(b))
	s.title.costs(len(b))
	if !s.title.site.grows(len(b)) {
		return errFull
	}
	g.data = append(g.data, b...)
	ends, broken := g.cut.Add(b)
	for _, end := range ends {
		if err := g.chunk(end); err != nil {
			return err
		}
		s.all.sink.Observe(mPartLag, s.all.now().Sub(came).Seconds(), s.title.site.name)
	}
	if broken == nil && !g.pays() {
		return &unpaidError{tollSession}
	}
	return broken
}

// chunk certifies and tells the chunk that ends at a byte. A segment has so many chunks at most as there are turns for; of a further one
// nothing is told, nor from one that is too long on.
func (g *growing) chunk(end int64) error {
	s, n := g.sharing, g.n
	e := playlist.Entry{Path: g.Path, Ranged: true, First: g.from, Last: end - 1}
	g.from, g.n = end, n+1
	if n >= endTurn || end-e.First > parts.MaxPart {
		g.n = endTurn
		return nil
	}
	if e.Name = segment.RangeName(g.Name.Key(), e.First, e.Last); e.Name == "" {
		return fmt.Errorf("a chunk of %.64q has no name", g.Name)
	}
	// What is pushed keeps no other chunks in memory.
	h, err := g.sign(e, &Fetched{Data: bytes.Clone(g.data[e.First:end]), ObjectLength: end})
	if err != nil {
		return err
	}
	g.awaitLast()
	if !g.tells(n, h) {
		return errLeft
	}
	s.all.sink.Add(mParts, 1, s.title.site.name, partSigned)
	return nil
}

// awaitLast waits for the end of the segment before, for as long as a chunk takes to be made: it may come later than the first chunk of
// this one, over another connection. Viewers take what comes out of turn from the origin.
func (g *growing) awaitLast() {
	if g.before == nil {
		return
	}
	late := time.NewTimer(g.Duration / chunksOfSegment)
	defer late.Stop()
	select {
	case <-g.before.done:
	case <-g.reads.Done():
	case <-late.C:
		g.before.cancel()
	}
	g.before = nil
}

// end certifies and tells the segment as a whole.
func (g *growing) end(got *Fetched) (*held, error) {
	switch {
	case !g.cut.Whole():
		return nil, errBroken
	case got.Sized && g.q.asked.Before(g.Complete): // what is being made has no length yet
		return nil, errPart
	}
	h, err := g.sign(g.Entry, &Fetched{Data: g.data, ObjectLength: got.ObjectLength, Validator: got.Validator})
	if err == nil && !g.tells(endTurn, h) {
		err = errLeft
	}
	return h, err
}

// keep keeps the segment for those that ask for it, unless it has been purged meanwhile.
func (g *growing) keep(h *held) {
	supply := g.sharing.all.supply
	supply.keep(h)
	if supply.issuer.standing(g.sharing.title.site.name, g.Name) != g.q.under {
		supply.disown(h.id)
	}
}

func (g *growing) sign(e playlist.Entry, got *Fetched) (*held, error) {
	s := g.sharing
	ref := &ref{id: segment.NewID(s.title.site.name, e.Name), seg: e, playlist: g.path, live: true}
	return s.all.supply.signPart(request{s.title, ref, g.q.payer.conn.payer()}, g.q.under, g.q.asked, got)
}

// tells tells chunk n, or the end.
func (g *growing) tells(n int, h *held) bool {
	turn, ok := parts.Turn(g.Sequence, n)
	return ok && g.sharing.told(g.openStream, turn, h, n < endTurn)
}
