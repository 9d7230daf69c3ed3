package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
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

// BenchmarkPart is what a part of 117 kB of a low-latency stream costs its signer and its readers.
func BenchmarkPart(b *testing.B) {
	data := filling(117_335)
	key := testKey(b, "A")
	c := Certificate{
		IssuedAt: time.UnixMilli(t0), NotAfter: time.UnixMilli(t0).Add(10 * time.Minute), ObjectLength: int64(len(data)), Length: int64(len(data)),
		Site: "demo", Name: film, Digests: DigestPieces(data),
	}
	raw, err := Issue(nil, key, c)
	if err != nil {
		b.Fatal(err)
	}
	parsed, err := Parse(raw)
	if err != nil {
		b.Fatal(err)
	}
	set := keySet(b, key, "demo")
	b.Run("digests", func(b *testing.B) {
		for b.Loop() {
			DigestPieces(data)
		}
	})
	b.Run("issue", func(b *testing.B) {
		for b.Loop() {
			if _, err := Issue(nil, key, c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.ReportMetric(float64(len(raw)), "bytes")
		for b.Loop() {
			if err := set.Verify(parsed, "demo", film, parsed.IssuedAt, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
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
