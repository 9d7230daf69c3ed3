package viewer

import (
	"maps"
	"slices"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/cmaf"
)

// answer is the origin's.
type answer struct {
	cancel func()
	seen   *looks
	data   []byte           // that has come
	at     int64            // how much has
	had    int              // bytes that the player had when it was asked,
	before map[Source]int64 // by source
	used   int64            // bytes that the player has of an answer that was not waited for
}

// chunk is how long the chunk is that begins at a byte, of what the origin has sent; 0: not all of it has come.
func (a *answer) chunk(at int) int {
	if a == nil || at > len(a.data) {
		return 0
	}
	var cut cmaf.Cutter
	if ends, _ := cut.Add(a.data[at:]); len(ends) > 0 { // behind an error there is no chunk
		return int(ends[0])
	}
	return 0
}

// rest has the origin send what is not here.
func (l *chunkLoad) rest() {
	l.advance()
	if !l.over {
		l.ask()
	}
}

// ask asks the origin for the segment, once.
func (l *chunkLoad) ask() {
	s := l.s
	if l.over || l.origin != nil {
		return
	}
	a := &answer{had: l.at, before: maps.Clone(l.came.bytes)}
	l.origin = a
	what := l.request.fetch()
	what.Growing.Heard = l.heard
	a.cancel, a.seen = s.line.fetch(what, false, func(got Fetched, err error) {
		if err != nil {
			a.cancel = nil
			s.ledger.wasted(int(a.seen.loaded()))
			l.stop()
			s.loop.Post(func() { l.done(nil, err) })
			return
		}
		a.data, a.cancel = got.Data, nil
		if !got.Unshared && len(got.Data) <= segment.MaxLength {
			l.advance()
		}
		if l.over {
			return
		}
		if !got.Unshared {
			l.ends(len(got.Data))
		}
		l.complete(got.Data, a)
		if !got.Unshared && s.sharing() {
			s.keep(l.request, got.Data, l.end(), false)
		}
	})
}

// ends tells the node that the origin has sent all of the segment.
func (l *chunkLoad) ends(length int) {
	l.in.within(l.s.streams, func(now int64) {
		if l.at < length { // no parent has told the chunk
			parts.Missed(l.in.stream, now)
		} else if l.signs {
			turn := l.first + parts.End
			parts.Expect(l.in.stream, now, turn, func(of segment.Name) bool { return of == l.name }, true)
			parts.Sign(l.in.stream, now, turn, 0, l.Reference)
		}
	})
}

// heard takes what the origin sends, as it comes.
func (l *chunkLoad) heard(b []byte, unshared bool) {
	a := l.origin
	if l.over || a == nil {
		return
	}
	l.made.take(a.at, b)
	if unshared { // the player has it: what peers send is not put together with it
		l.came.chunks, l.came.other = nil, true
	}
	if a.at += int64(len(b)); unshared || a.at > segment.MaxLength {
		return // nothing is shared of it, and of a longer one
	}
	a.data = append(a.data, b...)
	l.has = max(l.has, len(a.data))
	l.advance()
}

// complete hands the segment to the player, which has all bytes of it: by the origin's answer, or by the end that peers told.
func (l *chunkLoad) complete(data []byte, by *answer) {
	s := l.s
	f, sum, size := l.in, l.came.bytes, int64(len(data))
	switch a := l.origin; {
	case by != nil:
		again := min(size, int64(a.had))
		sum = a.before
		sum[FromOrigin] += size - again
		s.ledger.played(int(size - again))
		s.ledger.wasted(int(again))
		l.counts(FromOrigin)
	case a != nil: // what it has sent until now is the player's, but for what peers sent, too
		a.used = sum[FromOrigin] - a.before[FromOrigin]
		s.ledger.played(int(a.used))
		l.counts(sourceOf(sum))
	}
	l.stop()
	if l.n > 0 && (by == nil || l.at <= len(data)) {
		// The origin may have sent the last ones before they were told.
		f.count = (l.n*len(data) + l.at/2) / l.at
		parts.Lasts(f.stream, l.part().Microseconds(), l.chunk().Microseconds())
	}
	r := &Result{Reference: l.Reference, Rendition: l.rendition, Bytes: sum, Source: sourceOf(sum), Reason: l.why(sum), Took: s.loop.Now().Sub(l.began)}
	for i := range segment.Pieces(size) {
		r.Pieces = append(r.Pieces, pieceOf(data, i))
	}
	s.loop.Post(func() { l.done(r, nil) })
}

// stop waits for the segment no more.
func (l *chunkLoad) stop() {
	s := l.s
	if l.over {
		return
	}
	l.over = true
	if l.in.grows == l {
		l.in.grows = nil
		l.in.stream.Leave()
	}
	if a := l.origin; a != nil && a.cancel != nil {
		a.cancel()
		s.ledger.wasted(int(max(0, a.seen.loaded()-a.used)))
	}
}

// keep keeps a segment of chunks that the player has: to be shared whole, as one that was loaded whole.
func (e *engine) keep(r request, data []byte, end *parts.Content, has bool) {
	e.view.asked(r)
	e.follow(r)
	s, err := e.segments.resolve(r.Reference, r.bitrate)
	if err != nil || s.disputed != nil || !e.sharing() || e.store.get(s.id).complete() {
		return
	}
	if end != nil {
		if c, err := certificate.Parse(end.Raw); err == nil {
			e.verification.ended(c)
		}
	}
	switch {
	case !has:
		e.adopt(bypassed{r.Reference, r.playlist, r.bitrate, data})
	case s.cert != nil && slices.Equal(s.cert.Digests, end.Digests):
		for n := range end.Digests {
			e.accepted(s, n, pieceOf(data, n), nil, "")
		}
	}
}
