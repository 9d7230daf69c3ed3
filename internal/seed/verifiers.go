package seed

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// verifiers are the keys that certificates are verified with: the seed's own and those of its siblings, which outlive their
// last beat by as long as a certificate lives.
type verifiers struct {
	mu   sync.Mutex
	keys map[certificate.KeyID]verifier // guarded by mu
	set  *certificate.KeySet            // guarded by mu; of keys
}

type verifier struct {
	key   certificate.VerifyKey
	until time.Time // zero: the seed's own, for good
}

func newVerifiers() *verifiers { return &verifiers{keys: map[certificate.KeyID]verifier{}} }

// own notes a key of this seed. One without sites signs nothing.
func (v *verifiers) own(key certificate.VerifyKey) error {
	if len(key.Sites) == 0 {
		return nil
	}
	return v.put(verifier{key: key})
}

// learn notes a key that another seed signs with.
func (v *verifiers) learn(key certificate.VerifyKey, now time.Time) error {
	v.mu.Lock()
	old, known := v.keys[key.KeyID]
	if known && old.until.IsZero() {
		v.mu.Unlock()
		return nil // our own, said by a seed that has a copy of our folder
	}
	if known && bytes.Equal(old.key.Key, key.Key) && slices.Equal(old.key.Sites, key.Sites) {
		old.until = now.Add(certificate.MaxLife)
		v.keys[key.KeyID] = old
		v.mu.Unlock()
		return nil
	}
	full := !known && len(v.keys) >= signal.MaxKeys
	if full {
		for id, k := range v.keys {
			if !k.until.IsZero() && now.After(k.until) {
				delete(v.keys, id)
				full = false
			}
		}
	}
	v.mu.Unlock()
	if full {
		return nil
	}
	return v.put(verifier{key, now.Add(certificate.MaxLife)})
}

func (v *verifiers) put(k verifier) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []certificate.VerifyKey{k.key}
	for id, other := range v.keys {
		if id != k.key.KeyID {
			list = append(list, other.key)
		}
	}
	set, err := certificate.NewKeySet(list...)
	if err != nil {
		return err
	}
	v.keys[k.key.KeyID], v.set = k, set
	return nil
}

// verify says what becomes of a certificate. Revocations are the caller's.
func (v *verifiers) verify(c *certificate.Certificate, site string, name segment.Name, now time.Time) certificate.Outcome {
	v.mu.Lock()
	key, known := v.keys[c.KeyID]
	set := v.set
	v.mu.Unlock()
	if !known || !key.until.IsZero() && now.After(key.until) {
		return certificate.UnknownKey
	}
	return certificate.OutcomeOf(set.Verify(c, site, name, now, nil))
}
