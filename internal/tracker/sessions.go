package tracker

import (
	"math"
	"sync"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// sessions are the open sessions of this tracker, by ID.
type sessions struct {
	mu     sync.Mutex
	all    map[signal.ID]*session // guarded by mu
	closed bool                   // guarded by mu
}

// enter makes a session reachable, and returns an older one with its ID, which it replaces. ok is false once the part is closed.
func (ss *sessions) enter(s *session) (old *session, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return nil, false
	}
	old = ss.all[s.id]
	ss.all[s.id] = s
	return old, true
}

// leave takes a session out, and says whether it was still the one with its ID.
func (ss *sessions) leave(s *session) (current bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.all[s.id] != s {
		return false
	}
	delete(ss.all, s.id)
	return true
}

// close refuses new sessions from now on, and returns those that are open.
func (ss *sessions) close() []*session {
	ss.mu.Lock()
	ss.closed = true
	ss.mu.Unlock()
	return ss.snapshot()
}

func (ss *sessions) session(id signal.ID) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.all[id]
}

func (ss *sessions) count() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.all)
}

func (ss *sessions) snapshot() []*session { return ss.some(math.MaxInt, 0, 1) }

// some are up to n sessions, any of those that have this turn of so many.
func (ss *sessions) some(n, turn, turns int) []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	all := make([]*session, 0, min(n, len(ss.all)/turns))
	for id, s := range ss.all {
		if len(all) == n {
			break
		}
		if int(id[0])%turns == turn {
			all = append(all, s)
		}
	}
	return all
}
