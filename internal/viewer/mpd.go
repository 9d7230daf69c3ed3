package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// representation is what an MPD lists of a rendition, one entry for each period that has it.
type representation struct {
	id      string
	periods []inPeriod
}

// inPeriod is what is listed of a rendition in one period.
type inPeriod struct {
	mpd.InPeriod
	segments []mpd.Segment // an initialization segment before the first one that needs it
	begun    []mpd.Segment // behind those: that can be asked for while they are made
}

// indexed says whether an index of a period has yet to be loaded.
func (r *representation) indexed() bool {
	return slices.ContainsFunc(r.periods, func(p inPeriod) bool { return p.Index != nil })
}

// choice is a representation of an MPD in one period.
type choice struct {
	*mpd.Representation
	in *mpd.InPeriod
}

// setsOf are the adaptation sets of an MPD that are played side by side, one of each kind in each period: what is listed of the kind,
// by the number of the period. Of several sets of a kind it is the first, or the one that has a representation of those that are known.
func setsOf(m *mpd.Manifest, kind string, known []*rendition) map[int][]choice {
	chosen, sets := map[int]int{}, map[int][]choice{}
	better := map[int]bool{} // the set of the period has one that is known
	for _, r := range m.Representations {
		is := slices.ContainsFunc(known, func(l *rendition) bool { return l.mpd.id == r.ID })
		for _, in := range r.Periods {
			set, has := chosen[in.Period]
			if r.Type == kind && (!has || is && !better[in.Period] || !is && !better[in.Period] && in.Set < set) {
				chosen[in.Period], better[in.Period] = in.Set, is
			}
		}
	}
	for _, r := range m.Representations {
		for i := range r.Periods {
			in := &r.Periods[i]
			if set, has := chosen[in.Period]; r.Type == kind && has && set == in.Set {
				sets[in.Period] = append(sets[in.Period], choice{r, in})
			}
		}
	}
	return sets
}

// levelsOf are the renditions of the first period that has any of a kind, the lowest first. at is the URL of the MPD.
func levelsOf(m *mpd.Manifest, kind, at string, speed float64) []*rendition {
	sets := setsOf(m, kind, nil)
	if len(sets) == 0 {
		return nil
	}
	var levels []*rendition
	for _, r := range sets[slices.Min(slices.Collect(maps.Keys(sets)))] {
		levels = append(levels, &rendition{
			name: r.ID, url: mpd.Name(at, r.ID), bitrate: int64(float64(r.Bandwidth) * speed), mpd: &representation{id: r.ID},
		})
	}
	slices.SortStableFunc(levels, func(a, b *rendition) int { return cmp.Compare(a.bitrate, b.bitrate) })
	return levels
}

// representationOf is what an MPD lists of a rendition: in a period that has none of its ID, of the one whose bitrate is nearest.
func representationOf(sets map[int][]choice, l *rendition, speed float64) *representation {
	out := &representation{id: l.mpd.id}
	for _, n := range slices.Sorted(maps.Keys(sets)) {
		r := slices.MinFunc(sets[n], func(a, b choice) int {
			return cmp.Compare(l.unlike(a.Representation, speed), l.unlike(b.Representation, speed))
		})
		out.periods = append(out.periods, inPeriod{InPeriod: *r.in, segments: r.Segments[r.in.From:r.in.To:r.in.To]})
	}
	return out
}

// begin adds the segments that can be asked for now, though they are not complete.
func (r *representation) begin(now time.Time) {
	for i := range r.periods {
		in := &r.periods[i]
		if in.Chunks == nil {
			continue
		}
		for _, g := range in.Chunks.Growing(now) {
			in.begun = append(in.begun, mpd.Segment{Object: g.Object, Start: g.Start, Duration: in.Chunks.Duration})
		}
	}
}

// unlike is how far a representation is from a rendition, bits per second; below zero: it is the same.
func (l *rendition) unlike(r *mpd.Representation, speed float64) float64 {
	if r.ID == l.mpd.id {
		return -1
	}
	return math.Abs(float64(r.Bandwidth)*speed - float64(l.bitrate))
}

// timeline is how moments of an MPD are those of the player, whose zero is the zero of the MPD that came first.
type timeline struct {
	shift time.Duration // how much later the zero of this MPD is
	speed float64
	zero  time.Time // wall clock of the player's zero; zero: unknown
	low   bool      // segments are played while they are made
}

// entries puts the segments of a rendition on the timeline: in order, without overlaps, and without the gaps of less than half a segment
// that come from rounding, from sound that is cut elsewhere than the picture, and from periods that end within a segment.
func (r *representation) entries(on timeline) []entryRef {
	var list []entryRef
	for _, in := range r.periods {
		var init *Reference
		for _, s := range slices.Concat(in.segments, in.begun) {
			if s.Init {
				ref := referenceTo(s.Object)
				ref.Start = on.place(in.Start)
				init = &ref
				continue
			}
			if e, ok := in.entry(s, on); ok && (len(list) == 0 || list[len(list)-1].Start < e.Start) {
				if on.low && in.Chunks != nil {
					e.chunked, e.number = in.Chunks, in.Chunks.Sequence(s.Start)
				}
				if e.init = init; len(list) > 0 {
					e.sequence = max(e.sequence, list[len(list)-1].sequence+1)
				}
				list = append(list, e)
			}
		}
		if n := len(list); n > 0 && in.Ends {
			list[n-1].meet(on.place(in.Start + in.Duration))
		}
	}
	for i := 1; i < len(list); i++ {
		list[i-1].meet(list[i].Start)
	}
	return list
}

// entry is a segment of the period on the timeline; ok is false where there is nothing to be seen of it.
func (in *inPeriod) entry(s mpd.Segment, on timeline) (e entryRef, ok bool) {
	from, to := s.Start, s.Start+s.Duration
	if in.Ends {
		end := in.Start + in.Duration
		if s.Duration == 0 && in.lone() {
			to = end
		}
		to = min(to, end)
	}
	from = max(from, in.Start)
	if from < 0 || to-from < time.Microsecond || to-from > longestSegment*time.Second {
		return e, false
	}
	e = entryRef{Reference: referenceTo(s.Object), place: place{(from + on.shift).Milliseconds(), whole}}
	e.Start = on.place(from)
	e.Duration = max(time.Microsecond, on.place(to)-e.Start)
	if !on.zero.IsZero() {
		e.at = on.zero.Add(from + on.shift)
	}
	return e, true
}

// lone says whether one segment is all that is listed: only then need it not be said how long it is.
func (in *inPeriod) lone() bool {
	n := 0
	for _, s := range in.segments {
		if !s.Init {
			n++
		}
	}
	return n == 1
}

// place is where a moment of the MPD is.
func (on timeline) place(t time.Duration) time.Duration {
	if on.speed == 1 {
		return t + on.shift
	}
	return time.Duration(float64(t) / on.speed).Round(time.Microsecond)
}

// meet has an entry end at a moment that it overlaps, or that is less than half its length behind its end.
func (e *entryRef) meet(next time.Duration) {
	if d := next - e.Start; d > 0 && d-e.Duration < e.Duration/2 {
		e.Duration = d
	}
}

func referenceTo(o mpd.Object) Reference {
	return Reference{URL: o.URL.String(), Ranged: o.Ranged, First: o.First, Last: o.Last}
}

// alike gives the segments of a rendition the places that another rendition of the track gives them; those that it does not list are left
// out. ok is false where they are cut elsewhere: the player would not find one behind the other.
func alike(list, as []entryRef) (out []entryRef, ok bool) {
	other := rendition{list: as}
	ok = true
	next := 0
	for _, e := range list {
		at := other.at(e.Start + e.Duration/2)
		if at == len(as) || e.Start+e.Duration <= as[0].Start {
			continue
		}
		o := as[at]
		if d := max(e.Start-o.Start, o.Start-e.Start); at < next || d >= (o.Duration+1)/2 {
			ok = false
			continue
		}
		next = at + 1
		e.place, e.Start, e.Duration = o.place, o.Start, o.Duration
		out = append(out, e)
	}
	return out, ok
}

// refusal is why nothing of an MPD can be played.
func refusal(m *mpd.Manifest) error {
	if m.Refused != nil {
		return m.Refused
	}
	for _, r := range m.Representations {
		if r.Refused != nil {
			return r.Refused
		}
	}
	return errors.New("no renditions")
}

// listMPD lists one as of now.
func listMPD(doc *mpd.Document, at *url.URL, now time.Time, speed float64) (*mpd.Manifest, error) {
	m, err := doc.List(now)
	if err == nil && m.Live && speed != 1 {
		err = errHurried
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", at.Path, err)
	}
	return m, nil
}

// take adds what the index of a period names.
func (r *representation) take(p *inPeriod, data []byte) error {
	named, err := p.Index.Segments(data)
	if err != nil {
		return err
	}
	n := len(named)
	for _, in := range r.periods {
		n += len(in.segments)
	}
	if n > playlist.MaxSegments {
		return &mpd.Error{Code: mpd.TooLarge, Detail: fmt.Sprintf("more than %d segments", playlist.MaxSegments)}
	}
	p.segments, p.Index = append(p.segments, named...), nil
	return nil
}
