package access

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Limits of key sets (spec/access.md).
const (
	maxKeys      = 16
	MaxKeyFile   = 64 << 10 // bytes
	minKeySecret = 32
	maxKeySecret = 512
)

// Algorithms of join tokens.
const (
	EdDSA = "EdDSA" // Ed25519
	HS256 = "HS256"
)

// Key checks tokens, and signs them where it holds the half that signs.
type Key struct {
	ID, Alg string
	Public  ed25519.PublicKey  // EdDSA
	Private ed25519.PrivateKey // EdDSA; nil: it only checks
	Secret  []byte             // HS256
}

// signs says whether the key can make tokens.
func (k Key) signs() bool { return k.Private != nil || k.Secret != nil }

// Keys are those of one site that are in force.
type Keys []Key

// Find returns the key of a name.
func (k Keys) Find(id string) (Key, bool) {
	i := slices.IndexFunc(k, func(one Key) bool { return one.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return k[i], true
}

// jwk is a key of RFC 7517, as far as it is known here.
type jwk struct {
	Type   string `json:"kty"`
	Curve  string `json:"crv,omitempty"`
	ID     string `json:"kid"`
	Alg    string `json:"alg,omitempty"`
	X      string `json:"x,omitempty"`
	D      string `json:"d,omitempty"`
	Secret string `json:"k,omitempty"`
}

// NewKey makes a key, of random bytes.
func NewKey(alg, id string) (Key, error) {
	k := Key{ID: id, Alg: alg}
	var err error
	switch alg {
	case EdDSA:
		k.Public, k.Private, err = ed25519.GenerateKey(rand.Reader)
	case HS256:
		k.Secret = make([]byte, minKeySecret)
		_, err = rand.Read(k.Secret)
	default:
		err = fmt.Errorf("%q is no algorithm of join tokens (%s or %s)", alg, EdDSA, HS256)
	}
	if err == nil && !KeyIDFits(id) {
		err = errKeyID
	}
	return k, err
}

var errKeyID = fmt.Errorf("a kid has 1 to %d characters of A-Z a-z 0-9 and - . _", maxKeyID)

// ParseKey reads a JWK that signs.
func ParseKey(text []byte) (Key, error) {
	var j jwk
	if err := json.Unmarshal(text, &j); err != nil {
		return Key{}, errors.New("is no JSON Web Key")
	}
	k, err := j.key()
	if err == nil && !k.signs() {
		err = errors.New("holds the public half alone, which signs nothing")
	}
	return k, err
}

// ParseKeys reads a JWK Set for checking tokens.
func ParseKeys(text []byte) (Keys, error) {
	if len(text) > MaxKeyFile {
		return nil, fmt.Errorf("has more than %d bytes", MaxKeyFile)
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New(`is no JWK Set: {"keys":[…]}`)
	}
	if len(set.Keys) < 1 || len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("has %d keys; allowed are 1 to %d", len(set.Keys), maxKeys)
	}
	var out Keys
	for i, j := range set.Keys {
		k, err := j.key()
		switch _, twice := out.Find(k.ID); {
		case err != nil:
			return nil, fmt.Errorf("keys[%d] %w", i, err)
		case k.Private != nil:
			return nil, fmt.Errorf("keys[%d] holds the half that signs (leave d out: a tracker that checks tokens need not be able to make them)", i)
		case twice:
			return nil, fmt.Errorf("keys[%d] has the kid of another one", i)
		}
		out = append(out, k)
	}
	return out, nil
}

func (j jwk) key() (Key, error) {
	k := Key{ID: j.ID}
	if !KeyIDFits(j.ID) {
		return k, fmt.Errorf("has no kid that fits: %w", errKeyID)
	}
	switch {
	case j.Type == "OKP" && j.Curve == "Ed25519":
		k.Alg = EdDSA
		x, err := base64.RawURLEncoding.DecodeString(j.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return k, errors.New("has no x of 32 bytes in base64url")
		}
		k.Public = x
		if j.D != "" {
			d, err := base64.RawURLEncoding.DecodeString(j.D)
			if err != nil || len(d) != ed25519.SeedSize {
				return k, errors.New("has no d of 32 bytes in base64url")
			}
			if k.Private = ed25519.NewKeyFromSeed(d); !k.Public.Equal(k.Private.Public()) {
				return k, errors.New("has an x that does not belong to its d")
			}
		}
	case j.Type == "oct":
		k.Alg = HS256
		secret, err := base64.RawURLEncoding.DecodeString(j.Secret)
		if err != nil || len(secret) < minKeySecret || len(secret) > maxKeySecret {
			return k, fmt.Errorf("has no k of %d to %d bytes in base64url", minKeySecret, maxKeySecret)
		}
		k.Secret = secret
	default:
		return k, errors.New("is neither of kty OKP with crv Ed25519 nor of kty oct")
	}
	if j.Alg != "" && j.Alg != k.Alg {
		return k, fmt.Errorf("has an alg that is not %s", k.Alg)
	}
	return k, nil
}

// MarshalJSON writes the JWK, with the half that signs where the key has it.
func (k Key) MarshalJSON() ([]byte, error) {
	j := jwk{ID: k.ID, Alg: k.Alg}
	if k.Alg == HS256 {
		j.Type, j.Secret = "oct", base64.RawURLEncoding.EncodeToString(k.Secret)
	} else {
		j.Type, j.Curve, j.X = "OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(k.Public)
		if k.Private != nil {
			j.D = base64.RawURLEncoding.EncodeToString(k.Private.Seed())
		}
	}
	return json.Marshal(j)
}

// Checking is the key without the half that signs, where it can do without.
func (k Key) Checking() Key {
	k.Private = nil
	return k
}
