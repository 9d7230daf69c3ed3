package tracker

import (
	"encoding/base64"
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

// inside is what a session remembers of its place among those of its subject.
type inside struct {
	home signal.ID
	seen time.Time
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

// expire forgets sessions of which nobody has heard since.
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

// enter asks for a place among the sessions of the token's subject. Without an answer it is granted: a limit is not worth a viewer.
func (s *session) enter(request int, now time.Time) bool {
	subject := s.grantedSubject()
	if subject == "" {
		return true
	}
	s.subject = s.t.subjectID(s.site.Name(), subject)
	s.entered = inside{s.t.HomeOf(s.subject), now}
	r := s.subjectRequest(bus.OpEnter)
	var answer bus.HomeAnswer
	if err := s.askOnce(s.entered.home, &r, &answer); err != nil {
		s.t.cfg.Log.Warn("the home of a subject did not answer", "error", err)
		s.t.roster.silent(s.entered.home)
		return true
	}
	if answer.Code == "" {
		return true
	}
	s.fail(request, answer.Code, "The token's subject has as many sessions as it may.", "Close another page first.", 10_000)
	s.conn.Close(closePolicy, answer.Code)
	return false
}

func (s *session) grantedSubject() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grant == nil {
		return ""
	}
	return s.grant.Subject
}

func (s *session) subjectRequest(op string) bus.HomeRequest {
	return bus.HomeRequest{Op: op, Tracker: s.t.id, Session: s.id, Swarm: s.subject}
}

// stay tells the home of the subject that the session is still there, at once when that is another.
func (s *session) stay(now time.Time) {
	if s.subject.IsZero() {
		return
	}
	home := s.t.HomeOf(s.subject)
	if home == s.entered.home && now.Sub(s.entered.seen) <= s.t.cfg.UpdateInterval {
		return
	}
	s.entered = inside{home, now}
	r := s.subjectRequest(bus.OpEnter)
	r.Rejoin = true
	s.tell(home, &r)
}

// quit gives the place back.
func (s *session) quit() {
	if !s.subject.IsZero() {
		r := s.subjectRequest(bus.OpQuit)
		s.tell(s.t.HomeOf(s.subject), &r)
	}
}

// subjectHash is the subject as replicas may know it; empty: there is none.
func (s *session) subjectHash() string {
	if s.subject.IsZero() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(s.subject[:])
}

// tell says to a home what wants no answer.
func (s *session) tell(home signal.ID, r *bus.HomeRequest) {
	if home != s.t.id {
		s.t.publish(bus.SubjectHome(home), r)
		return
	}
	s.t.home.answer(r)
}
