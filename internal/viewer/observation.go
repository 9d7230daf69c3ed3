package viewer

import (
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// observation counts what a person would see: the startup delay, what was played, switches and stalls.
type observation struct {
	loop   Loop
	ledger *ledger

	screen  *rendition    // what was shown last
	time    time.Duration // played and not yet counted: less than a millisecond
	bits    float64       // likewise: less than one
	lag     lag           // behind the live edge
	live    time.Duration // played of a live stream and not yet counted: less than a millisecond
	behindS float64       // likewise: less than one
	stalled time.Time     // when the stall that goes on began; zero: there is none
}

// pictured counts the first picture.
func (o *observation) pictured(after time.Duration) {
	o.ledger.both(func(s *signal.Stats) { s.StartupMs = after.Milliseconds() })
}

// played notes a stretch that was played in one rendition.
func (o *observation) played(d time.Duration, shown *rendition) {
	o.time += d
	o.bits += d.Seconds() * float64(shown.bitrate)
	if shown == o.screen {
		return
	}
	if o.screen != nil { // the first rendition is no switch
		o.ledger.both(func(s *signal.Stats) { s.Switches++ })
	}
	o.screen = shown
}

// count counts whole milliseconds and bits of what was played.
func (o *observation) count() {
	ms, bits := o.time.Milliseconds(), int64(math.Round(o.bits))
	o.time -= time.Duration(ms) * time.Millisecond
	o.bits -= float64(bits)
	o.ledger.both(func(s *signal.Stats) { s.PlayedMs += ms; s.PlayedBits += bits })
	if ms := o.live.Milliseconds(); ms > 0 {
		lag := int64(o.behindS)
		o.live -= time.Duration(ms) * time.Millisecond
		o.behindS -= float64(lag)
		o.ledger.both(func(s *signal.Stats) { s.LiveMs += ms; s.LiveLag += lag })
	}
}

// stall begins one.
func (o *observation) stall() {
	o.stalled = o.loop.Now()
	o.ledger.both(func(s *signal.Stats) { s.Stalls++ })
}

// endStall counts the stall that goes on, if there is one.
func (o *observation) endStall() {
	if o.stalled.IsZero() {
		return
	}
	ms := o.loop.Now().Sub(o.stalled).Milliseconds()
	o.stalled = time.Time{}
	o.ledger.both(func(s *signal.Stats) { s.StallMs += ms })
}

// soFar counts the stall that goes on up to now.
func (o *observation) soFar() {
	if !o.stalled.IsZero() {
		o.endStall()
		o.stalled = o.loop.Now()
	}
}

// lag is how far behind the stream's wall clock a playhead was, over the time in which that is known.
type lag struct {
	seconds, of float64
	last        time.Duration
}

func (l lag) mean() time.Duration {
	if l.of == 0 {
		return 0
	}
	return time.Duration(l.seconds / l.of * float64(time.Second))
}

// behind notes how far behind the stream a stretch was played; 0: unknown.
func (o *observation) behind(d, latency time.Duration) {
	if latency > 0 {
		o.lag.seconds += d.Seconds() * latency.Seconds()
		o.lag.of += d.Seconds()
		o.lag.last = latency
		o.live += d
		o.behindS += float64(d) / float64(time.Millisecond) * latency.Seconds()
	}
}
