package tracker

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// drainEach is how much of a drain's time each session takes at most: few are gone quickly.
	drainEach = 10 * time.Millisecond
	// drainStep is how often a drain sends the next ones away.
	drainStep = 10 * time.Millisecond
)

// sendAway asks the viewer to come back after a time, to any tracker, and closes the socket. Its links go on.
func (s *session) sendAway(after time.Duration) {
	s.send(&signal.Reconnect{AfterMs: after.Milliseconds()})
	s.Drain()
}

// Drain stops taking sessions in and gives the homes of swarms up. Where another tracker lives, it hands its viewers over one
// after the other within DrainSpread, and returns when that is done; those that wait are served as before. Where there is
// none it asks all to come back after a time of their own within DrainSpread.
func (t *Tracker) Drain() {
	if !t.admission.drain() {
		return
	}
	sessions := t.sessions.close()
	away := make([]func(after time.Duration), 0, len(sessions))
	for _, s := range sessions {
		away = append(away, s.sendAway)
	}
	if t.torrents != nil {
		for _, closes := range t.torrents.Drain() {
			away = append(away, func(time.Duration) { closes() })
		}
	}
	t.roster.drain()
	t.beat(false)
	spread := min(t.cfg.DrainSpread, time.Duration(len(away))*drainEach)
	if others, _ := t.roster.load(); others == 0 || !t.bus.Connected() {
		for i, f := range away {
			f(t.cfg.DrainSpread * time.Duration(i+1) / time.Duration(len(away)+1))
		}
		return
	}
	t.admission.handing.Store(true)
	steps := max(1, int(spread/drainStep))
	step := time.NewTicker(drainStep)
	defer step.Stop()
	for chunk := range slices.Chunk(away, max(1, (len(away)+steps-1)/steps)) {
		for _, f := range chunk {
			f(0)
		}
		<-step.C
	}
}
