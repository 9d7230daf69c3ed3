package viewer

import (
	"cmp"
	"time"
)

// playhead is where the player is on the timeline. It was at position at the moment since, and has moved on from there
// while playing.
type playhead struct {
	loop     Loop
	position time.Duration
	since    time.Time
	playing  bool
	rate     float64 // how fast it plays; 0 is 1
}

// speed is how fast it plays.
func (h *playhead) speed() float64 { return cmp.Or(h.rate, 1) }

// now is where it is.
func (h *playhead) now() time.Duration {
	if !h.playing {
		return h.position
	}
	return h.position + time.Duration(float64(h.loop.Now().Sub(h.since))*h.speed())
}

// put moves it.
func (h *playhead) put(to time.Duration) { h.position, h.since = to, h.loop.Now() }

// seeks are the jumps of the viewer, and the time that it waited after them, which is no stall.
type seeks struct {
	count  int
	waited time.Duration
	at     time.Time // of the last
	open   bool      // nothing was there: it goes on when a segment has come
}

// faults are failed fetches of the player.
type faults struct {
	count int
	last  error
}

func (f *faults) add(err error) { f.count, f.last = f.count+1, err }
