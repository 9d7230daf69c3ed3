package tracker

import (
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// learned bounds how many viewers, and with them their addresses, an identity gets to know in an hour: by introductions, and by
// offers of viewers that it has not met (spec/tracker-protocol.md, "Viewers that a session learns of"). Sessions come and go, and join and
// leave at will, so what a session learns is charged to its address and its subject too.
type learned struct {
	perHour int // of a session
	most    int // identities that are remembered

	mu sync.Mutex
	of map[learner]budget // guarded by mu; full ones are forgotten
}

// learner is what a viewer that a session learns of is charged to.
type learner struct {
	scope   string // of learnerScopes
	id      signal.ID
	network netip.Prefix
}

// The scopes of learners: what is beyond them is counted by the first that has no room.
const (
	learnerSession = "session"
	learnerAddress = "address"
	learnerSubject = "subject"
)

func learnerScopes() []string { return []string{learnerSession, learnerAddress, learnerSubject} }

// networkLearns is how many times what a session may learn an address may, and a subject, which has as many sessions.
const networkLearns = 16

func newLearned(cfg Config) *learned {
	return &learned{perHour: cfg.PeersPerHour, most: 4 * cfg.MaxSessions, of: map[learner]budget{}}
}

// capacity is what a learner may learn of at once. The other half of an hour's share comes with time, so that in any hour it is
// the share at most.
func (l *learned) capacity(of learner) float64 {
	share := 1
	switch {
	case of.scope == learnerSubject:
		share = networkLearns
	case of.scope == learnerAddress:
		share = networkLearns
		if of.network.IsValid() && of.network == access.Wide(of.network.Addr()) {
			share *= wideShare
		}
	}
	return float64(share*l.perHour) / 2
}

// budget is what a learner has left, and what that is remembered as. Under mu.
func (l *learned) budget(of learner, now time.Time) (learner, budget) {
	capacity := l.capacity(of)
	b, remembered := l.of[of]
	if !remembered && len(l.of) >= l.most { // newcomers share one
		of = learner{scope: of.scope}
		b, remembered = l.of[of]
	}
	if !remembered {
		return of, budget{capacity, now}
	}
	if passed := now.Sub(b.at); passed > 0 {
		b = budget{min(capacity, b.left+capacity*passed.Hours()), now}
	}
	return of, b
}

// room is how many of so many viewers all learners may learn of now. If it is not all, the scope that has the least room is returned.
func (l *learned) room(all []learner, want int, now time.Time) (room int, full string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range all {
		if _, b := l.budget(of, now); int(b.left) < want {
			want, full = int(b.left), of.scope
		}
	}
	return want, full
}

// take charges one viewer to all learners, or to none where one has no room: that one's scope is returned.
func (l *learned) take(all []learner, now time.Time) (full string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range all {
		if _, b := l.budget(of, now); b.left < 1 {
			return of.scope
		}
	}
	for _, of := range all {
		of, b := l.budget(of, now)
		b.left--
		l.of[of] = b
	}
	return ""
}

// forget drops the learners that have learnt of no viewer for so long that it makes no difference.
func (l *learned) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, b := range l.of {
		if b.left+l.capacity(of)*now.Sub(b.at).Hours() >= l.capacity(of) {
			delete(l.of, of)
		}
	}
}

// learnersOf are what a session is charged as.
func learnersOf(session signal.ID, from netip.Addr, subject signal.ID) []learner {
	all := []learner{{scope: learnerSession, id: session}}
	if from.IsValid() {
		all = append(all, learner{scope: learnerAddress, network: access.Network(from)})
		if wide := access.Wide(from); wide.IsValid() {
			all = append(all, learner{scope: learnerAddress, network: wide})
		}
	}
	if !subject.IsZero() {
		all = append(all, learner{scope: learnerSubject, id: subject})
	}
	return all
}
