package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Join tokens (spec/access.md): the tracker says how long one is good, and another is shown before that on the open socket.

// granted is told that the token in hand is good until a moment of the tracker's time. While there is a session, its timer is
// that of the next token. One that brings no time is as good as none.
func (s *session) granted(endMs int64) {
	if s.state != sessionReady || s.token == nil || endMs <= s.tokenEnd {
		return
	}
	now := s.loop.Now()
	left := time.UnixMilli(endMs).Sub(now.Add(s.offset))
	in := time.Duration(float64(left) * (0.5 + s.random.Float64()/4)) // who came together does not renew together
	s.tokenEnd, s.renewAt, s.renewals = endMs, now.Add(in), 0
	s.after(in, s.renew)
}

// renew shows another token, again and again until the tracker grants it or ends the session.
func (s *session) renew() {
	wait := min(backoffCap, tokenBackoff<<min(s.renewals, 8))
	s.renewals++
	s.after(time.Duration(float64(wait)*(0.5+s.random.Float64()/2)), s.renew)
	if token := s.token(); token != "" {
		s.hello.Token = token
		s.nextID++
		s.send(&signal.Token{Request: s.nextID, Token: token}, false)
	}
}

// retry says whether there may be another token for what a tracker refused: for this session, or a few times for the next.
func (s *session) retry(m *signal.Error) bool {
	switch {
	case s.state == sessionReady:
		if m.Code == "token-expired" && m.Request == 0 { // the token in hand; else it is the one that was shown now
			s.after(0, s.renew)
		}
	case s.attempt < tokenTries-1 || !s.renewAt.IsZero():
		s.renewAt = time.Time{}
		s.lose(0, 0)
	default:
		return false
	}
	return true
}
