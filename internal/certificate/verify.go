package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// Outcome of a verification: a closed set, the same in both languages (spec/certificate.md, "Verification").
type Outcome string

// The outcomes, in the order in which they are tested for.
const (
	Malformed     Outcome = "malformed"
	UnknownAlg    Outcome = "unknown-alg"
	UnknownKey    Outcome = "unknown-key"
	BadSignature  Outcome = "bad-signature"
	WrongSite     Outcome = "wrong-site"
	WrongName     Outcome = "wrong-name"
	Revoked       Outcome = "revoked"
	Expired       Outcome = "expired"
	FromTheFuture Outcome = "from-the-future"
	Valid         Outcome = "valid"
)

// MaxSkew is how far in the future of tracker time a certificate may have been issued.
const MaxSkew = 5 * time.Minute

// Error is why a certificate is refused.
type Error struct {
	Outcome Outcome
	Cause   error
}

func (e *Error) Error() string { return fmt.Sprintf("certificate is %s: %v", e.Outcome, e.Cause) }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// OutcomeOf is the outcome that an error of Parse or Verify stands for; Valid for nil.
func OutcomeOf(err error) Outcome {
	var e *Error
	switch {
	case err == nil:
		return Valid
	case errors.As(err, &e):
		return e.Outcome
	}
	return Malformed
}

// VerifyKey is a public key, the sites that it may vouch for, and its one use: a seed's key or a packager's.
type VerifyKey struct {
	KeyID KeyID
	Key   []byte   // the uncompressed point, 65 bytes
	Sites []string // at least one
	Alg   Alg      // that it signs with; the zero value is Seed
}

// KeySet holds the keys that certificates are verified with. It is immutable and safe for concurrent use; the zero value
// and nil know no key.
type KeySet struct {
	keys map[use]verifier
}

// use is a key for one algorithm. A key signs nothing of the other kind.
type use struct {
	key KeyID
	alg Alg
}

type verifier struct {
	public *ecdsa.PublicKey
	sites  []string
}

// NewKeySet checks keys and puts them together. A key that is listed twice for one use vouches for the sites of both.
func NewKeySet(keys ...VerifyKey) (*KeySet, error) {
	s := &KeySet{keys: make(map[use]verifier, len(keys))}
	for _, k := range keys {
		public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), k.Key)
		switch {
		case err != nil:
			return nil, fmt.Errorf("verify key %s: %w (the uncompressed P-256 point, 65 bytes)", k.KeyID, err)
		case keyIDOfPoint(k.Key) != k.KeyID:
			return nil, fmt.Errorf("verify key %s: the key's ID is %s", k.KeyID, keyIDOfPoint(k.Key))
		case len(k.Sites) == 0:
			return nil, fmt.Errorf("verify key %s: no sites (name those that it may vouch for)", k.KeyID)
		}
		at := use{k.KeyID, max(k.Alg, Seed)}
		s.keys[at] = verifier{public, append(slices.Clone(s.keys[at].sites), k.Sites...)}
	}
	return s, nil
}

// Verify says whether a parsed certificate vouches for the segment that the caller itself named, at tracker time now. It
// fails with an *Error; revoked may be nil.
func (s *KeySet) Verify(c *Certificate, site string, name segment.Name, now time.Time, revoked *Revocations) error {
	var key verifier
	if s != nil {
		key = s.keys[use{c.KeyID, max(c.Alg, Seed)}]
	}
	switch {
	case key.public == nil || !slices.Contains(key.sites, site):
		return refuse(UnknownKey, "key %s is none of site %q for alg %d", c.KeyID, site, c.Alg)
	case !c.signedBy(key.public):
		return refuse(BadSignature, "key %s did not sign it", c.KeyID)
	case c.Site != site:
		return refuse(WrongSite, "it is of site %q, not %q", c.Site, site)
	case c.Name != name:
		return refuse(WrongName, "it names %q, not %q", c.Name, name)
	case revoked.Withdraws(c):
		return refuse(Revoked, "withdrawn by the tracker")
	}
	return timely(c, now)
}

func refuse(o Outcome, format string, args ...any) error {
	return &Error{Outcome: o, Cause: fmt.Errorf(format, args...)}
}

func (c *Certificate) signedBy(key *ecdsa.PublicKey) bool {
	if len(c.raw) < minSize {
		return false // not made by Parse
	}
	body, sig := c.raw[:len(c.raw)-signatureSize], c.raw[len(c.raw)-signatureSize:]
	cut := len(body) - digestSize*max(1, len(c.Digests)) // a short one has their SHA-256 in their place
	digests := body[cut:]
	if c.Alg == Packager {
		digests = c.root[:]
	}
	digest := signedDigest(body[:cut], digests)
	return ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
}
