package viewer

import (
	"maps"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

const manyRemembered = 256 // of more, those are forgotten whose time is over

// remembered are peers, each until a moment of its own.
type remembered struct {
	loop  Loop
	until map[signal.ID]time.Time
}

// hold remembers a peer for a while, from now on.
func (r *remembered) hold(id signal.ID, d time.Duration) {
	now := r.loop.Now()
	if r.until == nil {
		r.until = map[signal.ID]time.Time{}
	}
	if len(r.until) >= manyRemembered {
		maps.DeleteFunc(r.until, func(_ signal.ID, until time.Time) bool { return !until.After(now) })
	}
	if until := now.Add(d); until.After(r.until[id]) {
		r.until[id] = until
	}
}

// left is for how much longer a peer is remembered; not above 0: it is not.
func (r *remembered) left(id signal.ID) time.Duration { return r.until[id].Sub(r.loop.Now()) }

func (r *remembered) holds(id signal.ID) bool { return r.left(id) > 0 }
