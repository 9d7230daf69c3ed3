package viewer

import "time"

// playhead is where the player is on the timeline. It was at position at the moment since, and has moved on from there
// while playing.
type playhead struct {
	loop     Loop
	position time.Duration
	since    time.Time
	playing  bool
}

// now is where it is.
func (h *playhead) now() time.Duration {
	if !h.playing {
		return h.position
	}
	return h.position + h.loop.Now().Sub(h.since)
}

// put moves it.
func (h *playhead) put(to time.Duration) { h.position, h.since = to, h.loop.Now() }

// seeks are the jumps of the viewer, and the time that it waited after them, which is no stall.
type seeks struct {
	count  int
	waited time.Duration
	at     time.Time // of the last
}

// faults are failed fetches of the player.
type faults struct {
	count int
	last  error
}

func (f *faults) add(err error) { f.count, f.last = f.count+1, err }
