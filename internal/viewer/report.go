package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// report is what a title has to report to the tracker.
type report struct {
	loop    Loop
	ledger  *ledger
	observe func() // has the player count what it has seen until now
	at      time.Time
}

// take returns what was counted since the last time.
func (r *report) take(e *engine) signal.Stats {
	r.observe()
	now := r.loop.Now()
	m := r.ledger.take()
	if e != nil {
		m.Pacing = e.pacing.take()
	}
	m.Interval = max(1, now.Sub(r.at).Milliseconds())
	r.at = now
	return m
}
