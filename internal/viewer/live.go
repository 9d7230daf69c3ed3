package viewer

import (
	"math"
	"strings"
	"time"
)

const (
	holdTargets = 3 // target durations behind the end of a live playlist, where that does not say how far
	leastTarget = 100 * time.Millisecond
	wrapMs      = 4e12
)

// liveList is what is known of one live playlist beside its segments.
type liveList struct {
	growth
	ended bool
	began time.Time // when its last load began, or came where it was waited for
	end   place     // of what is behind the last
}

// live is a track of a live stream: its playlist is loaded again and again, segments leave it, and the playhead follows the edge
// (RFC 8216, sections 6.2.2, 6.3.3 and 6.3.4).
type live struct {
	t      *track
	last   *rendition // whose playlist came last; nil: the track is not live
	reload func()     // stops the timer
	loads  int        // how often the playlist was asked for: an answer to an older request is of no use
}

// goesOn says whether more segments may come.
func (v *live) goesOn() bool { return v.last != nil && !v.last.live.ended }

// outdated says whether the playlist of a rendition is to be loaded before a segment of it is chosen.
func (v *live) outdated(l *rendition) bool {
	if l.live == nil || l.live.ended || l == v.last || l.live.timed {
		return false
	}
	since := v.t.p.loop.Now().Sub(l.live.began)
	return since >= l.live.pace || l.live.end.compare(v.last.live.end) < 0 && since >= l.live.pace/4
}

// came takes a playlist.
func (v *live) came(l *rendition, list *mediaList, began time.Time) {
	v.schedule(l, v.took(l, list, began))
	if v.t.number == 0 {
		v.joined()
	}
	v.t.p.listed()
}

// took takes what a playlist lists, and says when after its load it is to be loaded again. One that is older than the last one of its
// rendition, as a stale cache has it, adds nothing.
func (v *live) took(l *rendition, list *mediaList, began time.Time) (again time.Duration) {
	p, end, again := v.t.p, place{}, list.pace
	if v.anew(l, list) {
		p.renumber(list.entries[0].sequence)
	}
	if n := len(list.entries); n > 0 {
		end = place{list.entries[n-1].sequence + 1, 0}
	}
	if list.next != nil {
		began, end, again = p.loop.Now(), *list.next, 0
	}
	old := l.live
	l.live = &liveList{growth: list.growth, ended: !list.live, began: began, end: end}
	older := old != nil && end.compare(old.end) <= 0
	if list.timed {
		// A live MPD lists by the clock what is not made any more when the stream is over, which the last one says. It may also give a
		// segment to another period.
		older = old != nil && list.live && end.compare(old.end) < 0
	}
	switch {
	case older:
		again = list.pace / 2
		l.live.end = old.end
	default:
		v.place(l, list)
		v.last = l
	}
	return again
}

// anew says whether a playlist with lower numbers than the last one is of a packager that has begun anew, and not one that a cache has
// kept: its clock has gone on, or, where there is none, it has no number that is known, or other segments under those that are.
func (v *live) anew(l *rendition, list *mediaList) bool {
	if v.last == nil || len(v.last.list) == 0 || len(list.entries) == 0 || list.timed {
		return false
	}
	known := v.last.list
	old, last := known[len(known)-1], list.entries[len(list.entries)-1]
	switch {
	case last.compare(old.place) >= 0:
		return false
	case !old.at.IsZero() && !last.at.IsZero():
		return last.at.After(old.at)
	}
	return last.sequence < known[0].sequence || l == v.last && others(known, list.entries)
}

// others says whether two playlists of one rendition have other segments under all numbers that both have. A number never gets another
// segment (RFC 8216, section 6.2.2), so a playlist that a cache has kept is not such a one.
func others(known, came []entryRef) (is bool) {
	i := 0
	for _, e := range came {
		for i < len(known) && known[i].compare(e.place) < 0 {
			i++
		}
		if i == len(known) || known[i].place != e.place {
			continue
		}
		if known[i].plain() == e.plain() {
			return false
		}
		is = true
	}
	return is
}

// plain is what a reference leads to, without its query: a playlist may have another token there whenever it is loaded.
func (r Reference) plain() Reference {
	r.URL, _, _ = strings.Cut(r.URL, "?")
	r.Start, r.Duration = 0, 0
	return r
}

// renumber gives what is known lower numbers than a packager that has begun anew: one that no segment has is between them, so that there is
// a gap on the timeline. What is buffered is played before it.
func (p *player) renumber(first int64) {
	last := int64(math.MinInt64)
	for _, t := range p.tracks {
		if l := t.any(); l != nil && len(l.list) > 0 {
			last = max(last, l.list[len(l.list)-1].sequence)
		}
	}
	for _, t := range p.tracks {
		t.renumber(first - 2 - last)
	}
}

func (t *track) renumber(by int64) {
	held := make(map[place]*rendition, len(t.held))
	for at, l := range t.held {
		at.sequence += by
		held[at] = l
	}
	t.held = held
	clear(t.inits) // there are others under the same names
	if t.asked != nil {
		t.asked.sequence += by
	}
	for _, l := range t.levels {
		for i := range l.list {
			l.list[i].sequence += by
		}
		if l.live != nil {
			l.live.end.sequence += by
			l.live.next = nil // the origin would not wait for it
		}
	}
}

// place gives the segments of a playlist their places on the timeline of the presentation, which is known from a playlist of the
// track, or of the first track. What has left the playlist stays while it is buffered.
func (v *live) place(l *rendition, list *mediaList) {
	known := v.known()
	shift := v.shift(known, list)
	var placed []entryRef
	for _, e := range known {
		if len(list.entries) > 0 && e.sequence >= list.entries[0].sequence {
			break
		}
		if v.last == nil || v.t.held[e.place] == nil {
			continue
		}
		if e.Start+e.Duration+behind < v.t.p.head.position {
			delete(v.t.held, e.place)
			continue
		}
		placed = append(placed, e)
	}
	for _, e := range list.entries {
		e.Start += shift
		placed = append(placed, e)
	}
	v.merge(known, placed)
	l.list = placed
}

// known are the segments that have a place on the timeline.
func (v *live) known() []entryRef {
	if v.last != nil {
		return v.last.list
	}
	if first := v.t.p.tracks[0].any(); first != nil {
		return first.list
	}
	return nil
}

// shift is what the times of a new playlist are moved by: it has a segment in common with what is known, or begins behind it.
func (v *live) shift(known []entryRef, list *mediaList) time.Duration {
	if len(known) == 0 || len(list.entries) == 0 || list.timed {
		return 0
	}
	i := 0
	for _, e := range list.entries {
		for i < len(known) && known[i].sequence < e.sequence {
			i++
		}
		if i < len(known) && known[i].sequence == e.sequence {
			return known[i].Start - known[i].within - (e.Start - e.within)
		}
	}
	last, next := known[len(known)-1], list.entries[0]
	if next.sequence < last.sequence {
		return last.Start + last.Duration - list.end()
	}
	if last.part != whole {
		return last.Start - last.within + list.gap(next.sequence-last.sequence)
	}
	return last.Start + last.Duration + list.gap(next.sequence-last.sequence-1)
}

// gap is how long segments take on the timeline that are not listed: a day at most, since numbers may go on anywhere.
func (m *mediaList) gap(segments int64) time.Duration {
	return time.Duration(min(float64(segments)*float64(m.target), float64(24*time.Hour)))
}

// end is the length of the playlist.
func (m *mediaList) end() time.Duration {
	last := m.entries[len(m.entries)-1]
	return last.Start + last.Duration
}

// schedule has the playlist of the rendition that is played loaded again.
func (v *live) schedule(l *rendition, again time.Duration) {
	v.stop()
	v.loads++ // a request that waits is of the rendition that was played before
	if l.live.ended {
		return
	}
	wait := l.live.began.Add(again).Sub(v.t.p.loop.Now())
	v.reload = v.t.p.loop.After(wait, func() {
		v.reload = nil
		v.load()
	})
}

func (v *live) load() {
	t := v.t
	l := v.last
	if t.level >= 0 && t.levels[t.level].fetched {
		l = t.levels[t.level]
	}
	began := t.p.loop.Now()
	v.loads++
	this := v.loads
	t.p.fetch(Fetch{URL: reloading(l.url, l.live.next)}, 0, func(got Fetched) error {
		if this != v.loads {
			return nil
		}
		if err := t.take(l, got, began); err != nil {
			return err
		}
		t.p.fill()
		return nil
	})
}

// zero is what a moment of the timeline, which begins where this viewer has joined, is moved by for others: they mean the wall clock of
// the stream, or count target durations by its sequence numbers, which may be a date or µs of the clock (spec/tracker-protocol.md, range).
func (v *live) zero(e entryRef) time.Duration {
	switch {
	case v.last == nil:
		return 0
	case e.at.IsZero():
		ms := math.Mod(float64(e.sequence)*float64(v.last.live.target.Milliseconds()), wrapMs)
		return time.Duration(ms)*time.Millisecond + e.within - e.Start
	}
	return time.Duration(e.at.UnixMilli())*time.Millisecond - e.Start
}

func (v *live) stop() {
	if v.reload != nil {
		v.reload()
		v.reload = nil
	}
}

// joined puts the playhead of a viewer that has just come where it is to be.
func (v *live) joined() {
	p := v.t.p
	if p.edge.placed || v.last == nil || len(v.last.list) == 0 {
		return
	}
	p.edge.placed = true
	if v.goesOn() {
		p.head.put(v.sync())
	}
}

// sync is where the playhead of a viewer at the edge is to be.
func (v *live) sync() time.Duration {
	l := v.last
	return max(l.list[0].Start, l.end()-l.live.holdBack)
}

// within is where a seek leads: no further than the edge, and to nothing that has left the playlist.
func (v *live) within(to time.Duration) time.Duration {
	if v.last == nil || len(v.last.list) == 0 {
		return to
	}
	if v.goesOn() {
		to = min(to, v.sync())
	}
	return max(to, v.last.list[0].Start)
}

// beyond is where playback goes on that finds nothing at a moment: at the edge if what was there has left the playlist, behind the gap
// if there is one. It is the moment itself where there is something, or nothing yet.
func (v *live) beyond(at time.Duration) time.Duration {
	l := v.last
	if l == nil {
		return at
	}
	i := l.at(at)
	if i >= len(l.list) || l.list[i].Start <= at {
		return at
	}
	to := l.list[i].Start
	if v.goesOn() && v.t.held[l.list[i].place] == nil {
		to = max(to, v.sync())
	}
	return to
}

// latency is how far a moment on the timeline that is played now is behind its wall clock; 0: unknown.
func (v *live) latency(at time.Duration) time.Duration {
	if v.last == nil || len(v.last.list) == 0 {
		return 0
	}
	l := v.last
	e := l.list[min(l.at(at), len(l.list)-1)]
	if e.at.IsZero() {
		return 0
	}
	return v.t.p.loop.Now().Sub(e.at.Add(at - e.Start))
}
