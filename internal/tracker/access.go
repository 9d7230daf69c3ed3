package tracker

import (
	"errors"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
)

// Tokens checks the join tokens of the sites that ask for one (spec/access.md).
type Tokens interface {
	// Check says what a token allows on a site. The error is an *access.TokenError.
	Check(site, token string, now time.Time) (*access.Grant, error)
	// Holds says whether a key of a site is in force.
	Holds(site, keyID string) bool
}

// noKeys has token-only sites closed, where the configuration names no key.
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

// permit is what the join token of a session allows, where its site asks for one.
type permit struct {
	cfg *Config

	mu     sync.Mutex
	grant  *access.Grant // guarded by mu: nil where the site asks for no token
	lapsed time.Time     // guarded by mu: when the viewer was told that the token has run out
}

// granted is what the token allows; nil where the site asks for none.
func (p *permit) granted() *access.Grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grant
}

// authorize looks at the token of a hello; the answer is empty or the error to send.
func (p *permit) authorize(site *configured.Site, token string) (code, message, hint string) {
	if site.Config().Access != configured.AccessToken {
		return "", "", ""
	}
	grant, err := p.cfg.Tokens.Check(site.Name(), token, p.cfg.Now())
	if err != nil {
		return p.refused(err)
	}
	p.cfg.Metrics.Add(defTokens, 1, tokenGranted)
	p.mu.Lock()
	p.grant = grant
	p.mu.Unlock()
	return "", "", ""
}

// refused counts a token that is no good, and says so.
func (p *permit) refused(err error) (code, message, hint string) {
	var why *access.TokenError
	if !errors.As(err, &why) {
		return "internal", "The token cannot be checked.", "Look at the tracker's log."
	}
	p.cfg.Metrics.Add(defTokens, 1, string(why.Reason))
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

// errOtherTitle refuses a token that leaves out the title that its viewer watches.
var errOtherTitle = access.Refuse(access.OtherTitle, "Ask for a token of this title.", "The token does not cover the title.")

// errOtherManifest refuses a manifest that a token leaves out.
var errOtherManifest = access.Refuse(access.OtherManifest, "Ask for a token whose claim manifest names it, or bind the title to it by title.explicit of the site.", "The token does not name the manifest.")

// errOtherSubject refuses a token of another subject than the session began with: its votes and its place are the subject's.
var errOtherSubject = access.Refuse(access.OtherSubject, "Open another session for another subject.", "The token is another subject's.")

// permits returns an error if a token, where the site asks for one, leaves out a title or the manifest that it is joined with. An
// explicit title is bound to its manifest by the token or by the site: otherwise a token for one title would have seeds serve
// every manifest.
func permits(site *configured.Site, grant *access.Grant, title, manifest string) *access.TokenError {
	if grant == nil {
		return nil
	}
	named := grant.Names(manifest)
	switch {
	case !grant.Covers(title):
		return errOtherTitle
	case manifest == "" || named && configured.IsExplicit(title):
		return nil
	case !named && len(grant.Manifests) > 0, !site.Binds(title, manifest):
		return errOtherManifest
	}
	return nil
}

// exchange has another token hold from now on, unless it is another subject's or a check refuses it.
func (p *permit) exchange(grant *access.Grant, check func() error) error {
	if grant.Subject != p.subject() {
		return errOtherSubject
	}
	if err := check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grant, p.lapsed = grant, time.Time{}
	return nil
}

// group is what those of the session meet first; empty: no group.
func (p *permit) group() string {
	if grant := p.granted(); grant != nil {
		return grant.Group
	}
	return ""
}

// subject of the token; empty: none.
func (p *permit) subject() string {
	if grant := p.granted(); grant != nil {
		return grant.Subject
	}
	return ""
}

// end is until when the session may go on, ms since the Unix epoch; 0: for ever.
func (p *permit) end() int64 {
	if grant := p.granted(); grant != nil {
		return grant.Expires.UnixMilli()
	}
	return 0
}

// within is a time, or the end of the token where that is sooner.
func (p *permit) within(t time.Time) time.Time {
	if grant := p.granted(); grant != nil && grant.Expires.Before(t) {
		return grant.Expires
	}
	return t
}

// lapse says whether the viewer is to be told that its token has run out, or that the key that signed it is gone: once, and again when
// the grace is over, which ends the session.
func (p *permit) lapse(site string, now time.Time) (tell, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.grant == nil || now.Before(p.grant.Expires) && p.cfg.Tokens.Holds(site, p.grant.KeyID):
		p.lapsed = time.Time{} // its key may have been gone for a moment: what it was told then is over
		return false, false
	case p.lapsed.IsZero():
		p.lapsed = now
		return true, false
	}
	over = now.Sub(p.lapsed) >= p.cfg.TokenGrace
	return over, over
}
