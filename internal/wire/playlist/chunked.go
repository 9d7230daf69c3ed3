package playlist

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// Chunked names the segments of a stream of chunks (spec/parts.md, "Chunks"), also those that are still to come.
type Chunked struct {
	periods []*mpd.Chunks // that is now, and that comes next
	names   resolver
}

// Growing is a segment that can be asked for while it is made.
type Growing struct {
	Entry
	Sequence int64
	Asked    time.Time     // when it can be asked for
	Complete time.Time     // when all of it can be asked for
	Duration time.Duration // of a segment
}

// Duration is that of a segment.
func (c *Chunked) Duration() time.Duration { return c.periods[0].Duration }

// Weight is what it takes in memory, bytes.
func (c *Chunked) Weight() (n int64) {
	for _, p := range c.periods {
		n += p.Weight()
	}
	return n
}

// Next is the first segment of the site's that can be asked for only after a time; false: none is known. A period of another host, as of an
// ad, is passed over.
func (c *Chunked) Next(after time.Time) (next Growing, ok bool) {
	for _, p := range c.periods {
		one, known := p.Next(after)
		if !known || ok && !one.Asked.Before(next.Asked) {
			continue
		}
		if e, named := c.names.object(one.Object); named {
			next, ok = Growing{e, one.Sequence, one.Asked, one.Asked.Add(p.Sooner), p.Duration}, true
		}
	}
	return next, ok
}
