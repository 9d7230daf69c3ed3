package tracker

import (
	"math/rand/v2"
	"time"
)

const (
	// shedAbove is from which share of its sockets on a tracker sheds sessions, permille.
	shedAbove = 900
	// shedShare of its sessions goes at a time at most, permille: what others have is known a beat later.
	shedShare = 50
	// shedSpread is the time over which those that were sent away come back.
	shedSpread = 5 * time.Second
)

// shed sends a share of the sessions away, each to come back after a time of its own, while there are nearly as many sockets
// as may be and other trackers have fewer. It is called once a beat.
func (t *Tracker) shed() {
	others, theirs := t.roster.load()
	sockets, mine := t.admission.count(), t.sessions.count()
	if others == 0 || t.admission.draining.Load() || sockets < max(1, t.cfg.MaxSessions*shedAbove/1000) {
		return
	}
	// Half of what is above the mean at a time: the others' own shedding is not known here.
	mean := (mine + theirs) / (others + 1)
	n := min((mine-mean+1)/2, max(1, mine*shedShare/1000))
	if n <= 0 {
		return
	}
	for _, s := range t.sessions.some(n, 0, 1) {
		s.sendAway(rand.N(shedSpread))
		t.cfg.Metrics.Add(defShed, 1)
	}
}
