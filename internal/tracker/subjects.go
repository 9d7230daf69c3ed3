package tracker

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// subjects counts the sessions of the subjects of join tokens that have their home here, as swarms have (spec/access.md).
type subjects struct {
	mu       sync.Mutex
	sessions map[signal.ID]map[signal.ID]entry // guarded by mu; by subject, by session
}

func newSubjects() *subjects { return &subjects{sessions: map[signal.ID]map[signal.ID]entry{}} }

// entry is a session of a subject.
type entry struct {
	tracker signal.ID // that holds it
	seen    time.Time
}

// handle lets a session in while there is room among those of its subject, and out. One that is in already stays.
func (s *subjects) handle(r *bus.HomeRequest, most, mostSubjects int, now time.Time) bus.HomeAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.sessions[r.Swarm]
	at, known := all[r.Session]
	switch {
	case r.Op == bus.OpQuit:
		if known && at.tracker == r.Tracker { // not one that went on to another tracker
			delete(all, r.Session)
		}
		if len(all) == 0 {
			delete(s.sessions, r.Swarm)
		}
		return bus.HomeAnswer{}
	case !known && !r.Rejoin && len(all) >= most:
		return bus.HomeAnswer{Code: "too-many-sessions"}
	case !known && len(all) >= 2*most, all == nil && len(s.sessions) >= mostSubjects:
		return bus.HomeAnswer{} // it is in elsewhere; here it is not counted
	case all == nil:
		all = map[signal.ID]entry{}
		s.sessions[r.Swarm] = all
	}
	all[r.Session] = entry{r.Tracker, now}
	return bus.HomeAnswer{}
}

// expire forgets sessions that were not heard of since.
func (s *subjects) expire(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for subject, all := range s.sessions {
		for id, at := range all {
			if at.seen.Before(since) {
				delete(all, id)
			}
		}
		if len(all) == 0 {
			delete(s.sessions, subject)
		}
	}
}
