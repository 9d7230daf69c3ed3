package seed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/binary"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

var at = time.Unix(2_000_000_000, 0)

// verifierKey makes a key of another seed.
func verifierKey(t *testing.T, sites ...string) (*ecdsa.PrivateKey, certificate.VerifyKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return key, certificate.VerifyKey{KeyID: certificate.KeyIDOf(&key.PublicKey), Key: point, Sites: sites}
}

func signed(t *testing.T, key *ecdsa.PrivateKey, issued time.Time) *certificate.Certificate {
	t.Helper()
	raw, err := certificate.Issue(nil, key, certificate.Certificate{
		IssuedAt: issued, NotAfter: issued.Add(certificate.MaxLife), ObjectLength: 3, Length: 3, Site: "demo", Name: "segment", Digests: certificate.DigestPieces([]byte("abc")),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := certificate.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTheKeyOfASiblingOutlivesItsLastBeat: by as long as a certificate lives, and each beat begins that anew.
func TestTheKeyOfASiblingOutlivesItsLastBeat(t *testing.T) {
	v := newVerifiers()
	key, shown := verifierKey(t, "demo")
	outcome := func(now time.Time) certificate.Outcome {
		return v.verify(signed(t, key, now), "demo", segment.Name("segment"), now)
	}
	if got := outcome(at); got != certificate.UnknownKey {
		t.Errorf("a key that was not heard of: %v", got)
	}
	for _, beat := range []time.Time{at, at.Add(time.Hour)} {
		if err := v.learn(shown, beat); err != nil {
			t.Fatal(err)
		}
	}
	end := at.Add(time.Hour + certificate.MaxLife)
	if got := outcome(end); got != certificate.OutcomeOf(nil) {
		t.Errorf("at its end: %v", got)
	}
	if got := outcome(end.Add(time.Millisecond)); got != certificate.UnknownKey {
		t.Errorf("after its end: %v", got)
	}
}

// TestOwnKeysStay: whatever a seed with a copy of the folder says of them. A key without sites signs nothing.
func TestOwnKeysStay(t *testing.T) {
	v := newVerifiers()
	key, own := verifierKey(t, "demo")
	if err := v.own(own); err != nil {
		t.Fatal(err)
	}
	stolen := own
	stolen.Sites = []string{"other"}
	if err := v.learn(stolen, at); err != nil {
		t.Fatal(err)
	}
	late := at.Add(10 * certificate.MaxLife)
	if got := v.verify(signed(t, key, late), "demo", "segment", late); got != certificate.OutcomeOf(nil) {
		t.Errorf("the seed's own key: %v", got)
	}
	_, idle := verifierKey(t)
	if err := v.own(idle); err != nil || len(v.keys) != 1 {
		t.Errorf("a key without sites: %v, %d keys", err, len(v.keys))
	}
}

// TestSoManyKeysAndNoMore: a new one has room once others have ended.
func TestSoManyKeysAndNoMore(t *testing.T) {
	v := newVerifiers()
	for range signal.MaxKeys + 3 {
		_, key := verifierKey(t, "demo")
		if err := v.learn(key, at); err != nil {
			t.Fatal(err)
		}
	}
	if len(v.keys) != signal.MaxKeys {
		t.Errorf("%d keys, want %d", len(v.keys), signal.MaxKeys)
	}
	_, key := verifierKey(t, "demo")
	if err := v.learn(key, at.Add(certificate.MaxLife+time.Second)); err != nil || v.keys[key.KeyID].until.IsZero() || len(v.keys) != 1 {
		t.Errorf("%v; %d keys after all had ended", err, len(v.keys))
	}
	broken := certificate.VerifyKey{KeyID: certificate.KeyID{1}, Key: []byte{4}, Sites: []string{"demo"}}
	if err := v.learn(broken, at); err == nil || len(v.keys) != 1 {
		t.Errorf("what is no key was taken: %v", err)
	}
}

// TestTheLedgerForgetsALiveStream: an hour of certificates of ten minutes leaves those of twenty minutes at most.
func TestTheLedgerForgetsALiveStream(t *testing.T) {
	now := at
	i := &issuer{now: func() time.Time { return now }, ledger: map[segment.ID]issued{}}
	for n := range 1800 {
		var id segment.ID
		binary.BigEndian.PutUint32(id[:], uint32(n))
		i.record(id, certificate.Certificate{NotAfter: now.Add(lifeLive)}, [32]byte{})
		now = now.Add(2 * time.Second)
	}
	if n := len(i.ledger); n < 300 || n > 600 {
		t.Errorf("%d entries", n)
	}
}

// TestTheLedgerIsBounded: what has ended goes first, then some of the rest.
func TestTheLedgerIsBounded(t *testing.T) {
	i := &issuer{now: func() time.Time { return at }, ledger: map[segment.ID]issued{}}
	entry := func(n int, until time.Time) (id segment.ID, c certificate.Certificate) {
		binary.BigEndian.PutUint32(id[:], uint32(n))
		return id, certificate.Certificate{NotAfter: until}
	}
	for n := range maxLedger {
		until := at.Add(time.Hour)
		if n%2 == 0 {
			until = at
		}
		id, c := entry(n, until)
		i.record(id, c, [32]byte{})
	}
	id, c := entry(maxLedger, at.Add(time.Hour))
	i.record(id, c, [32]byte{})
	if want := maxLedger/2 + 1; len(i.ledger) != want {
		t.Fatalf("%d entries, want the %d that have not ended", len(i.ledger), want)
	}
	for n := maxLedger + 1; len(i.ledger) < maxLedger; n++ {
		id, c := entry(n, at.Add(time.Hour))
		i.record(id, c, [32]byte{})
	}
	id, c = entry(1<<30, at.Add(time.Hour))
	i.record(id, c, [32]byte{})
	if n := len(i.ledger); n >= maxLedger*3/4+1 {
		t.Errorf("%d entries, none of them ended, want fewer than three quarters of %d", n, maxLedger)
	}
	if _, kept := i.ledger[id]; !kept {
		t.Error("the newest is not there")
	}
}

// TestWhatIsLiveIsForgottenBeforeFilms: a seed of many low-latency streams certifies more in ten minutes than it remembers. It still knows
// what it certified of a film, whose certificates viewers hold for hours.
func TestWhatIsLiveIsForgottenBeforeFilms(t *testing.T) {
	const films = 1000
	i := &issuer{now: func() time.Time { return at }, ledger: map[segment.ID]issued{}, takedowns: &takedowns{revoked: &certificate.Revocations{}}}
	certify := func(n int, life time.Duration, content byte) bool {
		var id segment.ID
		binary.BigEndian.PutUint32(id[:], uint32(n))
		return i.record(id, certificate.Certificate{NotAfter: at.Add(life)}, [32]byte{content})
	}
	for n := range films {
		certify(n, lifeVOD, 1)
	}
	for n := range 2 * maxLedger {
		certify(films+n, lifeLive, 1)
	}
	signed := 0
	for n := range films {
		if certify(n, lifeVOD, 2) {
			signed++
		}
	}
	if signed > 0 {
		t.Errorf("other bytes of %d of %d segments would be signed", signed, films)
	}
}
