package viewer

import (
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// listedPart is a part that the player's playlist lists.
type listedPart struct {
	turn uint32
	Reference
}

// partLoad is the player's request for a part.
type partLoad struct {
	request
	turn    uint32
	done    func(*Result, error)
	began   time.Time
	over    bool
	all     bool // the origin was asked for all of it
	looks   bool // it is all asked of the origin, since what is known of the line is old
	peers   bool // all of it is here, of peers, while the origin is measured
	cancels []func()
}

// listedParts are the latest parts of a rendition, and the turn of the one at an index.
func listedParts(l *rendition, index int) (listed []listedPart, turn uint32, ok bool) {
	for _, e := range l.list {
		if e.part == whole {
			continue
		}
		if t, is := parts.Turn(e.sequence, e.part); is {
			listed = append(listed, listedPart{t, e.Reference})
		}
	}
	turn, ok = parts.Turn(l.list[index].sequence, l.list[index].part)
	return listed[max(0, len(listed)-parts.Kept):], turn, ok
}

// load begins what the player asks for; nil: the part is not the site's, and the origin's alone.
func (s *streams) load(r request, done func(*Result, error)) *partLoad {
	if _, ok := s.segments.id(r.Reference); !ok {
		return nil
	}
	long := r.Duration // the last part of a segment may be short
	for _, one := range r.parts {
		long = max(long, one.Duration)
	}
	f := s.follow(r, long)
	if f == nil {
		return nil
	}
	l := &partLoad{request: r, turn: r.turn, done: done, began: s.loop.Now()}
	f.load = l
	s.with(func(_ *parts.Node, now int64) {
		for _, one := range r.parts {
			if id, ok := s.segments.id(one.Reference); ok {
				f.stream.Listed(now, one.turn, id, one.length())
			}
		}
		left := r.deadline()
		fails := s.line.fails()
		l.looks = !fails && left >= r.Duration && s.fresh.dated(r.adaptive, r.bitrate)
		switch {
		case fails:
			f.stream.Buffer(now, math.MaxInt64, true) // nothing is held back for what does not come
		case l.looks:
			f.stream.Buffer(now, 0, false) // peers hold back while the line is measured, too
		default:
			f.stream.Buffer(now, s.line.before(r.bitrate, r.Duration, left).Microseconds(), false)
		}
		w := s.line.wanted()
		w.Deadline, w.Packaged = now+left.Microseconds(), s.certs.wanted()
		f.stream.Ask(now, r.turn, w)
	})
	if l.unmeasured(s.line) {
		s.fetch(f, nil)
	}
	return l
}

// unmeasured says whether nothing is known of the line to choose a rendition by. Pieces are too short to measure it, and peers' say
// nothing of it: a viewer that took them would stay with the first rendition. What is known for a minute is measured again.
func (l *partLoad) unmeasured(of *line) bool { return l.looks || l.adaptive && of.estimate() == 0 }

// spare is how long peers can be waited for before the origin has to be asked for a part of so many bits per second, that plays so long.
func (l *line) spare(bitrate int64, part, left time.Duration) time.Duration {
	origin := time.Duration(l.timeUs(float64(bitrate)*part.Seconds()/8)) * time.Microsecond
	if origin < 0 {
		origin = l.answer
	}
	return left - origin*3/2 - part/8
}

// before is what the playhead has in hand, where so much is left until it gets to a part. Peers hold back where the origin is asked soon:
// what they push would share the line.
func (l *line) before(bitrate int64, part, left time.Duration) time.Duration {
	if l.spare(bitrate, part, left) < part/2 {
		return 0
	}
	return left
}

// behind is the same behind a part that the player has.
func (l *line) behind(bitrate int64, part, left time.Duration) time.Duration {
	if l.spare(bitrate, part, left) < part*3/4 {
		return min(left, part-time.Microsecond)
	}
	return left
}

// length is that of a range; 0: it is not known.
func (p listedPart) length() int {
	if !p.Ranged {
		return 0
	}
	return int(p.Last - p.First + 1)
}

// wanted is what the node is to know of the origin.
func (l *line) wanted() parts.Wanted {
	return parts.Wanted{RTT: l.answer.Microseconds(), Rate: int64(l.estimate() / 8)}
}

// follow follows the stream of a track, whose parts, or chunks, play so long: anew if the site, or the line, lets the viewer send more or less than before.
func (s *streams) follow(r request, part time.Duration) *followed {
	f, takes := s.tracks[r.track], 0
	if s.uploads() {
		takes = slots(s.capped(), r.bitrate)
	}
	if f != nil && f.playlist == r.playlist && f.slots == takes {
		return f
	}
	id, ok := s.segments.id(Reference{URL: r.playlist})
	if !ok {
		return nil
	}
	s.leave(r.track)
	if s.of(id) != nil {
		return nil // another track plays the same: what the node says of the stream is of its parts
	}
	s.with(func(n *parts.Node, now int64) {
		set := parts.Settings{Slots: takes, Part: part.Microseconds(), Whole: r.made != nil}
		f = &followed{playlist: r.playlist, id: id, slots: takes, sources: map[uint32]map[int]Source{}, differs: map[uint32]bool{}}
		f.stream = n.Follow(now, id, set)
		s.tracks[r.track] = f
	})
	return f
}

// slots are the children that a viewer takes of a stream where the site lets it send so much. Each takes a stripe.
func slots(kbps, bitrate int64) int {
	if kbps == 0 {
		return mesh.MaxChildren
	}
	return int(min(mesh.MaxChildren, kbps*1000*peer.Stripes/max(bitrate, 1)))
}

// fetch asks the origin for runs of pieces, or for all of the part: once.
func (s *streams) fetch(f *followed, runs []parts.Run) {
	l := f.load
	if l.all {
		return
	}
	whole := l.Reference.fetch()
	if l.all = len(runs) == 0 || s.line.wholes || l.unmeasured(s.line); l.all {
		s.get(f, l, whole, nil)
		return
	}
	length := f.stream.Length(l.turn)
	for _, run := range runs {
		part := whole
		part.Ranged = true
		part.First = whole.First + int64(run.First)*segment.PieceSize
		part.Last = whole.First + min(int64(run.Last+1)*segment.PieceSize, int64(length)) - 1
		s.get(f, l, part, &run)
	}
}

func (s *streams) get(f *followed, l *partLoad, what Fetch, run *parts.Run) {
	ended := false
	cancel, seen := s.line.fetch(what, run != nil, func(got Fetched, err error) {
		ended = true
		switch {
		case l.over:
		case err != nil && run != nil:
			s.fetch(f, nil) // asked for as the whole, it shows whose fault that is
		case err != nil && l.peers:
			s.give(f, l)
		case err != nil:
			s.finish(f, l, nil, err)
		case run != nil && int64(len(got.Data)) != what.Last-what.First+1:
			s.ledger.wasted(len(got.Data))
			s.line.wholes = true
			s.fetch(f, nil)
		default:
			s.came(f, l, got, run)
		}
	})
	l.cancels = append(l.cancels, func() {
		if !ended {
			cancel()
			s.ledger.wasted(int(seen.loaded()))
		}
	})
}

// came takes what the origin sent. All of a part goes to the player as it is.
func (s *streams) came(f *followed, l *partLoad, got Fetched, run *parts.Run) {
	s.ledger.played(len(got.Data))
	first := 0
	if run != nil {
		first = run.First
	}
	if !got.Unshared && s.sharing() && f.stays(s) {
		s.with(func(_ *parts.Node, now int64) {
			if id, ok := s.segments.id(l.Reference); ok && run == nil {
				f.stream.Listed(now, l.turn, id, len(got.Data))
			}
			for i := range segment.Pieces(int64(len(got.Data))) {
				f.stream.Origin(now, l.turn, first+i, pieceOf(got.Data, i))
			}
		})
	}
	if run == nil {
		if !l.over {
			if s.line.parts.came(s.line, got) {
				s.fresh.looked = s.loop.Now()
			}
			s.finish(f, l, f.result(l, [][]byte{got.Data}, true, s.loop.Now().Sub(l.began)), nil)
		}
		return
	}
	if got.Unshared || !s.sharing() {
		s.fetch(f, nil)
	}
}

// stays says whether a stream is still followed: what the origin sends may come after it was left.
func (f *followed) stays(s *streams) bool { return s.of(f.id) == f }

// ready gives the part to the player. While the line is to be measured, the origin's answer is awaited.
func (s *streams) ready(f *followed) {
	l := f.load
	if !l.unmeasured(s.line) {
		s.give(f, l)
		return
	}
	l.peers = true
	s.fetch(f, nil)
}

func (s *streams) give(f *followed, l *partLoad) {
	var pieces [][]byte
	for i := range f.stream.Pieces(l.turn) {
		pieces = append(pieces, f.stream.Bytes(l.turn, i))
	}
	s.finish(f, l, f.result(l, pieces, false, s.loop.Now().Sub(l.began)), nil)
}

func (f *followed) result(l *partLoad, pieces [][]byte, whole bool, took time.Duration) *Result {
	r := &Result{Reference: l.Reference, Rendition: l.rendition, Pieces: pieces, Bytes: map[Source]int64{}, Took: took}
	for i, p := range pieces {
		from := f.sources[l.turn][i]
		if from == "" || whole {
			from = FromOrigin
		}
		r.Bytes[from] += int64(len(p))
	}
	r.Source = sourceOf(r.Bytes)
	if r.Bytes[FromOrigin]+r.Bytes[FromSeed] > 0 {
		r.Reason = schedule.NoHolder
	}
	return r
}

// finish hands the part to the player, in a turn of its own.
func (s *streams) finish(f *followed, l *partLoad, r *Result, err error) {
	s.abort(l)
	s.loop.Post(func() { l.done(r, err) })
	if err == nil {
		f.counted(s.ledger, r.Source, r.Reason)
		left := s.line.behind(l.bitrate, l.Duration, l.deadline()+l.Duration)
		all := len(l.request.parts) > 0 && l.request.parts[len(l.request.parts)-1].turn == l.turn
		if f.stays(s) {
			s.with(func(_ *parts.Node, now int64) { f.stream.Buffer(now, left.Microseconds(), all) })
		}
	}
}

// counted counts a part that the player was given.
func (f *followed) counted(l *ledger, source Source, reason schedule.Reason) {
	l.segment(source, reason)
	hops, lost := parts.Trees(f.stream)
	l.part(source, hops, lost-f.lost)
	f.lost = lost
}

// abort takes a request of the player back.
func (s *streams) abort(l *partLoad) {
	if f := s.tracks[l.track]; f != nil && f.load == l {
		f.load = nil
		f.stream.Leave()
	}
	l.end()
}

// end takes back what the origin was asked for.
func (l *partLoad) end() {
	l.over = true
	for _, cancel := range l.cancels {
		cancel()
	}
	l.cancels = nil
}
