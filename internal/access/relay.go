// Package access checks permissions: the join tokens of viewers (spec/access.md), and the ephemeral credentials of relays
// (spec/turn.md).
package access

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the REST form of TURN credentials is defined with it; an HMAC needs no collision resistance
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Limits of relay credentials (spec/turn.md).
const (
	MinRelaySecret   = 32  // bytes
	MaxRelayUsername = 128 // bytes
	maxRelayExpiry   = 1<<40 - 1
	maxRelaySite     = 32
	maxRelayHolder   = 64
	relaySecretID    = 6 // characters
)

var (
	errRelaySecret   = errors.New("a relay secret has at least 32 characters, none of them white space (make one: leeway secret)")
	errRelayUsername = errors.New("a relay username is <expiry>:<site>:<holder>, or that and :<secret ID>")
)

// RelaySecret is shared by the programs that mint credentials and the relays that accept them. Its bytes are the text itself, as in
// other TURN servers.
type RelaySecret struct{ text, id string }

// NewRelaySecret checks a secret's text.
func NewRelaySecret(text string) (RelaySecret, error) {
	if len(text) < MinRelaySecret || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return RelaySecret{}, errRelaySecret
	}
	h := hmac.New(sha256.New, []byte(text))
	h.Write([]byte("leeway relay secret id"))
	return RelaySecret{text, base64.RawURLEncoding.EncodeToString(h.Sum(nil))[:relaySecretID]}, nil
}

// ID tells secrets apart without telling them.
func (s RelaySecret) ID() string { return s.id }

// Password is the password of a username. It does not check the username.
func (s RelaySecret) Password(username string) string {
	h := hmac.New(sha1.New, []byte(s.text))
	h.Write([]byte(username))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Mint makes the credentials of a holder, a name without meaning to others, good until expires.
func (s RelaySecret) Mint(site, holder string, expires time.Time) (username, credential string) {
	username = strconv.FormatInt(expires.Unix(), 10) + ":" + site + ":" + holder + ":" + s.id
	return username, s.Password(username)
}

// RelaySecrets are those in force: the first mints, all are taken, so that one can be replaced while viewers hold what
// another minted.
type RelaySecrets []RelaySecret

// Of is the secret that a username was made with; the first where the username does not say.
func (s RelaySecrets) Of(u RelayUser) (RelaySecret, bool) {
	for i, one := range s {
		if u.SecretID == one.id || u.SecretID == "" && i == 0 {
			return one, true
		}
	}
	return RelaySecret{}, false
}

// RelayUser is what a username says. Nothing of it is true before its password was checked.
type RelayUser struct {
	Expires  time.Time
	Site     string
	Holder   string
	SecretID string // empty: not said
}

// Name is the user that quotas count by: the same for all credentials of one holder.
func (u RelayUser) Name() string { return u.Site + ":" + u.Holder }

// ParseRelayUser reads a username from outside.
func ParseRelayUser(username string) (RelayUser, error) {
	if len(username) > MaxRelayUsername {
		return RelayUser{}, errRelayUsername
	}
	parts := strings.Split(username, ":")
	if len(parts) < 3 || len(parts) > 4 || !word(parts[1], maxRelaySite) || !word(parts[2], maxRelayHolder) {
		return RelayUser{}, errRelayUsername
	}
	u := RelayUser{Site: parts[1], Holder: parts[2]}
	if len(parts) == 4 {
		if u.SecretID = parts[3]; len(u.SecretID) != relaySecretID || !word(u.SecretID, relaySecretID) {
			return RelayUser{}, errRelayUsername
		}
	}
	seconds, err := strconv.ParseUint(parts[0], 10, 63)
	if err != nil || seconds > maxRelayExpiry || strconv.FormatUint(seconds, 10) != parts[0] {
		return RelayUser{}, errRelayUsername
	}
	u.Expires = time.Unix(int64(seconds), 0)
	return u, nil
}

// word has 1 to most characters of base64url.
func word(s string, most int) bool {
	return len(s) >= 1 && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
