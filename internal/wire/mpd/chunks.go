package mpd

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

const (
	// MinChunked is the shortest segment of a stream of chunks: each of them is a request.
	MinChunked = 500 * time.Millisecond
	// mostChunked is how many periods of a representation are told of as streams of chunks: the one that is now, and the next one.
	mostChunked = 2
)

// Chunks are the segments of a representation in one period, where they can be asked for while they are made (spec/parts.md, "Chunks"): of a
// live MPD, by a template with one duration, with an availabilityTimeOffset above 0 and no longer than a segment, and no word that they are
// complete then.
type Chunks struct {
	Duration time.Duration // of a segment
	Sooner   time.Duration // how long before its end a segment can be asked for
	Begins   time.Time     // the first segment, on the clock

	at     base
	media  template
	values values        // of the first segment
	start  time.Duration // of the first segment, on the timeline of the MPD
	ticks  uint64        // of a segment
	scale  uint64        // ticks in a second
	count  uint64        // segments; the largest number: the end of the period is not known
}

// Growing is a segment that can be asked for while it is made.
type Growing struct {
	Object
	Sequence int64         // where it is on the timeline of the MPD, in durations of a segment as whole microseconds, rounded
	Asked    time.Time     // when it can be asked for
	Start    time.Duration // as of a Segment
}

// Next is the first segment that can be asked for only after a time, however far that is ahead; false: the period has none.
func (c *Chunks) Next(after time.Time) (Growing, bool) {
	i := uint64(0)
	if elapsed := after.Sub(c.Begins.Add(-c.Sooner)); elapsed > 0 {
		i = scaled(uint64(elapsed), c.scale, uint64(time.Second), false) / c.ticks
	}
	for range 2 { // the end of a segment is rounded down
		if asked, ok := c.asked(i); ok && asked.After(after) {
			return c.segment(i, asked)
		}
		i++
	}
	return Growing{}, false
}

// asked is when segment i can be asked for.
func (c *Chunks) asked(i uint64) (time.Time, bool) {
	over, ticks := bits.Mul64(i+1, c.ticks)
	if i >= c.count || over > 0 {
		return time.Time{}, false
	}
	return c.Begins.Add(span(ticks, c.scale) - c.Sooner), true
}

func (c *Chunks) segment(i uint64, asked time.Time) (g Growing, ok bool) {
	v := c.values
	var over1, over2 uint64
	v.number, over1 = bits.Add64(v.number, i, 0)
	v.time, over2 = bits.Add64(v.time, i*c.ticks, 0)
	if over1+over2 > 0 {
		return g, false
	}
	ref, ok := c.media.fill(v)
	if !ok {
		return g, false
	}
	to, err := c.at.resolve(ref)
	start := c.start + span(i*c.ticks, c.scale)
	return Growing{Object{URL: to.url, Absolute: to.absolute}, c.Sequence(start), asked, start}, err == nil
}

// Growing are the segments that can be asked for at a time and are not complete.
func (c *Chunks) Growing(now time.Time) (all []Growing) {
	for after := now.Add(-c.Sooner); ; {
		g, ok := c.Next(after)
		if !ok || g.Asked.After(now) {
			return all
		}
		all, after = append(all, g), g.Asked
	}
}

// Sequence is where a segment is on the timeline that starts there. Players know the duration as whole microseconds at best: where the timeline
// began in 1970, a part of one is many segments.
func (c *Chunks) Sequence(at time.Duration) int64 {
	start, lasts := uint64(max(at, 0)), uint64(c.Duration.Round(time.Microsecond))
	return int64(start/lasts + start%lasts/((lasts+1)/2))
}

// Weight is what the chunks take in memory, bytes.
func (c *Chunks) Weight() int64 {
	n := 512 + len(c.at.url.Path) + len(c.at.url.RawQuery)
	for _, p := range c.media {
		n += 48 + len(p.text)
	}
	return int64(n)
}

// chunks notes that the segments of the period can be asked for while they are made. What is wrong with that does not keep complete segments
// from being listed.
func (w *writer) chunks(a *addressing, t template, scale uint64) {
	s := w.stretch
	begins := w.start.Add(s.start)
	if !w.live || a.Timeline != nil || s.ends && !begins.Add(s.duration).After(w.now) || len(w.out.Chunks) == mostChunked {
		return
	}
	sooner := w.at.sooner.and(a.availability)
	if sooner.refused != nil {
		w.out.Refused = sooner.refused
		return
	}
	if sooner.complete {
		return
	}
	c := &Chunks{
		Duration: span(*a.Duration, scale), Sooner: sooner.by, Begins: begins, at: w.at, media: t, values: w.values, start: s.start,
		ticks: *a.Duration, scale: scale, count: math.MaxUint64,
	}
	tooLong := float64(w.values.bandwidth)/8*c.Duration.Seconds() > segment.MaxLength
	if c.Sooner <= 0 || c.Sooner > c.Duration || c.Duration < MinChunked || tooLong {
		return
	}
	c.values.number, c.values.time = valueOf(a.StartNumber, 1), valueOf(a.Offset, 0)
	if s.ends {
		c.count = partsOf(ticks(s.duration, scale), c.ticks)
	}
	c.count = a.upTo(c.values.number, c.count)
	w.out.Chunks = append(w.out.Chunks, c)
}

// sooner is how much sooner than complete segments can be asked for, by all that is said at the levels of an MPD.
type sooner struct {
	by       time.Duration
	complete bool // they are complete then
	refused  *Error
}

// and adds what one level says, in seconds. INF is longer than any segment.
func (s sooner) and(a availability) sooner {
	switch strings.TrimSpace(a.Complete) {
	case "true", "1": // not where it is left out: then it may be made still, whatever the standard says
		s.complete = true
	}
	text := strings.TrimSpace(a.Sooner)
	if text == "" {
		return s
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) {
		s.refused = refuse(Malformed, "an availabilityTimeOffset of %.32q", text)
		return s
	}
	const most = maxSeconds / 1024 // as many levels do not overflow
	s.by += time.Duration(max(-most, min(seconds, most)) * float64(time.Second))
	return s
}
