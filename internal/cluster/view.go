// Package cluster is what trackers that share swarms decide by themselves (spec/cluster.md): which of them live, which one is
// home to a swarm, how a large swarm is parted, and what of a stream of messages is said again. Pure: time is an argument,
// and nothing is locked; the owner does that.
package cluster

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
)

// maxTrackers bounds what the bus can make a tracker remember.
const maxTrackers = 1024

// View is which trackers one of them believes to live. Seeds of a fleet have one of each other by the same rules; their links
// are what sessions are to trackers, segments what swarms are.
type View struct {
	self     swarm.ID
	timeout  time.Duration // of beats
	trackers map[swarm.ID]*tracker
	looked   time.Time  // when dead trackers were last looked for
	homes    []swarm.ID // that take swarms; kept, for every message asks
}

type tracker struct {
	heard            time.Time
	sessions         int
	draining, silent bool
	failures         int       // in a row: it was asked, and did not answer
	until            time.Time // then it may be a home again
	shunned          bool      // it beat before that
}

// NewView makes the view of a tracker that has heard of no other. A tracker lives for timeout after its last beat; self always.
func NewView(self swarm.ID, timeout time.Duration) *View {
	v := &View{self: self, timeout: timeout, trackers: map[swarm.ID]*tracker{self: {}}}
	v.settle()
	return v
}

// settle works out which trackers take swarms.
func (v *View) settle() {
	v.homes = v.homes[:0]
	for _, draining := range []bool{false, true} {
		for id, t := range v.trackers {
			if t.draining == draining && !t.silent && !t.shunned {
				v.homes = append(v.homes, id)
			}
		}
		if len(v.homes) > 0 {
			return
		}
	}
}

// Beat notes that a tracker lives and what it said of itself, and says whether it was unknown.
func (v *View) Beat(id swarm.ID, sessions int, draining bool, now time.Time) (isNew bool) {
	t := v.trackers[id]
	isNew = t == nil
	if id == v.self || isNew && len(v.trackers) >= maxTrackers {
		return false
	}
	if isNew {
		t = &tracker{}
		v.trackers[id] = t
	}
	shunned := now.Before(t.until)
	if isNew || t.draining != draining || t.silent || t.shunned != shunned {
		t.draining, t.silent, t.shunned = draining, false, shunned
		v.settle()
	}
	t.heard, t.sessions = now, sessions
	return isNew
}

// Gone notes that a tracker has left.
func (v *View) Gone(id swarm.ID) {
	if id != v.self {
		delete(v.trackers, id)
		v.settle()
	}
}

// Silent notes that a tracker did not answer: it is home to nothing until it beats again.
func (v *View) Silent(id swarm.ID) {
	if t := v.trackers[id]; t != nil && id != v.self {
		t.silent = true
		v.settle()
	}
}

// Asked notes whether a tracker answered. One that did not is silent. One that beats and does not answer again is home to nothing for two beats, and
// for twice as long each further time, up to thirty beats. Of several questions at a time one counts.
func (v *View) Asked(id swarm.ID, answered bool, now time.Time) {
	t := v.trackers[id]
	switch {
	case t == nil || t.silent || t.shunned:
	case answered:
		t.failures = 0
	default:
		if t.failures++; t.failures > 1 {
			t.until = now.Add(min(v.timeout*2/3<<min(t.failures-2, 8), 10*v.timeout))
		}
		v.Silent(id)
	}
}

// Drain notes that this tracker takes no swarms any more, as long as another one does.
func (v *View) Drain() {
	v.trackers[v.self].draining = true
	v.settle()
}

// Expire forgets trackers that have not beaten for timeout. It is called every beat. A process that slept for longer has beats
// to read first, so that call forgets none.
func (v *View) Expire(now time.Time) {
	slept := !v.looked.IsZero() && now.Sub(v.looked) > v.timeout/2
	v.looked = now
	if slept {
		return
	}
	for id, t := range v.trackers {
		if id != v.self && now.Sub(t.heard) > v.timeout {
			delete(v.trackers, id)
		}
	}
	v.settle()
}

// Lives says whether a tracker's sessions can be reached.
func (v *View) Lives(id swarm.ID) bool { return v.trackers[id] != nil }

// Reached lists the trackers whose sessions can be reached now: those that live and are not silent.
func (v *View) Reached() map[swarm.ID]bool {
	all := make(map[swarm.ID]bool, len(v.trackers))
	for id, t := range v.trackers {
		if !t.silent {
			all[id] = true
		}
	}
	return all
}

// Trackers counts those that live, this one among them.
func (v *View) Trackers() int { return len(v.trackers) }

// Others counts the other trackers that take sessions, and the sessions that these have.
func (v *View) Others() (trackers, sessions int) {
	for id, t := range v.trackers {
		if id != v.self && !t.draining {
			trackers++
			sessions += t.sessions
		}
	}
	return trackers, sessions
}

// Rank is the order in which a key would have its home at those of some replicas that take work: its home first.
func (v *View) Rank(key [16]byte, among []swarm.ID) []swarm.ID {
	able := slices.DeleteFunc(slices.Clone(among), func(id swarm.ID) bool { return !slices.Contains(v.homes, id) })
	return swarm.Order(able, key)
}

// Home is the tracker that a swarm, or a part of one, has its home at.
func (v *View) Home(key swarm.ID) swarm.ID {
	home, _ := swarm.Home(v.homes, key) // self is never silent, so there is one
	return home
}
