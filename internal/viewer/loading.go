package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
)

// loading gets segments for the player: by the engine if there is one, straight from the origin otherwise.
type loading struct {
	loop   Loop
	line   *line
	ledger *ledger
	engine func() *engine         // nil while there is none, or none any more
	shares func() bool            // whether an engine may yet come
	reason func() schedule.Reason // why a segment comes without it

	early []bypassed
}

// pull is one segment on its way to the player.
type pull struct {
	l      *loading
	r      request
	done   func(*Result, error)
	began  time.Time
	over   bool
	engine *engine
	inner  *load
	part   *partLoad
	grows  *chunkLoad
	direct func() // cancels
}

// bypassed is a segment that came before there was an engine.
type bypassed struct {
	ref      Reference
	playlist string
	bitrate  int64
	data     []byte
}

// load gets a segment. Nothing is waited for before there is an engine, which asks those that have said that they hold it.
func (l *loading) load(r request, done func(*Result, error)) *pull {
	p := &pull{l: l, r: r, done: done, began: l.loop.Now()}
	p.engine = l.engine()
	if r.part && p.engine != nil && r.parts != nil && p.engine.sharesParts() {
		if p.part = p.engine.loads.streams.load(r, p.hand); p.part != nil {
			return p
		}
	}
	if r.made != nil && p.engine != nil && p.engine.sharesParts() {
		if p.grows = p.engine.loads.streams.chunks.grow(r, p.hand); p.grows != nil {
			return p
		}
	}
	if p.engine != nil && !r.part && !l.line.lacks(r) {
		if r.live && r.Duration > 0 && r.made == nil {
			p.engine.loads.streams.leave(r.track) // segments are played, and no parts
		}
		p.inner = p.engine.load(p.r, p.done)
		return p
	}
	p.direct, _ = l.line.fetch(p.r.fetch(), false, func(got Fetched, err error) {
		p.over = true
		if err != nil {
			p.done(nil, err)
			return
		}
		if r.part || r.made != nil {
			l.line.parts.came(l.line, got)
		}
		if !r.part && !got.Unshared {
			l.keep(bypassed{p.r.Reference, p.r.playlist, p.r.bitrate, got.Data})
		}
		p.done(p.count(got), nil)
	})
	return p
}

// hand hands on what a stream brought, unless it was taken back since then.
func (p *pull) hand(got *Result, err error) {
	if !p.over {
		p.over = true
		p.done(got, err)
	}
}

// keep has the engine share a segment that came without it, as soon as there is one: without the first segments of the first
// viewers no other viewer could begin while the origin is down.
func (l *loading) keep(b bypassed) {
	switch e := l.engine(); {
	case e != nil:
		e.adopt(b)
	case l.shares() && len(l.early) < mostUncertified:
		l.early = append(l.early, b)
	}
}

// goOn hands over what came before there was an engine.
func (l *loading) goOn() {
	early := l.early
	l.early = nil
	for _, b := range early {
		l.keep(b)
	}
}

// count counts a segment that came from the origin without an engine.
func (p *pull) count(got Fetched) *Result {
	n, reason := len(got.Data), p.l.reason()
	if reason == "" {
		reason = schedule.NoHolder
	}
	p.l.ledger.played(n)
	p.l.ledger.segment(FromOrigin, reason)
	return &Result{
		Reference: p.r.Reference, Rendition: p.r.rendition, Pieces: [][]byte{got.Data}, Source: FromOrigin, Reason: reason,
		Bytes: map[Source]int64{FromOrigin: int64(n)}, Took: p.l.loop.Now().Sub(p.began),
	}
}

// abort takes it back; done is not called any more.
func (p *pull) abort() {
	if p.over {
		return
	}
	p.over = true
	if p.part != nil {
		p.engine.loads.streams.abort(p.part)
	} else if p.grows != nil {
		p.grows.stop()
	} else if p.inner != nil {
		p.engine.loads.release(p.inner)
	} else {
		p.direct()
	}
}
