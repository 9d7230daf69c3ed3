package viewer

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
)

const (
	// usualChunks is how many chunks a segment is taken to have until one has come to its end.
	usualChunks = 4
	// leastChunk: a chunk that plays for less counts as a part that plays so long. A frame would be waited for less long than a link takes.
	leastChunk = 250 * time.Millisecond
	// segmentTurns is how many turns a segment has.
	segmentTurns = parts.End + 1
)

// chunked is what is known of a stream of chunks that is followed.
type chunked struct {
	grows *chunkLoad    // the segment that the player waits for; nil: for none
	count int           // chunks of the last segment; 0: none has come to its end
	given int64         // when the player was given a chunk last, µs
	lasts time.Duration // of its segments; 0: not known

	measures bool // parents hold back, because the last segment was to show what the line carries
}

// chunkLoads is what the player asks for of streams of chunks.
type chunkLoads struct {
	*streams
	server func() time.Time               // the time by the cluster's clock
	ended  func(*certificate.Certificate) // a peer told the end of a segment
	// keep keeps a segment that is complete; end: what was told of it, nil: nothing. has: it has the digests of that.
	keep func(r request, data []byte, end *parts.Content, has bool)
}

// chunkLoad is the player's request for a segment that may still be made (spec/parts.md, "Chunks"): chunk by chunk from peers, else all from
// the origin.
type chunkLoad struct {
	request
	s     *chunkLoads
	in    *followed
	name  segment.Name
	first uint32 // the turn of chunk 0
	done  func(*Result, error)
	began time.Time
	over  bool

	n      int    // the chunk that comes next,
	turn   uint32 // its turn,
	at     int    // and where it begins
	has    int    // bytes that the player has
	came   took
	origin *answer // nil: it is not asked
	signs  bool    // the node is the source, by the packager's certificates of what the origin sends
}

// took is what the player was given of a segment.
type took struct {
	chunks [][]byte // of peers
	other  bool     // of others, too: they may be of another version, and are not put together with what is verified
	bytes  map[Source]int64

	compares bool // whether the end is that of the chunks is being looked at
}

// grow begins what the player asks for while it may still be made; nil: peers can have no share in it, and it is loaded as any other.
func (s *chunkLoads) grow(r request, done func(*Result, error)) *chunkLoad {
	l := s.begin(r)
	if l == nil {
		return nil
	}
	l.done, l.in.grows = done, l
	l.in.within(s.streams, func(now int64) {
		parts.Expect(l.in.stream, now, l.first+parts.End, func(of segment.Name) bool { return of == l.name }, false)
	})
	l.await()
	l.advance()
	return l
}

// begin follows the stream of a segment; nil: peers can have no share in it.
func (s *chunkLoads) begin(r request) *chunkLoad {
	first, ok := parts.Turn(r.made.sequence, 0)
	name, err := s.segments.name(r.Reference)
	// Of what is complete, what peers push would be too far ahead, and charged to them.
	if !ok || err != nil || r.Ranged || s.server().After(r.made.complete) {
		return nil
	}
	f := s.follow(r, r.made.lasts/usualChunks)
	if f == nil {
		return nil
	}
	if f.lasts == 0 {
		f.lasts = r.made.lasts
	}
	// The last one of a period: its turn cannot be told from how long it plays.
	if d := f.lasts - r.Duration; max(d, -d) > time.Millisecond {
		return nil
	}
	l := &chunkLoad{request: r, s: s, in: f, name: name, first: first, turn: first, began: s.loop.Now(), came: took{bytes: map[Source]int64{}}}
	unmeasured := s.line.lacks(r)
	f.within(s.streams, func(now int64) {
		parts.Expect(f.stream, now, first, l.fits(0), true)
		switch {
		case unmeasured:
			f.stream.Buffer(now, 0, false) // what peers push would share the line
		case f.measures:
			f.stream.Buffer(now, math.MaxInt64, true)
		}
		f.measures = unmeasured
		l.signs = s.certs.wanted() && parts.Signs(f.stream, now)
	})
	if unmeasured || !l.signs && !parts.Fed(f.stream) {
		return nil
	}
	// What is complete is shared whole.
	end := l.end()
	if (end != nil || parts.Beyond(f.stream, first+parts.End)) && !(end != nil && l.areHere(end)) {
		return nil
	}
	return l
}

// fits is whether a name is that of a chunk that begins at a byte.
func (l *chunkLoad) fits(at int) func(segment.Name) bool {
	begin := string(l.name) + "#" + strconv.Itoa(at) + "-"
	return func(of segment.Name) bool { return len(of) > len(begin) && string(of[:len(begin)]) == begin }
}

// end is the verified content of the segment's end; nil: it was not told.
func (l *chunkLoad) end() *parts.Content {
	c, _ := parts.Told(l.in.stream, l.first+parts.End)
	return c
}

// areHere says whether all chunks of a segment are in hand.
func (l *chunkLoad) areHere(end *parts.Content) bool {
	at := 0
	for turn := l.first; at < end.Length; turn++ {
		c, here := parts.Told(l.in.stream, turn)
		if !here || !l.fits(at)(c.Name) {
			return false
		}
		at += c.Length
	}
	return true
}

// chunk is how long a chunk plays.
func (l *chunkLoad) chunk() time.Duration {
	count := usualChunks
	if l.in.count > 0 {
		count = l.in.count
	}
	return l.Duration / time.Duration(count)
}

// part is how long it counts for.
func (l *chunkLoad) part() time.Duration { return max(l.chunk(), leastChunk) }

// left is how long it is until the playhead gets to the chunk that comes next.
func (l *chunkLoad) left() time.Duration { return l.made.left() + time.Duration(l.n)*l.chunk() }

// within does something with a stream, if it is still followed.
func (f *followed) within(s *streams, what func(now int64)) {
	if f.stays(s) {
		s.with(func(_ *parts.Node, now int64) { what(now) })
	}
}

// await has the node wait for the chunk that comes next.
func (l *chunkLoad) await() {
	s := l.s
	f := l.in
	if !f.stays(s.streams) { // it was left since the player asked: for another rendition, or because it was idle
		l.rest()
		return
	}
	f.within(s.streams, func(now int64) {
		parts.Expect(f.stream, now, l.turn, l.fits(l.at), true)
		parts.Flows(f.stream, l.sent() > 0 && l.sent() >= l.at)
		left, fails := l.left(), s.line.fails()
		if fails {
			f.stream.Buffer(now, math.MaxInt64, true) // nothing is held back for what does not come
		} else {
			f.stream.Buffer(now, s.line.before(l.bitrate, l.part(), left).Microseconds(), false)
		}
		w := s.line.wanted()
		if w.Deadline = now + left.Microseconds(); !parts.Beyond(f.stream, l.turn) {
			w.At = max(now, f.given+l.chunk().Microseconds())
		}
		f.stream.Ask(now, l.turn, w)
	})
}

// advance gives the player what has come of the chunks that follow, and waits for the next one.
func (l *chunkLoad) advance() {
	f, n := l.in, l.n
	for !l.over && l.n < parts.End && parts.Expected(f.stream, l.turn) {
		c, here := parts.Told(f.stream, l.turn)
		length := 0
		switch {
		case c == nil && l.signs:
			length = l.origin.chunk(l.at)
		case c != nil && l.fits(l.at)(c.Name):
			length = c.Length
		}
		if length == 0 || !here && l.sent() < l.at+length {
			break
		}
		l.gives(c, length, here)
	}
	if l.over {
		return
	}
	end := l.end()
	switch {
	// An origin that is asked says itself where the segment ends; one that is slow, or sends nothing, is not waited for.
	case end != nil && l.at == end.Length && !l.came.other && (l.origin == nil || l.sent() < l.at):
		l.compare(end)
	case l.n == parts.End || end != nil && l.at > end.Length: // there is no turn for more chunks, or the end is another version's
		l.ask()
	case n < l.n && f.grows == l:
		l.await()
	}
}

// sent is how much of the origin's answer is in hand.
func (l *chunkLoad) sent() int {
	if l.origin == nil {
		return 0
	}
	return len(l.origin.data)
}

// gives gives the player a chunk, of peers, or takes it that the origin has given it. c is nil of one that no peer has told.
func (l *chunkLoad) gives(c *parts.Content, length int, here bool) {
	s := l.s
	f, turn, at := l.in, l.turn, l.at
	// Before the node hears of it: what it says may go on with the next one.
	l.at += length
	l.turn++
	l.n++
	if here {
		data, from := f.chunk(turn)
		for source, n := range from {
			l.came.bytes[source] += n
		}
		if !l.came.other {
			l.came.chunks = append(l.came.chunks, data)
		}
		if l.origin == nil {
			l.counts(sourceOf(from))
		}
		if at <= l.has { // what is beyond, the origin is sending
			l.made.take(int64(at), data)
			l.has = max(l.has, l.at)
		}
	} else {
		l.came.chunks, l.came.other = nil, true
		data := l.origin.data[at:l.at]
		f.within(s.streams, func(now int64) {
			if c == nil {
				ref := l.Reference
				ref.Ranged, ref.First, ref.Last = true, int64(at), int64(l.at-1)
				parts.Sign(f.stream, now, turn, length, ref)
			}
			for i := range segment.Pieces(int64(len(data))) {
				f.stream.Origin(now, turn, i, pieceOf(data, i))
			}
		})
	}
	if f.given = s.nowUs(); f.grows != l {
		return
	}
	left := s.line.behind(l.bitrate, l.part(), l.left())
	f.within(s.streams, func(now int64) { f.stream.Buffer(now, left.Microseconds(), !parts.Beyond(f.stream, turn)) })
}

// chunk is what is here at a turn, and how much of it came from where.
func (f *followed) chunk(turn uint32) (data []byte, from map[Source]int64) {
	from = map[Source]int64{}
	for i := range f.stream.Pieces(turn) {
		piece := f.stream.Bytes(turn, i)
		source := f.sources[turn][i]
		if source == "" {
			source = FromOrigin
		}
		from[source] += int64(len(piece))
		data = append(data, piece...)
	}
	return data, from
}

func (l *chunkLoad) counts(source Source) {
	l.in.counted(l.s.ledger, source, l.why(map[Source]int64{source: 1}))
}

// why is the reason for bytes that are not all of viewers.
func (l *chunkLoad) why(bytes map[Source]int64) schedule.Reason {
	switch {
	case bytes[FromOrigin]+bytes[FromSeed] == 0:
		return ""
	case l.s.off != "":
		return l.s.off
	}
	return schedule.NoHolder
}

// compare looks whether as many bytes as an end says are all of the segment: another version may end where a chunk does.
func (l *chunkLoad) compare(end *parts.Content) {
	s := l.s
	if l.came.compares {
		return
	}
	l.came.compares = true
	data, same := bytes.Join(l.came.chunks, nil), false
	s.loop.Go(func() { same = slices.Equal(certificate.DigestPieces(data), end.Digests) }, func() {
		l.came.compares = false
		switch {
		case l.over:
		case l.at != len(data):
			l.advance()
		case same:
			l.complete(data, nil)
			s.keep(l.request, data, end, true)
		default:
			l.came.chunks, l.came.other = nil, true
			l.ask()
		}
	})
}
