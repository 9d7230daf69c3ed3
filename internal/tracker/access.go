package tracker

import (
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Tokens checks the join tokens of the sites that ask for one (spec/access.md).
type Tokens interface {
	// Check says what a token allows on a site. The error is an *access.TokenError.
	Check(site, token string, now time.Time) (*access.Grant, error)
	// Holds says whether a key of a site is in force.
	Holds(site, keyID string) bool
}

// noKeys has token-only sites closed, where nobody said what opens them.
type noKeys struct{}

func (noKeys) Check(_, token string, _ time.Time) (*access.Grant, error) {
	if token == "" {
		return nil, access.Refuse(access.Missing, "Token-only sites need a tracker with token keys.", "This site is open to viewers with a token only.")
	}
	return nil, access.Refuse(access.UnknownKey, "Token-only sites need a tracker with token keys.", "This tracker has no keys to check tokens with.")
}

func (noKeys) Holds(string, string) bool { return false }

// Outcomes of join tokens beside the reasons for refusing one.
const (
	tokenGranted = "granted"
	tokenRenewed = "renewed"
	tokenLapsed  = "lapsed" // a session ended because no other token came in time
)

func tokenOutcomes() []string {
	all := []string{tokenGranted, tokenRenewed, tokenLapsed}
	for _, r := range access.Reasons {
		all = append(all, string(r))
	}
	return all
}

// authorize looks at the token of a hello; the answer is empty or the error to send.
func (s *session) authorize(token string) (code, message, hint string) {
	if s.site.Config().Access != configured.AccessToken {
		return "", "", ""
	}
	grant, err := s.t.cfg.Tokens.Check(s.site.Name(), token, s.t.cfg.Now())
	if err != nil {
		return s.refused(err)
	}
	s.t.cfg.Metrics.Add(defTokens, 1, tokenGranted)
	s.mu.Lock()
	s.grant = grant
	s.mu.Unlock()
	return "", "", ""
}

// refused counts a token that is no good, and says so.
func (s *session) refused(err error) (code, message, hint string) {
	var why *access.TokenError
	if !errors.As(err, &why) {
		return "internal", "The token cannot be checked.", "Look at the tracker's log."
	}
	s.t.cfg.Metrics.Add(defTokens, 1, string(why.Reason))
	switch why.Reason {
	case access.Missing:
		code = "token-required"
	case access.Expired:
		code = "token-expired"
	default:
		code = "bad-token"
	}
	return code, why.Problem, why.Hint
}

// errOtherTitle refuses a token that leaves out what its holder watches.
var errOtherTitle = access.Refuse(access.OtherTitle, "Ask for a token of this title.", "The token does not cover the title.")

// errOtherManifest refuses a manifest that a token leaves out.
var errOtherManifest = access.Refuse(access.OtherManifest, "Ask for a token whose claim manifest names it, or bind the title to it by title.explicit of the site.", "The token does not name the manifest.")

// errOtherSubject refuses a token that is not of whom the session began with: its votes and its place are the subject's.
var errOtherSubject = access.Refuse(access.OtherSubject, "Open another session for another subject.", "The token is another subject's.")

// permits returns an error if a token, where the site asks for one, leaves out a title or the manifest that it is joined with. An
// explicit title is bound to its manifest by the token or by the site: otherwise a token for one title would have seeds serve
// every manifest.
func (s *session) permits(grant *access.Grant, title, manifest string) *access.TokenError {
	if grant == nil {
		return nil
	}
	named := grant.Names(manifest)
	switch {
	case !grant.Covers(title):
		return errOtherTitle
	case manifest == "" || named && configured.IsExplicit(title):
		return nil
	case !named && len(grant.Manifests) > 0, !s.site.Binds(title, manifest):
		return errOtherManifest
	}
	return nil
}

// renew takes another token for the session that is open. One that is no good changes nothing.
func (s *session) renew(m *signal.Token) bool {
	s.mu.Lock()
	open := s.grant == nil
	s.mu.Unlock()
	if open {
		s.fail(m.Request, "bad-message", "This site asks for no token.", "Send one where welcome says when it runs out.", 0)
		return true
	}
	grant, err := s.t.cfg.Tokens.Check(s.site.Name(), m.Token, s.t.cfg.Now())
	if err == nil {
		err = s.regrant(grant)
	}
	if err != nil {
		code, message, hint := s.refused(err)
		s.fail(m.Request, code, message, hint, 0)
		if s.bad++; s.bad >= maxBad {
			s.conn.Close(closePolicy, code)
		}
		return s.bad < maxBad
	}
	s.t.cfg.Metrics.Add(defTokens, 1, tokenRenewed)
	s.send(&signal.Granted{Request: m.Request, TokenExpires: grant.Expires.UnixMilli()})
	s.abide("token")
	if len(s.t.cfg.TURNServers) > 0 {
		ice, expire := s.iceServers(s.t.cfg.Now())
		s.send(&signal.SetServers{ICEServers: ice, Expire: expire})
	}
	return true
}

// regrant has another token hold from now on, unless it leaves out a title of the session, or its manifest.
func (s *session) regrant(grant *access.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if grant.Subject != s.grant.Subject {
		return errOtherSubject
	}
	for _, member := range s.swarms {
		if err := s.permits(grant, member.join.Title, member.join.Manifest); err != nil {
			return err
		}
	}
	s.grant, s.lapsed, s.minted = grant, time.Time{}, s.t.cfg.Now()
	return nil
}

// roleOf is what a viewer is to others that asks to be something, where a policy holds.
func roleOf(policy signal.Policy, asked string) string {
	if policy.ControlGroup {
		return configured.RoleOff // counted, never introduced: the origin alone serves it
	}
	return configured.NarrowRole(policy.Role, asked)
}

// group is what those of the session meet first; empty: no group.
func (s *session) group() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grant == nil {
		return ""
	}
	return s.grant.Group
}

// tokenEnd is until when the session may go on, ms since the Unix epoch; 0: for ever.
func (s *session) tokenEnd() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grant == nil {
		return 0
	}
	return s.grant.Expires.UnixMilli()
}

// withinToken is a time, or the end of the session's token where that is sooner.
func (s *session) withinToken(t time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grant != nil && s.grant.Expires.Before(t) {
		return s.grant.Expires
	}
	return t
}

// lapse tells a session that its token has run out, or the key that signed it is gone, and after a grace ends it.
func (s *session) lapse(now time.Time) {
	s.mu.Lock()
	grant, told := s.grant, s.lapsed
	s.mu.Unlock()
	if grant == nil || now.Before(grant.Expires) && s.t.cfg.Tokens.Holds(s.site.Name(), grant.KeyID) {
		return
	}
	if !told.IsZero() && now.Sub(told) < s.t.cfg.TokenGrace {
		return
	}
	s.mu.Lock()
	same := s.grant == grant // another came meanwhile
	if same && told.IsZero() {
		s.lapsed = now
	}
	s.mu.Unlock()
	if !same {
		return
	}
	s.fail(0, "token-expired", "The join token has run out.", "Send another one on this socket: { type: token, token: … }.", 0)
	if !told.IsZero() {
		s.t.cfg.Metrics.Add(defTokens, 1, tokenLapsed)
		s.conn.Close(closePolicy, "token-expired")
	}
}
