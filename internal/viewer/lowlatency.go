package viewer

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// whole is the part number of a segment as a whole.
const whole = -1

// place is a segment, or a part of one, of a live stream: the same in all renditions.
type place struct {
	sequence int64 // media sequence number
	part     int   // of the segment, from 0, or whole
}

// compare orders places. A whole segment is before its parts.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.sequence, q.sequence), cmp.Compare(p.part, q.part))
}

// partTargets is how many parts a player stays behind the end of a low-latency playlist, where that does not say how far.
const partTargets = 3

// partsOf lists the parts of the segments that have any, and those of the segment that grows.
func partsOf(p *playlist.Media, base *url.URL, speed float64) *mediaList {
	low := p.LowLatency
	list := &mediaList{live: true, growth: growth{
		target: max(leastTarget, p.Target), holdBack: low.HoldBack, pace: max(leastTarget, low.PartTarget), next: &place{},
	}}
	if list.holdBack == 0 {
		list.holdBack = partTargets * list.pace
	}
	list.next.sequence, list.next.part = p.Next()
	add := appender{list: list, base: base, speed: speed}
	for i := range p.Segments {
		if s := &p.Segments[i]; len(s.Parts) == 0 {
			add.segment(s, p.Sequence+int64(i))
		} else {
			add.parts(s, p.Sequence+int64(i))
		}
	}
	if low.Growing != nil {
		add.parts(low.Growing, list.next.sequence)
	}
	return list
}

func (a *appender) parts(s *playlist.Segment, sequence int64) {
	a.begin(s)
	begin := a.at
	for n, part := range s.Parts {
		d, ok := a.duration(part.Duration)
		if !ok {
			continue
		}
		e := entryRef{place: place{sequence, n}, within: a.at - begin, dependent: !part.Independent && n > 0}
		if !s.At.IsZero() {
			e.at = s.At.Add(e.within)
		}
		a.add(part.Object, d, part.Gap || s.Gap, e)
	}
}

// reloading is the URL of a playlist with the part in it that comes next.
func reloading(playlist string, next *place) string {
	u, err := url.Parse(playlist)
	if err != nil || next == nil {
		return playlist // the origin will say what it thinks of it
	}
	q := u.Query()
	q.Set("_HLS_msn", strconv.FormatInt(next.sequence, 10))
	q.Set("_HLS_part", strconv.Itoa(next.part))
	u.RawQuery = q.Encode()
	return u.String()
}

// reloaded is the URL of a playlist that was asked for by reloading, or by a page, without what players add to a reload
// (spec/packaging.md, "List").
func reloaded(playlist string) string {
	u, err := url.Parse(playlist)
	if err != nil {
		return playlist
	}
	q := u.Query()
	n := len(q)
	for _, added := range []string{"_HLS_msn", "_HLS_part", "_HLS_skip", "CMCD"} {
		q.Del(added)
	}
	if len(q) == n {
		return playlist
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// decodable is the index of what is to be loaded so that the picture at an index can be shown: after a jump, a part that needs others
// comes after those.
func (t *track) decodable(l *rendition, i int) int {
	for i > 0 && l.list[i].dependent && t.held[l.list[i-1].place] != l {
		i--
	}
	return i
}

// midway says whether what comes next needs what is held of the rendition that is played: no other can be chosen yet.
func (t *track) midway(from time.Duration) bool {
	if t.level < 0 || t.levels[t.level].live == nil || t.levels[t.level].live.next == nil {
		return false
	}
	l := t.levels[t.level]
	i := l.at(t.bufferedTo(from))
	if i >= len(l.list) {
		return l.live.next.part > 0
	}
	return l.list[i].dependent && t.decodable(l, i) == i
}

// merge has a segment whose parts are all held be held as a whole, where its parts are no longer listed.
func (v *live) merge(known, placed []entryRef) {
	listed := map[place]bool{}
	for _, e := range placed {
		listed[e.place] = true
	}
	parts, lengths := map[int64]*rendition{}, map[int64]time.Duration{}
	for _, e := range known {
		if r := v.t.held[e.place]; r != nil && !listed[e.place] {
			parts[e.sequence] = r
			lengths[e.sequence] += e.Duration
			delete(v.t.held, e.place)
		}
	}
	for _, e := range placed {
		if e.part == whole && parts[e.sequence] != nil && lengths[e.sequence] >= e.Duration-time.Millisecond {
			v.t.held[e.place] = parts[e.sequence]
		}
	}
}

// shortParts are parts of a live stream that are too short, one by one, to say anything of the line.
type shortParts struct {
	bytes int64
	took  time.Duration
}

// came takes a part of the origin into account: as many as make a sample are one. It says whether one is made.
func (p *shortParts) came(l *line, got Fetched) bool {
	if len(got.Data) >= leastSample {
		return true // the line has taken it
	}
	p.bytes, p.took = p.bytes+int64(len(got.Data)), p.took+got.Transfer
	if p.bytes < leastSample {
		return false
	}
	l.sample(p.bytes, p.took, 0, l.loop.Now())
	*p = shortParts{}
	return true
}
