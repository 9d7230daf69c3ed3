package tracker

import (
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// renew takes another token for the session that is open. One that is no good changes nothing.
func (s *session) renew(m *signal.Token) bool {
	if s.permit.granted() == nil {
		s.fail(m.Request, "bad-message", "This site asks for no token.", "Send one where welcome says when it runs out.", 0)
		return true
	}
	grant, err := s.t.cfg.Tokens.Check(s.site.Name(), m.Token, s.t.cfg.Now())
	if err == nil {
		err = s.permit.exchange(grant, func() error {
			return s.swarms.allow(func(title, manifest string) error { return orNil(permits(s.site, grant, title, manifest)) })
		})
	}
	if err != nil {
		code, message, hint := s.permit.refused(err)
		s.fail(m.Request, code, message, hint, 0)
		if s.bad++; s.bad >= maxBad {
			s.Close(closePolicy, code)
		}
		return s.bad < maxBad
	}
	s.t.cfg.Metrics.Add(defTokens, 1, tokenRenewed)
	s.send(&signal.Granted{Request: m.Request, TokenExpires: grant.Expires.UnixMilli()})
	s.abide("token")
	if len(s.t.cfg.TURNServers) > 0 {
		s.sendServers(s.t.cfg.Now())
	}
	return true
}

// orNil keeps an error that is nil from becoming one that is not.
func orNil(err *access.TokenError) error {
	if err == nil {
		return nil
	}
	return err
}

// lapse ends a session whose token has run out, after a grace.
func (s *session) lapse(now time.Time) {
	tell, over := s.permit.lapse(s.site.Name(), now)
	if !tell {
		return
	}
	s.fail(0, "token-expired", "The join token has run out.", "Send another one on this socket: { type: token, token: … }.", 0)
	if over {
		s.t.cfg.Metrics.Add(defTokens, 1, tokenLapsed)
		s.Close(closePolicy, "token-expired")
	}
}
