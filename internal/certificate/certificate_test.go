package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

func keySet(tb testing.TB, key *ecdsa.PrivateKey, sites ...string) *KeySet {
	tb.Helper()
	point, err := key.PublicKey.Bytes()
	if err != nil {
		tb.Fatal(err)
	}
	set, err := NewKeySet(VerifyKey{KeyID: KeyIDOf(&key.PublicKey), Key: point, Sites: sites})
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func issued(tb testing.TB, length int) *Certificate {
	tb.Helper()
	raw, err := Issue(nil, testKey(tb, "A"), plain(length))
	if err != nil {
		tb.Fatal(err)
	}
	c, err := Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestIssuedWithRandomnessVerifies(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Issue(rand.Reader, key, plain(40000))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(t0)
	if err := keySet(t, key, "demo").Verify(c, "demo", film, now, nil); err != nil {
		t.Error(err)
	}
	if err := keySet(t, key, "other").Verify(c, "demo", film, now, nil); OutcomeOf(err) != UnknownKey {
		t.Errorf("a key of another site: %v", err)
	}
	var none *KeySet
	if err := none.Verify(c, "demo", film, now, nil); OutcomeOf(err) != UnknownKey {
		t.Errorf("no set of keys: %v", err)
	}
	made := plain(40000)
	made.KeyID = KeyIDOf(&key.PublicKey)
	if err := keySet(t, key, "demo").Verify(&made, "demo", film, now, nil); OutcomeOf(err) != BadSignature {
		t.Errorf("a certificate that was never parsed: %v", err)
	}
}

func TestParseKeepsNothingOfItsInput(t *testing.T) {
	raw, err := Issue(nil, testKey(t, "A"), plain(40000))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if err := keySet(t, testKey(t, "A"), "demo").Verify(c, "demo", film, time.UnixMilli(t0), nil); err != nil {
		t.Errorf("after the buffer was reused: %v", err)
	}
}

func TestEveryTruncationIsMalformed(t *testing.T) {
	raw := issued(t, 20000).Bytes()
	for n := range raw {
		if _, err := Parse(raw[:n]); OutcomeOf(err) != Malformed {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	raw := issued(t, 20000).Bytes()
	set := keySet(t, testKey(t, "A"), "demo")
	for i := range raw {
		c, err := Parse(flip(raw, i))
		if err == nil {
			err = set.Verify(c, "demo", film, time.UnixMilli(t0), nil)
		}
		if err == nil {
			t.Errorf("byte %d may change", i)
		}
	}
}

func TestIssueRefuses(t *testing.T) {
	for name, change := range map[string]func(*Certificate){
		"no name":           func(c *Certificate) { c.Name = "" },
		"digest missing":    func(c *Certificate) { c.Digests = c.Digests[1:] },
		"long validator":    func(c *Certificate) { c.Validator = string(make([]byte, 256)) },
		"before 1970":       func(c *Certificate) { c.IssuedAt = time.UnixMilli(-1) },
		"longer than 8 MiB": func(c *Certificate) { c.Length = segment.MaxLength + 1 },
	} {
		if _, err := Issue(nil, testKey(t, "A"), with(plain(1000), change)); err == nil {
			t.Errorf("%s: issued", name)
		}
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []*ecdsa.PrivateKey{nil, p384} {
		if _, err := Issue(nil, key, plain(1)); err == nil {
			t.Error("issued with a key that is none")
		}
	}
}

func TestNewKeySetRefuses(t *testing.T) {
	key := testKey(t, "A")
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	id := KeyIDOf(&key.PublicKey)
	for name, k := range map[string]VerifyKey{
		"short":         {id, point[:64], []string{"demo"}, Seed},
		"off the curve": {id, append(append([]byte(nil), point[:64]...), point[64]^1), []string{"demo"}, Seed},
		"another ID":    {KeyIDOf(&testKey(t, "B").PublicKey), point, []string{"demo"}, Seed},
		"no sites":      {id, point, nil, Seed},
	} {
		if _, err := NewKeySet(k); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	twice, err := NewKeySet(VerifyKey{id, point, []string{"a"}, 0}, VerifyKey{id, point, []string{"demo"}, Seed})
	if err != nil || twice.Verify(issued(t, 1), "demo", film, time.UnixMilli(t0), nil) != nil {
		t.Errorf("a key listed for two sites: %v", err)
	}
}

func TestRevocations(t *testing.T) {
	var r Revocations
	for _, bad := range []Revocation{{}, {Site: "demo"}, {Site: "demo", Prefix: "a"}, {KeyID: KeyID{1}, Site: "demo", Prefix: "/"}} {
		if r.Add(bad) == nil {
			t.Errorf("%+v was added", bad)
		}
	}
	c := issued(t, 1)
	if err := r.Add(Revocation{Site: "demo", Prefix: "/", MinIssuedAt: time.UnixMilli(t0 + 5)}, Revocation{Site: "demo", Prefix: "/", MinIssuedAt: time.UnixMilli(1)}); err != nil || !r.Withdraws(c) {
		t.Errorf("an older revocation has lifted a later one: %v", err)
	}
	if list := r.List(); len(list) != 1 || list[0].MinIssuedAt.UnixMilli() != t0+5 {
		t.Errorf("list is %+v", list)
	}
	for i := range MaxRevocations + 1 {
		err := r.Add(Revocation{KeyID: KeyID{1, byte(i >> 8), byte(i)}})
		if full := i >= MaxRevocations-1; (err != nil) != full {
			t.Fatalf("revocation %d: %v", i, err)
		}
	}
	if err := r.Add(Revocation{KeyID: KeyID{1}}); err != nil || len(r.List()) != MaxRevocations {
		t.Errorf("one that is known: %v; %d listed", err, len(r.List()))
	}
	var none *Revocations
	if none.Withdraws(c) || none.List() != nil {
		t.Error("nil withdraws")
	}
}

func TestTombstones(t *testing.T) {
	now, end := time.UnixMilli(t0), time.UnixMilli(t0+3600000)
	tomb := Tombstone("demo", "/media/", end)
	var r Revocations
	if err := r.Add(tomb); err != nil {
		t.Fatal(err)
	}
	least := r.Since("demo", film)
	for at, buried := range map[time.Time]bool{now: true, end.Add(-time.Millisecond): true, end: false, end.Add(time.Hour): false} {
		if Buried(least, at) != buried {
			t.Errorf("%s after: buried %v", at.Sub(now), !buried)
		}
	}
	if Buried(r.Since("demo", "/other/seg-1.ts"), now) || Buried(r.Since("other", film), now) {
		t.Error("what is not below the prefix is buried")
	}
	// A purge signed by a clock that is ahead is none.
	if Buried(now.Add(MaxSkew), now) || Ended(least, end.Add(MaxLife), MaxLife) || !Ended(least, end.Add(MaxLife+2*MaxSkew+1), MaxLife) {
		t.Error("a tombstone is forgotten when all that it withdraws has expired")
	}
}

func TestCheckPiece(t *testing.T) {
	data := filling(20000)
	c := issued(t, len(data))
	for _, v := range []struct {
		i    int
		data []byte
		want bool
	}{
		{0, data[:16384], true},
		{1, data[16384:], true},
		{1, data[:16384], false},
		{0, data[:16383], false},
		{1, data[16384:19999], false},
		{0, nil, false},
		{2, nil, false},
		{-1, nil, false},
		{1, flip(data[16384:], 7), false},
	} {
		if got := c.CheckPiece(v.i, v.data); got != v.want {
			t.Errorf("piece %d of %d bytes: %v", v.i, len(v.data), got)
		}
	}
	if !c.SameContent(issued(t, 20000)) || c.SameContent(issued(t, 20001)) || c.SameContent(issued(t, 1)) {
		t.Error("SameContent")
	}
}

func TestErrorsSayWhatTheyAre(t *testing.T) {
	_, err := Parse(nil)
	var e *Error
	if !errors.As(err, &e) || e.Unwrap() == nil || OutcomeOf(nil) != Valid || OutcomeOf(errors.New("x")) != Malformed {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	v := readVectors(f)
	for _, c := range v.Certificates {
		if len(c.Hex) < 4000 {
			f.Add(unhex(f, c.Hex))
		}
	}
	for _, c := range v.Malformed {
		f.Add(unhex(f, c.Hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			if o := OutcomeOf(err); o != Malformed && o != UnknownAlg {
				t.Fatal(err)
			}
			return
		}
		if got := append(c.body(), b[len(b)-signatureSize:]...); string(got) != string(b) {
			t.Fatalf("another certificate says the same:\n%x\n%x", b, got)
		}
	})
}

// FuzzParseList reads lists and short certificates, and writes what was read again.
func FuzzParseList(f *testing.F) {
	v := readVectors(f)
	for _, l := range v.Lists {
		f.Add(unhex(f, l.Hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseList(b)
		if err != nil {
			return
		}
		var entries [][]byte
		for _, c := range list {
			e, err := c.Short()
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		again, err := EncodeList(entries)
		if err != nil || len(list) == int(binary.BigEndian.Uint32(b[4:])) && !bytes.Equal(again, b) {
			t.Fatalf("another list says the same (%v):\n%x\n%x", err, b, again)
		}
	})
}

// BenchmarkVerify is the cost of trusting a segment of 4 MiB: one verification, 256 digests. The figure x-ecdsa compares
// Verify with the bare signature check of the standard library in the same run: what our own code adds to it.
func BenchmarkVerify(b *testing.B) {
	c := issued(b, segment.VirtualLength)
	key := testKey(b, "A")
	set := keySet(b, key, "demo")
	now := time.UnixMilli(t0)
	digest := sha256.Sum256(nil)
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		b.Fatal(err)
	}
	besides(b, "x-ecdsa", func() { ecdsa.Verify(&key.PublicKey, digest[:], r, s) })
	for b.Loop() {
		if err := set.Verify(c, "demo", film, now, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// besides reports how many times the benchmark's own loop takes what baseline takes, measured in the same run.
func besides(b *testing.B, unit string, baseline func()) {
	const rounds = 50
	best := time.Duration(1 << 62)
	for range rounds {
		start := time.Now()
		baseline()
		best = min(best, time.Since(start))
	}
	b.Cleanup(func() { b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(best), unit) })
}

// BenchmarkDigestPieces digests 4 MiB; x-sha256 compares it with one digest over all of it: the cost of having pieces.
func BenchmarkDigestPieces(b *testing.B) {
	data := filling(segment.VirtualLength)
	b.SetBytes(int64(len(data)))
	besides(b, "x-sha256", func() { sha256.Sum256(data) })
	for b.Loop() {
		DigestPieces(data)
	}
}

func BenchmarkParse(b *testing.B) {
	raw := issued(b, segment.VirtualLength).Bytes()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAPurgeOutlivesWhatAPackagerSigned: its certificates live for up to 31 days, those of seeds for 6 hours.
func TestAPurgeOutlivesWhatAPackagerSigned(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	r := &Revocations{}
	r.Packaged("films")
	for _, site := range []string{"films", "demo"} {
		if err := r.Add(Revocation{Site: site, Prefix: "/", MinIssuedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	signed := &Certificate{Site: "films", Name: "/a", IssuedAt: now.Add(-time.Millisecond), Alg: Packager}
	r.Forget(now.Add(MaxLife + MaxSkew + time.Millisecond))
	if len(r.List()) != 1 || !r.Withdraws(signed) {
		t.Fatalf("%v are left", r.List())
	}
	r.Forget(now.Add(MaxPackaged + MaxSkew))
	if !r.Withdraws(signed) {
		t.Error("forgotten while a packager's certificate from before may be valid")
	}
	r.Forget(now.Add(MaxPackaged + MaxSkew + time.Millisecond))
	if r.Withdraws(signed) || len(r.List()) != 0 {
		t.Error("never forgotten")
	}
}

// TestRoomIsMadeByTheOldest: what withdraws certificates of packagers alone gives way to a new purge, what withdraws a seed's does not.
func TestRoomIsMadeByTheOldest(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	r := &Revocations{}
	r.Packaged("films")
	for i, ago := range []time.Duration{2 * MaxLife, 3 * MaxLife, MaxLife, 0} {
		if err := r.Add(Revocation{Site: "films", Prefix: fmt.Sprintf("/%d/", i), MinIssuedAt: now.Add(-ago)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"/0/", "/2/", "/2/"} {
		r.MakeRoom(now)
		if list := r.List(); list[0].Prefix != want {
			t.Errorf("%v are left", list)
		}
	}
	if n := len(r.List()); n != 2 {
		t.Errorf("%d are left", n)
	}
}

// TestEndedRevocationsMakeRoom: a process that lives for years hears more purges than a set holds.
func TestEndedRevocationsMakeRoom(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	r := &Revocations{}
	key := Revocation{KeyID: KeyID{1}}
	if err := r.Add(key); err != nil {
		t.Fatal(err)
	}
	for i := range MaxRevocations - 1 {
		if err := r.Add(Revocation{Site: "demo", Prefix: fmt.Sprintf("/%d/", i), MinIssuedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	fresh := Revocation{Site: "demo", Prefix: "/fresh/", MinIssuedAt: now.Add(7 * time.Hour)}
	if r.Add(fresh) == nil {
		t.Fatal("more than a set holds was taken in")
	}
	r.Forget(now.Add(MaxLife + MaxSkew))
	if r.Holds(fresh) || len(r.List()) != MaxRevocations {
		t.Errorf("%d are left while they may still withdraw something", len(r.List()))
	}
	r.Forget(now.Add(MaxLife + MaxSkew + time.Millisecond))
	if err := r.Add(fresh); err != nil || len(r.List()) != 2 || !r.Holds(fresh) || !r.Holds(key) {
		t.Errorf("%v, %d are left", err, len(r.List()))
	}
	older := fresh
	if older.MinIssuedAt = now; !r.Holds(older) {
		t.Error("a later purge of the same prefix withdraws more")
	}
	if since := r.Since("demo", "/fresh/1.ts"); !since.Equal(fresh.MinIssuedAt) || r.Since("demo", "/other/").UnixMilli() != 0 {
		t.Errorf("since %s", since)
	}
}
