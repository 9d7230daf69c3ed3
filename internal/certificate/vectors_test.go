package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// vectors is spec/vectors/certificate.json. Outcomes are stated in build_test.go by thought; bytes are signed there.
type vectors struct {
	About        string              `json:"about"`
	Keys         []vectorKey         `json:"keys"`
	Certificates []vectorCertificate `json:"certificates"`
	Malformed    []vectorMalformed   `json:"malformed"`
	Cuts         []vectorCut         `json:"cuts"`
	Verify       []vectorVerify      `json:"verify"`
	Pieces       []vectorPieces      `json:"pieces"`
	Shorts       []vectorShort       `json:"shorts"`
	Lists        []vectorList        `json:"lists"`
	ListURLs     []vectorListURL     `json:"list_urls"`
	PartURLs     []vectorPartURL     `json:"part_urls"`
}

type vectorListURL struct {
	Playlist string `json:"playlist"`
	List     string `json:"list"`
}

type vectorPartURL struct {
	Object      string  `json:"object"`
	Range       []int64 `json:"range,omitempty"` // first and last byte; none: all of the object
	Certificate string  `json:"certificate"`
}

func (v vectorPartURL) url() string {
	if v.Range == nil {
		return PartURL(v.Object, false, 0, 0)
	}
	return PartURL(v.Object, true, v.Range[0], v.Range[1])
}

type vectorKey struct {
	Name    string `json:"name"`
	KeyID   string `json:"key_id"`
	Public  string `json:"public"`
	Private string `json:"private"`
	Alg     Alg    `json:"alg"`
}

type vectorCertificate struct {
	Name         string `json:"name"`
	Hex          string `json:"hex"`
	KeyID        string `json:"key_id"`
	IssuedAt     int64  `json:"issued_at"`
	NotAfter     int64  `json:"not_after"`
	ObjectLength int64  `json:"object_length"`
	Length       int64  `json:"length"`
	Site         string `json:"site"`
	Segment      string `json:"segment"`
	Validator    string `json:"validator_hex"`
	Digests      int    `json:"digests"`
	Alg          Alg    `json:"alg"`
}

// vectorShort is a short certificate, and the certificate that it becomes. Verified as the plain one is.
type vectorShort struct {
	Name        string  `json:"name"`
	Certificate string  `json:"certificate"`
	Hex         string  `json:"hex"`
	Outcome     Outcome `json:"outcome"`
}

// vectorList is a list and the segments it names; none, not even an empty array, of a list that is malformed.
type vectorList struct {
	Name    string   `json:"name"`
	Hex     string   `json:"hex"`
	Entries []string `json:"entries"`
}

type vectorMalformed struct {
	Name    string  `json:"name"`
	Hex     string  `json:"hex"`
	Outcome Outcome `json:"outcome"`
}

type vectorCut struct {
	Certificate string  `json:"certificate"`
	Length      int     `json:"length"`
	Where       string  `json:"where"`
	Outcome     Outcome `json:"outcome"`
}

type vectorVerify struct {
	Name        string             `json:"name"`
	Certificate string             `json:"certificate,omitempty"`
	Hex         string             `json:"hex,omitempty"`
	Site        string             `json:"site"`
	Segment     string             `json:"segment"`
	Keys        []string           `json:"keys"`
	Revocations []vectorRevocation `json:"revocations"`
	NowMs       int64              `json:"now_ms"`
	Outcome     Outcome            `json:"outcome"`
}

type vectorRevocation struct {
	KeyID       string `json:"key_id,omitempty"`
	Site        string `json:"site,omitempty"`
	Prefix      string `json:"prefix,omitempty"`
	MinIssuedAt int64  `json:"min_issued_at,omitempty"`
}

type vectorPieces struct {
	Length  int      `json:"length"`
	Digests []string `json:"digests"`
}

// filling is the content of vectors: byte i is (31 i + ⌊i / 256⌋) mod 256.
func filling(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(31*i + i>>8)
	}
	return b
}

func testKey(tb testing.TB, name string) *ecdsa.PrivateKey {
	tb.Helper()
	scalar := sha256.Sum256([]byte("leeway test key " + name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:])
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func readVectors(tb testing.TB) vectors { return spec.Vectors[vectors](tb, "certificate.json") }

func (v vectors) hexOf(name string) string {
	for _, c := range v.Certificates {
		if c.Name == name {
			return c.Hex
		}
	}
	return ""
}

func (v vectors) keySet(tb testing.TB, site string, names []string) *KeySet {
	tb.Helper()
	var keys []VerifyKey
	for _, name := range names {
		for _, k := range v.Keys {
			if k.Name == name {
				keys = append(keys, VerifyKey{KeyID(unhex(tb, k.KeyID)), unhex(tb, k.Public), []string{site}, k.Alg})
			}
		}
	}
	set, err := NewKeySet(keys...)
	if err != nil || len(keys) != len(names) {
		tb.Fatal(names, err)
	}
	return set
}

// TestVectors holds the package to spec/vectors/certificate.json; with -update it writes the file first.
func TestVectors(t *testing.T) {
	if *spec.Update {
		spec.Write(t, "certificate.json", encode(t, build(t)))
	}
	v := readVectors(t)
	t.Run("parse", func(t *testing.T) {
		for _, c := range v.Certificates {
			checkParsed(t, c)
		}
		for _, c := range v.Malformed {
			if _, err := Parse(unhex(t, c.Hex)); OutcomeOf(err) != c.Outcome {
				t.Errorf("%s: got %v, want %s", c.Name, err, c.Outcome)
			}
		}
		for _, c := range v.Cuts {
			b := unhex(t, v.hexOf(c.Certificate))
			if c.Length > len(b) {
				b = append(b, make([]byte, c.Length-len(b))...)
			}
			if _, err := Parse(b[:c.Length]); OutcomeOf(err) != c.Outcome {
				t.Errorf("%s cut to %d (%s): got %v, want %s", c.Certificate, c.Length, c.Where, err, c.Outcome)
			}
		}
	})
	for _, c := range v.Shorts {
		t.Run("short: "+c.Name, func(t *testing.T) { checkShort(t, v, c) })
	}
	for _, c := range v.Lists {
		t.Run("list: "+c.Name, func(t *testing.T) { checkList(t, c) })
	}
	for _, c := range v.ListURLs {
		if got := ListURL(c.Playlist); got != c.List {
			t.Errorf("the list of %s is %s, not %s", c.Playlist, got, c.List)
		}
	}
	for _, c := range v.PartURLs {
		if got := c.url(); got != c.Certificate {
			t.Errorf("the certificate of %s %v is %s, not %s", c.Object, c.Range, got, c.Certificate)
		}
	}
	for _, c := range v.Verify {
		t.Run(c.Name, func(t *testing.T) { checkVerify(t, v, c) })
	}
	for _, c := range v.Pieces {
		digests := DigestPieces(filling(c.Length))
		if len(digests) != len(c.Digests) {
			t.Fatalf("%d bytes have %d digests", c.Length, len(digests))
		}
		for i, d := range digests {
			if hex.EncodeToString(d[:]) != c.Digests[i] {
				t.Errorf("digest %d of %d bytes is %x", i, c.Length, d)
			}
		}
	}
}

// TestVectorsAreWhatTheKeysSign keeps the committed file and build_test.go together: signatures are deterministic.
func TestVectorsAreWhatTheKeysSign(t *testing.T) {
	if !bytes.Equal(spec.Bytes(t, "certificate.json"), encode(t, build(t))) {
		t.Error("spec/vectors/certificate.json is not what build_test.go makes; run go test ./internal/certificate -run TestVectors -update")
	}
}

func checkParsed(t *testing.T, want vectorCertificate) {
	t.Helper()
	raw := unhex(t, want.Hex)
	c, err := Parse(raw)
	if err != nil {
		t.Errorf("%s: %v", want.Name, err)
		return
	}
	got := vectorCertificate{
		want.Name, want.Hex, c.KeyID.String(), c.IssuedAt.UnixMilli(), c.NotAfter.UnixMilli(), c.ObjectLength, c.Length,
		c.Site, string(c.Name), hex.EncodeToString([]byte(c.Validator)), len(c.Digests), c.Alg,
	}
	if got != want || !bytes.Equal(c.Bytes(), raw) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func checkVerify(t *testing.T, v vectors, want vectorVerify) {
	if want.Certificate != "" {
		want.Hex = v.hexOf(want.Certificate)
	}
	c, err := Parse(unhex(t, want.Hex))
	if err == nil {
		var revoked Revocations
		for _, r := range want.Revocations {
			add := Revocation{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: time.UnixMilli(r.MinIssuedAt)}
			copy(add.KeyID[:], unhex(t, r.KeyID))
			if err := revoked.Add(add); err != nil {
				t.Fatal(err)
			}
		}
		keys, now := v.keySet(t, want.Site, want.Keys), time.UnixMilli(want.NowMs)
		err = keys.Verify(c, want.Site, segment.Name(want.Segment), now, &revoked)
		// A bad signature and a wrong name come before others are looked for.
		if o := want.Outcome; o != BadSignature && o != WrongName && keys.Counts(c, want.Site, now, &revoked) != (o == Valid && c.Alg == Packager) {
			t.Errorf("%s, and counts: %v", o, keys.Counts(c, want.Site, now, &revoked))
		}
	}
	if OutcomeOf(err) != want.Outcome {
		t.Errorf("got %v, want %s", err, want.Outcome)
	}
}

func checkShort(t *testing.T, v vectors, want vectorShort) {
	c, err := ParseShort(unhex(t, want.Hex))
	if err == nil {
		err = v.keySet(t, "demo", []string{"A", "P"}).Verify(c, "demo", film, time.UnixMilli(t0+1000), nil)
	}
	if OutcomeOf(err) != want.Outcome {
		t.Fatalf("got %v, want %s", err, want.Outcome)
	}
	if err != nil {
		return
	}
	data := filling(int(c.Length))
	full, err := c.Complete(int64(len(data)), DigestPieces(data))
	if err != nil || hex.EncodeToString(full.Bytes()) != v.hexOf(want.Certificate) {
		t.Errorf("completed: %v, not the certificate %q", err, want.Certificate)
	}
	data[0] ^= 1
	if _, err := c.Complete(int64(len(data)), DigestPieces(data)); err == nil {
		t.Error("completed with other bytes")
	}
}

func checkList(t *testing.T, want vectorList) {
	list, err := ParseList(unhex(t, want.Hex))
	if (err == nil) != (want.Entries != nil) {
		t.Fatalf("got %v, want %q", err, want.Entries)
	}
	if err != nil && !errors.Is(err, ErrList) {
		t.Errorf("%v is not ErrList", err)
	}
	var got []string
	for _, c := range list {
		got = append(got, string(c.Name))
	}
	if !slices.Equal(got, want.Entries) {
		t.Errorf("got %q, want %q", got, want.Entries)
	}
}
