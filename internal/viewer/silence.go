package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
)

// Of silence (spec/peer-protocol.md, "Silence").
const (
	checkFrom   = 2                // looks at which nothing had come, from which on the transport asks where the other side is
	adriftFrom  = 3                // looks at which nothing had come on any link, from which on this side is adrift
	leastLinks  = 2                // that have to be silent for it
	sleptAfter  = 3 * time.Second  // without a look: this side did not run
	asleepAfter = 10 * time.Second // likewise, long enough for the session to be lost for it
	noBlame     = 15 * time.Second // after being adrift no peer is blamed for silence
	// checkTime is how long the transport has to find the other side before it is pinged, pongTime how long it then has to answer.
	checkTime = 200 * time.Millisecond
	pongTime  = 500 * time.Millisecond
)

// checker is a link that can find the other side, or be found by it, where one of the two has another address.
type checker interface{ Check() }

// watched is one link at a look.
type watched struct {
	came    bool // something has since the last look
	owed    bool // something was asked for
	viewer  bool
	unheard int // looks in a row at which nothing had come; 0: it was heard
}

// vigil tells one peer's silence from this side's own.
type vigil struct {
	last   time.Time
	adrift bool
}

// look counts what is unheard on, and says whether this side has just come adrift, and how long it did not look.
func (v *vigil) look(now time.Time, all []*watched) (adrift bool, slept time.Duration) {
	gap := now.Sub(v.last)
	began := v.last.IsZero()
	v.last = now
	if !began && gap > sleptAfter {
		for _, w := range all {
			w.unheard = 1
		}
		v.adrift = false
		return false, gap
	}
	quiet, owed := true, false
	for _, w := range all {
		switch {
		case w.came:
			w.unheard, quiet = 0, false
		case w.unheard > 0:
			w.unheard++
		}
		owed = owed || w.owed
	}
	lost, viewers := len(all) >= leastLinks, false
	for _, w := range all {
		if quiet && owed {
			w.unheard = max(1, w.unheard)
		}
		lost, viewers = lost && w.unheard >= adriftFrom, viewers || w.viewer
	}
	was := v.adrift
	v.adrift = lost && viewers
	return v.adrift && !was, 0
}

// silence sees to links that have fallen silent.
type silence struct {
	*shared
	unheard func(peer string) // nothing comes from this peer that should
	adrift  func()            // nothing comes from any peer, so this side's own network has changed
	awoke   func()            // this side did not run for a while

	vigil     vigil
	driftedAt time.Time // when this side was found adrift last
	stopTick  func()
}

// tick keeps links alive and ends silent ones.
func (q *silence) tick() {
	q.listen()
	for _, r := range q.peers.inOrder() {
		r.session.Tick()
	}
	q.stopTick = q.loop.After(tickEvery, q.tick)
}

// listen sees to links that have fallen silent.
func (q *silence) listen() {
	var peers []*remote
	var all []*watched
	for _, r := range q.peers.inOrder() {
		if r.ready {
			came := r.came.Load()
			all = append(all, &watched{came != r.cameBy, len(r.download.Orders()) > 0, r.role == schedule.Viewer, r.unheard})
			peers, r.cameBy = append(peers, r), came
		}
	}
	adrift, slept := q.vigil.look(q.loop.Now(), all)
	for i, r := range peers {
		r.unheard = all[i].unheard
		if r.unheard == 1 {
			r.session.Ping()
		}
		if c, ok := r.link.(checker); ok && r.unheard >= checkFrom {
			c.Check()
		}
		if r.unheard >= checkFrom {
			q.unheard(r.id)
		}
	}
	if adrift && !q.drifted() {
		q.driftedAt = q.loop.Now()
		q.adrift()
	}
	if slept >= asleepAfter {
		q.awoke()
	}
}

// drifted says whether this side was adrift of late.
func (q *silence) drifted() bool {
	return !q.driftedAt.IsZero() && q.loop.Now().Sub(q.driftedAt) < noBlame
}

// moved is called when this side is known to be in another network: no look is waited for.
func (q *silence) moved() {
	if q.stopped {
		return
	}
	q.driftedAt = q.loop.Now()
	all := q.peers.inOrder()
	for _, r := range all {
		r.unheard, r.cameBy = 1, r.came.Load()
		if c, ok := r.link.(checker); ok {
			c.Check()
		}
	}
	q.loop.After(checkTime, func() { // what is said before the other side knows where this one is now is lost
		for _, r := range all {
			if !r.gone && r.ready {
				r.session.Ping()
			}
		}
	})
	q.stopTick()
	q.stopTick = q.loop.After(checkTime+pongTime, q.tick)
}
