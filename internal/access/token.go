package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leeway-video/leeway/internal/site"
)

// Limits of join tokens (spec/access.md).
const (
	MaxToken    = 4096 // bytes
	maxPatterns = 16
	maxGroup    = 64 // bytes
	maxKeyID    = 64
	maxSubject  = 128 // bytes
	// maxLife is how far ahead a token's end may be; milliseconds are always further.
	maxLife = 366 * 24 * time.Hour
	// clockSkew is forgiven to a signer whose clock is ahead.
	clockSkew = 30 * time.Second
)

// Reason says in one word why a token was refused.
type Reason string

// The closed set of reasons, in the order in which they are looked for.
const (
	Missing    Reason = "missing"
	TooLong    Reason = "too-long"
	Malformed  Reason = "malformed"
	Algorithm  Reason = "algorithm"
	UnknownKey Reason = "unknown-key"
	Signature  Reason = "signature"
	BadClaims  Reason = "claims"
	OtherSite  Reason = "site"
	NotYet     Reason = "not-yet"
	Expired    Reason = "expired"
	OtherTitle Reason = "title" // of a join, or of what the holder of another token watches
	// OtherManifest is of a title that the token covers, with a manifest that it does not.
	OtherManifest Reason = "manifest"
	// OtherSubject is of a token that is to replace another's.
	OtherSubject Reason = "subject"
)

// Reasons lists them.
var Reasons = []Reason{Missing, TooLong, Malformed, Algorithm, UnknownKey, Signature, BadClaims, OtherSite, NotYet, Expired, OtherTitle, OtherManifest, OtherSubject}

// TokenError says why a token was refused. Its text quotes nothing of the token.
type TokenError struct {
	Reason  Reason
	Problem string // a sentence
	Hint    string // what to do
}

// Error implements error.
func (e *TokenError) Error() string { return e.Problem + " " + e.Hint }

// Refuse makes a TokenError.
func Refuse(reason Reason, hint, problem string, args ...any) *TokenError {
	return &TokenError{Reason: reason, Problem: fmt.Sprintf(problem, args...), Hint: hint}
}

// Claims are what a token says. They are true once its signature was checked.
type Claims struct {
	Site      string
	Subject   string   // the holder, in the backend's words; empty: not stated
	Titles    []string // patterns; none: every title
	Manifests []string // patterns of keys that the titles may be joined with; none: those that the site's own rules bind
	Group     string
	Role      string    // the most that its holder is to others; empty is full
	Unknown   string    // site.UnknownLineLeech or site.UnknownLineFull; empty: as the site says
	Upload    int64     // kbit/s that its holder sends to other viewers at most; 0: as the site says
	Disk      int64     // bytes that its holder's pages keep on the disk; 0: as the site says
	NotBefore time.Time // zero: at once
	Expires   time.Time
}

// Grant is what a token allows the session that shows it.
type Grant struct {
	Subject   string   // empty: not stated
	Titles    []string // patterns; none: every title
	Manifests []string // patterns; none: the token says nothing of manifests
	Group     string
	Role      string // never empty
	Unknown   string // as in Claims
	Upload    int64  // as in Claims
	Disk      int64  // as in Claims
	KeyID     string // of the key that signed
	Expires   time.Time
}

// ParseClaims reads a token's payload. The error is a *TokenError.
func ParseClaims(payload []byte) (Claims, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(payload, &all); err != nil || all == nil {
		return Claims{}, Refuse(BadClaims, "See spec/access.md.", "The token's payload is no JSON object.")
	}
	c := reader{claims: all}
	out := Claims{
		Site: c.text("site", 1, 32), Subject: c.text("sub", 0, maxSubject), Titles: c.patterns("title", site.MaxTitle), Manifests: c.patterns("manifest", site.MaxKey),
		Group: c.text("group", 0, maxGroup), Role: c.text("role", 0, maxGroup), Unknown: c.text("unknown_line", 0, maxGroup),
		Upload:    c.integer("upload_kbps", site.MinUploadKbps, site.MaxUploadKbps),
		Disk:      c.integer("disk_bytes", 1, site.MaxDiskBytes),
		NotBefore: c.time("nbf", false), Expires: c.time("exp", true),
	}
	if out.Role != "" && !slices.Contains([]string{site.RoleFull, site.RoleLeech, site.RoleRelayOnly, site.RoleOff}, out.Role) {
		c.wrong("role", "is none of full, leech, relay-only and off")
	}
	if out.Unknown != "" && out.Unknown != site.UnknownLineLeech && out.Unknown != site.UnknownLineFull {
		c.wrong("unknown_line", "is neither leech nor full")
	}
	if slices.ContainsFunc(out.Manifests, func(m string) bool { return !strings.HasPrefix(m, "/") }) {
		c.wrong("manifest", "does not begin with a slash, as paths of manifests do")
	}
	if c.problem != nil {
		return Claims{}, c.problem
	}
	return out, nil
}

// reader reads claims one by one; the first problem sticks.
type reader struct {
	claims  map[string]json.RawMessage
	problem *TokenError
}

func (r *reader) wrong(name, problem string) {
	if r.problem == nil {
		r.problem = Refuse(BadClaims, "See spec/access.md.", "The token's claim %s %s.", name, problem)
	}
}

// text reads a string; one that may be empty may be missing, too, and is not empty when it is there.
func (r *reader) text(name string, least, most int) string {
	raw, ok := r.claims[name]
	if !ok {
		if least > 0 {
			r.wrong(name, "is missing")
		}
		return ""
	}
	return r.string(name, raw, most)
}

func (r *reader) string(name string, raw json.RawMessage, most int) string {
	var s string
	// What is not UTF-8 would come out replaced, and mean something else than what was signed.
	if len(raw) == 0 || raw[0] != '"' || !utf8.Valid(raw) || json.Unmarshal(raw, &s) != nil {
		r.wrong(name, "is no text")
		return ""
	}
	if len(s) < 1 || len(s) > most || strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 || c >= 0x7f && c < 0xa0 || c == utf8.RuneError }) {
		r.wrong(name, fmt.Sprintf("has not 1 to %d bytes of text without control characters", most))
		return ""
	}
	return s
}

// patterns reads one pattern or a list of them, each of at most so many bytes.
func (r *reader) patterns(name string, most int) []string {
	raw, ok := r.claims[name]
	if !ok {
		return nil
	}
	list := []json.RawMessage{raw}
	if bytes.HasPrefix(raw, []byte("[")) {
		list = nil
		if json.Unmarshal(raw, &list) != nil || len(list) < 1 || len(list) > maxPatterns {
			r.wrong(name, fmt.Sprintf("is no list of 1 to %d patterns", maxPatterns))
			return nil
		}
	}
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = r.string(name, one, most)
	}
	return out
}

// integer reads a whole number; 0: it is missing.
func (r *reader) integer(name string, least, most int64) int64 {
	raw, ok := r.claims[name]
	if !ok {
		return 0
	}
	n, whole := number(raw)
	if !whole || n < least || n > most {
		r.wrong(name, fmt.Sprintf("is no whole number of %d to %d", least, most))
		return 0
	}
	return n
}

// time reads seconds since the Unix epoch.
func (r *reader) time(name string, required bool) time.Time {
	raw, ok := r.claims[name]
	if !ok {
		if required {
			r.wrong(name, "is missing")
		}
		return time.Time{}
	}
	n, whole := number(raw)
	if !whole || n < 0 || n >= 1<<53 {
		r.wrong(name, "is no whole number of seconds")
		return time.Time{}
	}
	return time.Unix(n, 0)
}

func number(raw json.RawMessage) (n int64, whole bool) {
	whole = string(raw) != "null" && json.Unmarshal(raw, &n) == nil
	return n, whole
}

// Grant says what claims of a token allow on a site, now. The error is a *TokenError.
func (c Claims) Grant(on, keyID string, now time.Time) (*Grant, error) {
	switch {
	case c.Expires.Sub(now) > maxLife:
		return nil, Refuse(BadClaims, "Count exp in seconds, not in milliseconds.", "The token's end is more than a year ahead.")
	case c.Site != on:
		return nil, Refuse(OtherSite, "Ask for one of this site; its name is in data-site and the tracker's configuration.", "The token is another site's.")
	case c.NotBefore.Sub(now) > clockSkew:
		return nil, Refuse(NotYet, "Compare the clocks of the signing backend and of the tracker.", "The token is not good yet.")
	case !now.Before(c.Expires):
		return nil, Refuse(Expired, "Ask for another one.", "The token has run out.")
	}
	g := &Grant{Subject: c.Subject, Titles: c.Titles, Manifests: c.Manifests, Group: c.Group, Role: c.Role, Unknown: c.Unknown, Upload: c.Upload, Disk: c.Disk, KeyID: keyID, Expires: c.Expires}
	if g.Role == "" {
		g.Role = site.RoleFull
	}
	return g, nil
}

// Covers says whether a title may be joined.
func (g *Grant) Covers(title string) bool { return len(g.Titles) == 0 || fits(g.Titles, title) }

// Names says whether the token names a manifest, by its key, as one of its titles.
func (g *Grant) Names(manifestKey string) bool { return fits(g.Manifests, manifestKey) }

// fits says whether one of the patterns stands for a text.
func fits(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return pattern == text || open && strings.HasPrefix(text, prefix)
	})
}

// KeyIDFits says whether a text can name a key.
func KeyIDFits(id string) bool {
	return len(id) <= maxKeyID && word(strings.ReplaceAll(id, ".", "-"), maxKeyID)
}
