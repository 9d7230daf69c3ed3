// Package jwtauth makes and checks the signatures of join tokens (spec/access.md): the one place that knows golang-jwt. What
// the claims mean is internal/access's to say, after the signature.
package jwtauth

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leeway-video/leeway/internal/access"
)

// parser takes tokens apart. Times and names are checked by internal/access, with the tracker's clock.
var parser = jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())

// payload keeps the claims as they came, to be read once it is known which key signed them.
type payload []byte

// UnmarshalJSON implements json.Unmarshaler.
func (p *payload) UnmarshalJSON(b []byte) error {
	*p = append((*p)[:0], b...)
	return nil
}

// The library's own idea of claims is not used.

func (*payload) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }
func (*payload) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (*payload) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }
func (*payload) GetIssuer() (string, error)                   { return "", nil }
func (*payload) GetSubject() (string, error)                  { return "", nil }
func (*payload) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }

// Check says what a token allows on a site. The error is an *access.TokenError.
func Check(token, site string, keys access.Keys, now time.Time) (*access.Grant, error) {
	switch {
	case token == "":
		return nil, access.Refuse(access.Missing, "Pass a join token: data-token, or the option token.", "This site is open to viewers with a token only.")
	case len(token) > access.MaxToken:
		return nil, access.Refuse(access.TooLong, "Leave out claims that are not needed.", "The token has more than %d bytes.", access.MaxToken)
	}
	var text payload
	var key access.Key
	_, err := parser.ParseWithClaims(token, &text, func(t *jwt.Token) (any, error) {
		var err error
		key, err = keyFor(t, keys)
		if err != nil {
			return nil, err
		}
		if key.Alg == access.HS256 {
			return key.Secret, nil
		}
		return key.Public, nil
	})
	var refused *access.TokenError
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case errors.Is(err, jwt.ErrTokenUnverifiable): // before a key was asked for
		return nil, access.Refuse(access.Algorithm, "Sign with EdDSA (Ed25519) or HS256.", "The token's algorithm is not taken.")
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return nil, access.Refuse(access.Signature, "Sign with the key that kid names; compare it with the tracker's key file.", "The token's signature does not fit.")
	case err != nil:
		return nil, access.Refuse(access.Malformed, "Pass it as it was signed: three parts between dots.", "This is no JSON Web Token that can be read.")
	}
	claims, err := access.ParseClaims(text)
	if err != nil {
		return nil, err
	}
	return claims.Grant(site, key.ID, now)
}

// keyFor finds the key that a token's header names. A key is good for one algorithm, whatever the header says: else the
// public half of one kind would be a secret of the other.
func keyFor(t *jwt.Token, keys access.Keys) (access.Key, error) {
	id, _ := t.Header["kid"].(string)
	_, critical := t.Header["crit"]
	alg := t.Method.Alg()
	switch {
	case !access.KeyIDFits(id):
		return access.Key{}, access.Refuse(access.Malformed, "Name the key in the header's kid.", "The token does not say which key it was signed with.")
	case critical:
		return access.Key{}, access.Refuse(access.Malformed, "Leave crit out.", "The token asks for extensions that are not known here.")
	case alg != access.EdDSA && alg != access.HS256:
		return access.Key{}, access.Refuse(access.Algorithm, "Sign with EdDSA (Ed25519) or HS256.", "The token's algorithm is not taken.")
	}
	key, ok := keys.Find(id)
	switch {
	case !ok:
		return key, access.Refuse(access.UnknownKey, "Add the key to the tracker's key file before signing with it.", "The token's key is not known here.")
	case key.Alg != alg:
		return key, access.Refuse(access.Algorithm, "Sign with the algorithm of the key.", "The token's algorithm is not that of its key.")
	}
	return key, nil
}

// Sign makes a token.
func Sign(claims access.Claims, key access.Key) (string, error) {
	all := jwt.MapClaims{"site": claims.Site, "exp": claims.Expires.Unix()}
	if !claims.NotBefore.IsZero() {
		all["nbf"] = claims.NotBefore.Unix()
	}
	if len(claims.Titles) > 0 {
		all["title"] = claims.Titles
	}
	if len(claims.Manifests) > 0 {
		all["manifest"] = claims.Manifests
	}
	for name, value := range map[string]string{"sub": claims.Subject, "group": claims.Group, "role": claims.Role, "unknown_line": claims.Unknown} {
		if value != "" {
			all[name] = value
		}
	}
	for name, value := range map[string]int64{"upload_kbps": claims.Upload, "disk_bytes": claims.Disk} {
		if value != 0 {
			all[name] = value
		}
	}
	var with any = key.Private
	method := jwt.SigningMethod(jwt.SigningMethodEdDSA)
	if key.Alg == access.HS256 {
		with, method = key.Secret, jwt.SigningMethodHS256
	}
	t := jwt.NewWithClaims(method, all)
	t.Header["kid"] = key.ID
	return t.SignedString(with)
}

// Peek takes a token apart without a look at its signature: for people to look at.
func Peek(token string) (header, claims json.RawMessage, err error) {
	var text payload
	t, _, err := parser.ParseUnverified(token, &text)
	if err != nil && !errors.Is(err, jwt.ErrTokenUnverifiable) {
		return nil, nil, err
	}
	header, err = json.Marshal(t.Header)
	return header, json.RawMessage(text), err
}
