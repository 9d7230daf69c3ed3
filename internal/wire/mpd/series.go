package mpd

import (
	"math"
	"time"
)

// series are segments of one duration, one after the other.
type series struct {
	number, time, duration, count uint64
}

// without leaves the first few out.
func (s series) without(gone uint64) series {
	return series{s.number + gone, s.time + gone*s.duration, s.duration, s.count - gone}
}

// partsOf is how many parts of a length a whole has, the last one perhaps shorter.
func partsOf(whole, length uint64) uint64 { return whole/length + min(whole%length, 1) }

// upTo is how many of so many segments, from a number on, there are up to the endNumber.
func (a *addressing) upTo(number, count uint64) uint64 {
	switch end := a.EndNumber; {
	case end == nil || count == 0:
		return count
	case *end < number:
		return 0
	default:
		return min(count-1, *end-number) + 1
	}
}

// series are the segments of the period by number and time, before any is made: what they cost is bounded by their number. most is how
// many there are where that is said otherwise.
func (w *writer) series(a *addressing, scale, most uint64) ([]series, error) {
	if scale == 0 || scale > math.MaxUint32 {
		return nil, refuse(Malformed, "a timescale of %d", scale)
	}
	var all []series
	var err error
	switch {
	case a.Timeline != nil:
		all, err = w.timeline(a, scale)
	case a.Duration != nil && *a.Duration > 0:
		all, err = w.regular(a, scale, most)
	case most < math.MaxUint64:
		return nil, nil // a list may leave out how long its segments are
	default:
		err = refuse(NoDuration, "it is not said how long the segments of %.64q are", w.values.id)
	}
	if err != nil {
		return nil, err
	}
	return w.newest(all), nil
}

// regular are segments of one duration for all of a period, or as far as they are over.
func (w *writer) regular(a *addressing, scale, most uint64) ([]series, error) {
	s := series{number: valueOf(a.StartNumber, 1), time: valueOf(a.Offset, 0), duration: *a.Duration, count: most}
	if w.stretch.ends {
		s.count = min(s.count, partsOf(ticks(w.stretch.duration, scale), s.duration))
	}
	if w.live {
		elapsed := w.now.Sub(w.start) - w.stretch.start
		s.count = min(s.count, scaled(uint64(max(elapsed, 0)), scale, uint64(time.Second), false)/s.duration)
		if back := elapsed - w.window; w.window > 0 && back > 0 {
			// A segment stays until the window, and its own duration once more, have passed since its end.
			over := partsOf(ticks(back, scale), s.duration)
			s = s.without(min(over-min(over, 2), s.count))
		}
	}
	s.count = a.upTo(s.number, s.count)
	if s.count == math.MaxUint64 {
		return nil, refuse(NoDuration, "it is not said how long the period of %.64q is", w.values.id)
	}
	return []series{s}, nil
}

// timeline are segments as they are listed by time.
func (w *writer) timeline(a *addressing, scale uint64) ([]series, error) {
	if w.runs += len(a.Timeline.Runs); w.runs > maxRuns {
		return nil, refuse(TooLarge, "timelines of more than %d runs, counted for each representation", maxRuns)
	}
	offset := valueOf(a.Offset, 0)
	number, at := valueOf(a.StartNumber, 1), uint64(0)
	end := uint64(math.MaxUint64) // of the period, or of what there can be yet
	if w.stretch.ends {
		end = offset + ticks(w.stretch.duration, scale)
	}
	if w.live {
		end = min(end, offset+ticks(w.now.Sub(w.start)-w.stretch.start, scale))
	}
	all := make([]series, 0, len(a.Timeline.Runs))
	for i, s := range a.Timeline.Runs {
		at, number = valueOf(s.Time, at), valueOf(s.Number, number)
		if s.Duration == 0 || at > math.MaxInt64 || s.Duration > math.MaxInt64>>17 {
			return nil, refuse(Malformed, "a segment of %d at %d", s.Duration, at)
		}
		count := uint64(max(s.Repeat, 0)) + 1
		if s.Repeat < 0 {
			until := end
			if i+1 < len(a.Timeline.Runs) && a.Timeline.Runs[i+1].Time != nil {
				until = *a.Timeline.Runs[i+1].Time
			}
			if until == math.MaxUint64 {
				return nil, refuse(NoDuration, "it is not said where a run of segments of %.64q ends", w.values.id)
			}
			length := max(until, at) - at
			count = length / s.Duration
			if !w.live || until != end {
				count += min(length%s.Duration, 1)
			}
		}
		if count > MaxSegments {
			if !w.live {
				return nil, refuse(TooLarge, "more than %d segments", MaxSegments)
			}
			skip := count - MaxSegments // they are long over
			number, at, count = number+skip, at+min(skip, math.MaxInt64/s.Duration)*s.Duration, MaxSegments
		}
		all = append(all, series{number, at, s.Duration, count})
		number, at = number+count, at+count*s.Duration
	}
	return all, nil
}

// newest leaves the newest segments of a live representation.
func (w *writer) newest(all []series) []series {
	if !w.live {
		return all
	}
	room := uint64(MaxLive)
	for i := len(all) - 1; i >= 0; i-- {
		s := &all[i]
		if gone := s.count - min(s.count, room); gone > 0 {
			*s = s.without(gone)
			return all[i:]
		}
		room -= s.count
	}
	return all
}
