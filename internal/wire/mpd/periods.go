package mpd

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// InPeriod is what is listed of a representation in one period.
type InPeriod struct {
	Period, Set     int // which of the MPD, and which adaptation set of it, both from 0
	Start, Duration time.Duration
	Ends            bool    // the duration is known
	From, To        int     // its Segments
	Index           *Index  // what names further ones, behind those; nil: nothing does
	Chunks          *Chunks // of one that may go on, where segments can be asked for while they are made; nil: they cannot
}

// Updating is when an MPD is to be loaded again, and from where.
type Updating struct {
	Start   time.Time     // availabilityStartTime; zero: the MPD is not live
	Updates bool          // a minimumUpdatePeriod is said
	Update  time.Duration // the minimumUpdatePeriod
	Delay   time.Duration // how far behind the clock it is to be played (suggestedPresentationDelay); 0: not said
	Latency time.Duration // likewise by a player that takes segments while they are made (Latency of a ServiceDescription); 0: not said
	At      *url.URL      // where it is loaded from again (Location); nil: from where it was
}

// updatingOf reads what only players need. A value that is not what it has to be is taken as not said: it keeps no seed from the segments.
func updatingOf(d *document, at *url.URL, start time.Time) (u Updating) {
	u.Start = start
	var err error
	if u.Update, u.Updates, err = durationOf(d.Update); err != nil {
		u.Updates = false
	}
	u.Delay, _, _ = durationOf(d.Delay)
	for _, one := range d.Latencies {
		if ms, err := strconv.ParseUint(strings.TrimSpace(one.Target), 10, 32); err == nil && u.Latency == 0 {
			u.Latency = time.Duration(ms) * time.Millisecond
		}
	}
	if len(d.Location) > 0 && len(d.Location[0]) <= maxReference {
		if to, err := url.Parse(strings.TrimSpace(d.Location[0])); err == nil {
			u.At = at.ResolveReference(to)
		}
	}
	return u
}

// inPeriod is what was added of the period behind so many segments, indexes and streams of chunks.
func (w *writer) inPeriod(segments, indexes, chunks int) InPeriod {
	s := w.stretch
	in := InPeriod{s.period, s.set, s.start, s.duration, s.ends, segments, len(w.out.Segments), nil, nil}
	if chunks < len(w.out.Chunks) {
		in.Chunks = w.out.Chunks[chunks]
	}
	if indexes < len(w.out.Indexes) {
		x := w.out.Indexes[indexes]
		in.Index = &x
	}
	return in
}

// placed is where in the presentation a time of the media is.
func (w *writer) placed(a *addressing, at, scale uint64) time.Duration {
	offset := valueOf(a.Offset, 0)
	if at < offset {
		return w.stretch.start - span(offset-at, scale)
	}
	return later(w.stretch.start, span(at-offset, scale))
}

// later is a moment so much later, or the last one that there is.
func later(t, by time.Duration) time.Duration {
	if t > 0 && by > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + by
}

// starts are where the segments of a list are in the presentation: where the series have them by their numbers, or behind the one before.
func (w *writer) starts(a *addressing, all []series, scale uint64) []time.Duration {
	list := make([]time.Duration, 0, len(a.URLs))
	at, duration, number := valueOf(a.Offset, 0), valueOf(a.Duration, 0), valueOf(a.StartNumber, 1)
	for range a.URLs {
		for len(all) > 0 && number >= all[0].number && number-all[0].number >= all[0].count {
			all = all[1:]
		}
		if len(all) > 0 && number >= all[0].number {
			at, duration = all[0].time+(number-all[0].number)*all[0].duration, all[0].duration
		}
		list = append(list, w.placed(a, at, scale))
		at += min(duration, math.MaxInt64-min(at, math.MaxInt64))
		number++
	}
	return list
}
