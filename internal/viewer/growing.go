package viewer

import (
	"cmp"
	"time"

	"github.com/leeway-video/leeway/internal/wire/cmaf"
)

// growing is what a track has of a segment that it loads while it is made (low-latency DASH). It can be played chunk by chunk. How long a
// chunk plays is not read: each is taken for as long as the others of its segment, of which there are as many as in the segment before.
type growing struct {
	at    place
	level *rendition // that is loaded; nil: none is
	has   int64      // bytes, from the first on
	cut   cmaf.Cutter
	n     int           // chunks that are whole
	each  int           // of the segment before; 0: not known
	to    time.Duration // from its beginning, so much can be played
}

// take takes bytes from where they are in the segment, and says whether there is a chunk more.
func (g *growing) take(at int64, b []byte) (more bool) {
	end := at + int64(len(b))
	if at > g.has || end <= g.has {
		return false
	}
	ends, _ := g.cut.Add(b[g.has-at:]) // of what has no chunks nothing is played before it is complete
	g.has = end
	g.n += len(ends)
	return len(ends) > 0
}

// plays is how much can be played of a segment of such a length, of which so much has been made by the clock.
func (g *growing) plays(length, made time.Duration) time.Duration {
	of := max(cmp.Or(g.each, usualChunks), g.n+1) // it is not complete
	to := length * time.Duration(g.n) / time.Duration(of)
	if g.each == 0 {
		to = min(to, max(0, made))
	}
	return to
}

// has says which rendition of an entry can be played up to which moment; nil: there is nothing of it.
func (t *track) has(e *entryRef) (shown *rendition, to time.Duration) {
	if l := t.held[e.place]; l != nil {
		return l, e.Start + e.Duration
	}
	if g := &t.growing; g.at == e.place && g.to > 0 {
		return g.level, e.Start + min(g.to, e.Duration)
	}
	return nil, e.Start
}

// making is what is to be known of the entry that is loaded next, if it may still be made; nil: it may not.
func (t *track) making(l *rendition, e entryRef) *making {
	c, p := e.chunked, t.p
	if c == nil {
		return nil
	}
	to := t.growing.to // stays: a player keeps what it was given
	if t.growing.at != e.place {
		to = 0
	}
	t.growing = growing{at: e.place, level: l, each: t.growing.each, to: to}
	return &making{
		sequence: e.number, lasts: c.Duration, complete: e.at.Add(c.Duration),
		left: func() time.Duration {
			if !t.anything() {
				return 0
			}
			return e.Start - p.head.now()
		},
		take: func(at int64, b []byte) {
			if g := &t.growing; g.at == e.place && g.take(at, b) && !p.over {
				g.to = max(g.to, g.plays(e.Duration, p.loop.Now().Sub(e.at)))
				p.buffered()
			}
		},
	}
}

// grown takes a segment that has come as a whole.
func (g *growing) grown(got *Result) {
	at := int64(0)
	for _, piece := range got.Pieces {
		g.take(at, piece)
		at += int64(len(piece))
	}
	*g = growing{each: cmp.Or(g.n, g.each)}
}
