package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

const updateDebounce = 200 * time.Millisecond

// updates tell the tracker how a joined title stands, regularly and soon after a change.
type updates struct {
	timers    timers
	session   *session
	links     *links
	span      func() *signal.Range // what the viewer holds and will want next
	sendStats func()

	swarm    signal.ID // joined; zero: none
	every    time.Duration
	stats    time.Duration
	lastWant int // that the tracker was told
}

// begin tells of a swarm that was joined, at the intervals of the welcome.
func (u *updates) begin(swarm signal.ID, w *signal.Welcome) {
	u.swarm = swarm
	u.every, u.stats = time.Duration(w.UpdateEvery)*time.Millisecond, time.Duration(w.StatsInterval)*time.Millisecond
	u.timers.set("update", u.every, u.send)
	u.timers.set("stats", u.stats, u.tick)
}

func (u *updates) send() {
	u.timers.set("update", u.every, u.send)
	u.lastWant = u.links.want()
	u.session.send(&signal.Update{
		Swarm: u.swarm, Range: u.span(), Saturated: u.lastWant == 0, Links: u.links.count(true), Want: u.lastWant,
	})
}

// soon tells of a change, together with what else changes soon.
func (u *updates) soon() {
	if !u.swarm.IsZero() && !u.timers.isSet("soon") && u.session.state == sessionReady {
		u.timers.set("soon", updateDebounce, u.send)
	}
}

// changed tells that links came or went, if the tracker should introduce more peers.
func (u *updates) changed() {
	if u.links.want() > u.lastWant || u.links.count(true) == 0 {
		u.soon()
	}
}

func (u *updates) tick() {
	u.timers.set("stats", u.stats, u.tick)
	u.sendStats()
}

// stop tells nothing more, until the next begin.
func (u *updates) stop() { u.timers.clear("update", "stats", "soon") }
