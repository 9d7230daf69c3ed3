package viewer

import (
	"math/rand/v2"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const behind = 30 * time.Second // kept behind the playhead in the range told to the tracker

// title is one film that is played: its membership of a swarm, the loading of its segments and the report. The twin of the
// library's title.
type title struct {
	*membership
	loading loading
	report  report
	line    *line
	speed   float64
	span    *signal.Range
}

// titleHost is what a title needs of the viewer.
type titleHost struct {
	ledger   *ledger
	notice   func(code, text string)
	observe  func()                                 // has the player count what it has seen until now
	playhead func() (position, ready time.Duration) // the player's
}

func newTitle(cfg *Config, ports Ports, random *rand.Rand, host titleHost) *title {
	now := ports.Loop.Now()
	t := &title{line: newLine(ports.Loop, ports.Origin), speed: cfg.Speed}
	t.report = report{loop: ports.Loop, ledger: host.ledger, observe: host.observe, at: now}
	t.membership = newMembership(cfg, ports, random, membershipHost{
		titleHost: host, line: t.line, span: func() *signal.Range { return t.span }, sendStats: t.sendStats, decided: t.loading.goOn,
	})
	t.loading = loading{
		loop: ports.Loop, line: t.line, ledger: host.ledger, shares: func() bool { return t.session != nil && !t.closed },
		engine: func() *engine {
			if t.closed {
				return nil
			}
			return t.engine
		},
		reason: func() schedule.Reason { return t.off },
	}
	t.membership.start()
	return t
}

// load gets a segment.
func (t *title) load(r request, done func(*Result, error)) *pull {
	t.noteRange(r)
	return t.loading.load(r, done)
}

func (t *title) noteRange(r request) {
	last := r.Reference
	if n := min(lookahead, len(r.upcoming)); n > 0 {
		last = r.upcoming[n-1]
	}
	// The tracker knows the timeline of the film, whatever the speed at which it is shown here.
	ms := func(d time.Duration) int64 { return max(0, int64(float64((d+r.zero).Milliseconds())*t.speed)) }
	t.span = &signal.Range{From: ms(r.Start - r.deadline() - behind), To: ms(last.Start + last.Duration)}
	if t.span.To < t.span.From {
		t.span.To = t.span.From
	}
}

// sendStats reports what was counted since the last time.
func (t *title) sendStats() {
	if t.swarm.Swarm.IsZero() || t.session == nil || t.session.state != sessionReady {
		return
	}
	m := t.report.take(t.engine)
	m.Swarm = t.swarm.Swarm
	t.session.send(&m)
}

// stop leaves the swarm and lets go of everything.
func (t *title) stop() {
	if t.closed {
		return
	}
	if t.engine != nil {
		t.engine.ahead.loseAll()
	}
	t.sendStats()
	t.membership.stop()
}
