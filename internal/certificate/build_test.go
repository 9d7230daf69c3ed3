package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// The story of the vectors: seed A issues at t0 for six hours, seed B is another.
const (
	t0       = int64(1790000000000)
	lifetime = int64(6 * 3600 * 1000)
	film     = "/media/bbb/720p/seg-1.ts"
)

// builder makes the vectors; expected outcomes are stated, never computed.
type builder struct {
	tb   testing.TB
	a, b *ecdsa.PrivateKey // of seeds
	p    *ecdsa.PrivateKey // of a packager
	v    vectors
}

func build(tb testing.TB) vectors {
	m := &builder{tb: tb, a: testKey(tb, "A"), b: testKey(tb, "B"), p: testKey(tb, "P")}
	m.v.About = "spec/certificate.md. Made by go test ./internal/certificate -run TestVectors -update; the keys are for tests alone. " +
		"Content: byte i of a segment is (31 i + floor(i / 256)) mod 256. cuts: a certificate cut to, or filled with zeros up to, so many bytes."
	for _, k := range []struct {
		name string
		key  *ecdsa.PrivateKey
		alg  Alg
	}{{"A", m.a, Seed}, {"B", m.b, Seed}, {"P", m.p, Packager}} {
		point, err := k.key.PublicKey.Bytes()
		private, err2 := k.key.Bytes()
		if err != nil || err2 != nil {
			tb.Fatal(err, err2)
		}
		sum := sha256.Sum256(point)
		m.v.Keys = append(m.v.Keys, vectorKey{k.name, hex.EncodeToString(sum[:8]), hex.EncodeToString(point), hex.EncodeToString(private), k.alg})
	}
	m.certificates()
	m.malformed()
	m.cuts()
	m.verify()
	m.shorts()
	m.lists()
	for _, n := range []int{1, 16383, 16384, 16385, 40000} {
		p := vectorPieces{Length: n}
		for _, d := range DigestPieces(filling(n)) {
			p.Digests = append(p.Digests, hex.EncodeToString(d[:]))
		}
		m.v.Pieces = append(m.v.Pieces, p)
	}
	return m.v
}

// plain is a certificate for length bytes of content, as seed A issues it.
func plain(length int) Certificate {
	return Certificate{
		IssuedAt: time.UnixMilli(t0), NotAfter: time.UnixMilli(t0 + lifetime), ObjectLength: int64(length), Length: int64(length),
		Site: "demo", Name: film, Validator: `"5f3a-11"`, Digests: DigestPieces(filling(length)),
	}
}

// packaged is the same as a packager signs it, for 31 days.
func packaged(length int) Certificate {
	return with(plain(length), func(c *Certificate) { c.Alg, c.NotAfter = Packager, c.IssuedAt.Add(MaxPackaged) })
}

func with(c Certificate, change func(*Certificate)) Certificate {
	change(&c)
	return c
}

func (m *builder) certificates() {
	long := segment.Name("/" + strings.Repeat("a", segment.MaxName-1))
	for _, c := range []struct {
		name string
		key  *ecdsa.PrivateKey
		c    Certificate
	}{
		{"plain", m.a, plain(40000)},
		{"smallest", m.a, with(plain(1), func(c *Certificate) { c.Site, c.Name, c.Validator = "d", "/", "" })},
		{"one piece", m.a, plain(16384)},
		{"one byte more than a piece", m.a, plain(16385)},
		{"range", m.a, with(plain(1000), func(c *Certificate) { c.Name, c.ObjectLength = "/media/film.mp4#4000-4999", 100000 })},
		{"virtual segment", m.b, with(plain(12345), func(c *Certificate) {
			c.Name, c.ObjectLength = "/media/film.mp4#8388608-8400952", 8400953
		})},
		{"validator that is not UTF-8", m.a, with(plain(1), func(c *Certificate) { c.Validator = "\"\xff\xfe\x00\"" })},
		{"longest", m.a, with(plain(segment.MaxLength), func(c *Certificate) {
			c.Site, c.Name, c.Validator = strings.Repeat("z", 32), long, strings.Repeat("v", 255)
		})},
		{"latest times", m.a, with(plain(1), func(c *Certificate) {
			c.IssuedAt, c.NotAfter = time.UnixMilli(0), time.UnixMilli(1<<53-1)
		})},
		{"by seed B", m.b, plain(40000)},
		{"packager's", m.p, packaged(40000)},
		{"packager's, one piece", m.p, packaged(1)},
		{"packager's, signed with a seed's key", m.a, packaged(40000)},
		{"a seed's, signed with a packager's key", m.p, plain(40000)},
		{"of another site", m.a, with(plain(40000), func(c *Certificate) { c.Site = "other" })},
	} {
		raw, err := Issue(nil, c.key, c.c)
		if err != nil {
			m.tb.Fatal(c.name, err)
		}
		id := KeyIDOf(&c.key.PublicKey).String()
		m.v.Certificates = append(m.v.Certificates, vectorCertificate{
			c.name, hex.EncodeToString(raw), id, c.c.IssuedAt.UnixMilli(), c.c.NotAfter.UnixMilli(), c.c.ObjectLength, c.c.Length,
			c.c.Site, string(c.c.Name), hex.EncodeToString([]byte(c.c.Validator)), len(c.c.Digests), max(c.c.Alg, Seed),
		})
	}
}

// forge signs what Issue refuses to.
func (m *builder) forge(c Certificate, alg byte, change func(b []byte) []byte) string {
	c.KeyID = KeyID(unhex(m.tb, m.v.Keys[0].KeyID))
	b := c.body()
	b[4] = alg
	if change != nil {
		b = change(b)
	}
	return hex.EncodeToString(m.sign(m.a, b, append([]byte(signedTag), b...)))
}

func (m *builder) sign(key *ecdsa.PrivateKey, body, signed []byte) []byte {
	digest := sha256.Sum256(signed)
	der, err := key.Sign(nil, digest[:], crypto.SHA256)
	var sig struct{ R, S *big.Int }
	if err == nil {
		_, err = asn1.Unmarshal(der, &sig)
	}
	if err != nil {
		m.tb.Fatal(err)
	}
	return bytes.Join([][]byte{body, sig.R.FillBytes(make([]byte, 32)), sig.S.FillBytes(make([]byte, 32))}, nil)
}

func (m *builder) malformed() {
	add := func(name, hex string, o Outcome) {
		m.v.Malformed = append(m.v.Malformed, vectorMalformed{name, hex, o})
	}
	bad := func(name string, change func(*Certificate)) {
		add(name, m.forge(with(plain(1000), change), 1, nil), Malformed)
	}
	bytesOf := func(name string, change func(b []byte) []byte) { add(name, m.forge(plain(1000), 1, change), Malformed) }
	number := func(at int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint64(b[at:], v); return b }
	}
	add("nothing", "", Malformed)
	bytesOf("another magic", func(b []byte) []byte { b[0] = 'l'; return b })
	bytesOf("version 2", func(b []byte) []byte { b[3] = '2'; return b })
	bytesOf("issued at 2^53", number(13, 1<<53))
	bytesOf("issued at 2^64 - 1", number(13, 1<<64-1))
	bytesOf("not after 2^53", number(21, 1<<53))
	bytesOf("not after 2^63", number(21, 1<<63))
	bytesOf("object length 0", number(29, 0))
	bytesOf("object length 2^53", number(29, 1<<53))
	bytesOf("length 0", func(b []byte) []byte { copy(b[37:41], []byte{0, 0, 0, 0}); return b })
	bytesOf("length 2^32 - 1", func(b []byte) []byte { copy(b[37:41], []byte{255, 255, 255, 255}); return b })
	bytesOf("length above 8 MiB", func(b []byte) []byte { copy(b[37:41], []byte{0, 0x80, 0, 1}); return b })
	bytesOf("length of two pieces, one digest", func(b []byte) []byte { copy(b[37:41], []byte{0, 0, 0x40, 1}); return b })
	bytesOf("length within the piece that the object does not have", func(b []byte) []byte { copy(b[37:41], []byte{0, 0, 3, 0xe7}); return b })
	bytesOf("site longer than the bytes", func(b []byte) []byte { b[41] = 255; return b })
	bytesOf("name longer than the bytes", func(b []byte) []byte { b[46], b[47] = 255, 255; return b })
	bytesOf("a byte between digests and signature", func(b []byte) []byte { return append(b, 0) })
	bytesOf("a digest too many", func(b []byte) []byte { return append(b, make([]byte, 32)...) })
	bytesOf("a digest too few", func(b []byte) []byte { return b[:len(b)-32] })
	bad("no site", func(c *Certificate) { c.Site = "" })
	bad("site of 33 bytes", func(c *Certificate) { c.Site = strings.Repeat("a", 33) })
	bad("site that is not ASCII", func(c *Certificate) { c.Site = "dém" })
	bad("site with a zero byte", func(c *Certificate) { c.Site = "de\x00mo" })
	bad("no name", func(c *Certificate) { c.Name = "" })
	bad("name of 1,058 bytes", func(c *Certificate) { c.Name = segment.Name("/" + strings.Repeat("a", 1057)) })
	bad("name with a space", func(c *Certificate) { c.Name = "/a b" })
	bad("name with a newline at its end", func(c *Certificate) { c.Name = "/a\n" })
	bad("name that is not UTF-8", func(c *Certificate) { c.Name = "/\xff" })
	bad("whole object longer than the segment", func(c *Certificate) { c.ObjectLength = 1001 })
	for _, r := range []string{"/a#", "/a#0", "/a#0-", "/a#-999", "/a#00-999", "/a#0-0999", "/a#999-0", "/a#0-999#0-999", "#0-999", "/a#+0-999"} {
		bad("range "+r, func(c *Certificate) { c.Name = segment.Name(r) })
	}
	bad("range shorter than the segment", func(c *Certificate) { c.Name, c.ObjectLength = "/a#0-998", 5000 })
	bad("range longer than the segment", func(c *Certificate) { c.Name, c.ObjectLength = "/a#0-1000", 5000 })
	bad("range beyond the object", func(c *Certificate) { c.Name, c.ObjectLength = "/a#4001-5000", 5000 })
	bad("range beyond 2^53", func(c *Certificate) {
		c.Name, c.ObjectLength = "/a#9007199254740000-9007199254740999", 1<<53-1
	})
	bad("range of very many digits", func(c *Certificate) {
		c.Name = segment.Name("/a#" + strings.Repeat("9", 400) + "-" + strings.Repeat("9", 400))
	})
	add("alg 0", m.forge(plain(1000), 0, nil), UnknownAlg)
	add("alg 3", m.forge(plain(1000), 3, nil), UnknownAlg)
	add("malformed comes before alg", m.forge(with(plain(1000), func(c *Certificate) { c.Site = "" }), 3, nil), Malformed)
	add("packager's that lives longer than 31 days", m.forge(with(packaged(1000), func(c *Certificate) { c.NotAfter = c.NotAfter.Add(time.Millisecond) }), 2, nil), Malformed)
	add("short form", hex.EncodeToString(m.short("packager's")), Malformed)
}

func (m *builder) cuts() {
	size := len(unhex(m.tb, m.v.hexOf("plain")))
	for _, c := range []struct {
		length int
		where  string
	}{
		{0, "nothing"}, {3, "in the magic"}, {4, "behind the magic"}, {5, "behind alg"}, {9, "in the key ID"}, {13, "behind the key ID"},
		{17, "in issued at"}, {21, "behind issued at"}, {28, "in not after"}, {29, "behind not after"}, {36, "in object length"},
		{37, "behind object length"}, {40, "in length"}, {41, "behind length"}, {42, "behind the site's length"}, {44, "in the site"},
		{46, "behind the site"}, {47, "in the name's length"}, {48, "behind the name's length"}, {60, "in the name"}, {72, "behind the name"},
		{73, "behind the validator's length"}, {80, "in the validator"}, {82, "behind the validator"}, {100, "in the first digest"},
		{114, "behind the first digest"}, {size - 65, "in the last digest"}, {size - 64, "no signature"}, {size - 32, "half a signature"},
		{size - 1, "one byte short"}, {size + 1, "one byte more"}, {size + 32, "a digest more"}, {17837, "as long as the longest"},
		{17838, "longer than the longest"},
	} {
		m.v.Cuts = append(m.v.Cuts, vectorCut{"plain", c.length, c.where, Malformed})
	}
}

// add adds a verification of the plain certificate by a viewer that knows the keys of both seeds and of the packager; change makes it another one.
func (m *builder) add(name string, o Outcome, change func(*vectorVerify)) {
	v := vectorVerify{
		Name: name, Certificate: "plain", Site: "demo", Segment: film, Keys: []string{"A", "B", "P"},
		Revocations: []vectorRevocation{}, NowMs: t0 + 1000, Outcome: o,
	}
	if change != nil {
		change(&v)
	}
	m.v.Verify = append(m.v.Verify, v)
}

func flip(raw []byte, at int) []byte {
	c := bytes.Clone(raw)
	c[at] ^= 1
	return c
}

func (m *builder) verify() {
	raw := unhex(m.tb, m.v.hexOf("plain"))
	a := m.v.Keys[0].KeyID
	m.add("valid", Valid, nil)
	m.add("valid, by seed B", Valid, func(v *vectorVerify) { v.Certificate = "by seed B" })
	m.add("valid, a range", Valid, func(v *vectorVerify) { v.Certificate, v.Segment = "range", "/media/film.mp4#4000-4999" })
	m.add("no keys", UnknownKey, func(v *vectorVerify) { v.Keys = []string{} })
	m.add("another seed's key alone", UnknownKey, func(v *vectorVerify) { v.Keys = []string{"B"} })
	m.verifySignatures(raw)
	m.add("another site", WrongSite, func(v *vectorVerify) { v.Certificate = "of another site" })
	m.add("another segment", WrongName, func(v *vectorVerify) { v.Segment = "/media/bbb/720p/seg-2.ts" })
	m.add("the whole object for a range", WrongName, func(v *vectorVerify) { v.Segment = film + "#0-39999" })
	m.add("a prefix of the name", WrongName, func(v *vectorVerify) { v.Segment = film[:len(film)-1] })
	m.verifyRevocations()
	at := func(name string, o Outcome, now int64) { m.add(name, o, func(v *vectorVerify) { v.NowMs = now }) }
	at("in its last millisecond", Valid, t0+lifetime)
	at("a millisecond later", Expired, t0+lifetime+1)
	at("issued five minutes ahead", Valid, t0-300000)
	at("issued a millisecond further ahead", FromTheFuture, t0-300001)
	m.add("signature before site and name", BadSignature, func(v *vectorVerify) {
		v.Certificate, v.Hex, v.Site, v.Segment = "", hex.EncodeToString(flip(raw, len(raw)-1)), "other", "/x"
	})
	m.add("site before name", WrongSite, func(v *vectorVerify) { v.Site, v.Segment = "other", "/x" })
	m.add("name before revoked", WrongName, func(v *vectorVerify) { v.Segment, v.Revocations = "/x", []vectorRevocation{{KeyID: a}} })
	m.add("revoked before expired", Revoked, func(v *vectorVerify) { v.Revocations, v.NowMs = []vectorRevocation{{KeyID: a}}, t0+2*lifetime })
}

func (m *builder) verifySignatures(raw []byte) {
	bytesOf := func(name string, o Outcome, raw []byte) {
		m.add(name, o, func(v *vectorVerify) { v.Certificate, v.Hex = "", hex.EncodeToString(raw) })
	}
	end := len(raw) - 64
	n := elliptic.P256().Params().N
	r, s := raw[end:end+32], raw[end+32:]
	high := new(big.Int).Sub(n, new(big.Int).SetBytes(s)).FillBytes(make([]byte, 32))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

	bytesOf("key ID changed to nobody's", UnknownKey, flip(raw, 5))
	b := unhex(m.tb, m.v.Keys[1].KeyID)
	bytesOf("key ID changed to seed B's", BadSignature, join(raw[:5], b, raw[13:]))
	bytesOf("issued at changed", BadSignature, flip(raw, 20))
	bytesOf("not after changed", BadSignature, flip(raw, 28))
	bytesOf("site changed", BadSignature, flip(raw, 42))
	bytesOf("name changed", BadSignature, flip(raw, 49))
	bytesOf("validator changed", BadSignature, flip(raw, 75))
	bytesOf("length changed", BadSignature, flip2(raw))
	bytesOf("a digest changed", BadSignature, flip(raw, end-1))
	bytesOf("r changed", BadSignature, flip(raw, end))
	bytesOf("s changed", BadSignature, flip(raw, len(raw)-1))
	bytesOf("r and s swapped", BadSignature, join(raw[:end], s, r))
	bytesOf("r and s zero", BadSignature, join(raw[:end], make([]byte, 64)))
	bytesOf("r and s the order", BadSignature, join(raw[:end], n.Bytes(), n.Bytes()))
	bytesOf("r and s all ones", BadSignature, join(raw[:end], bytes.Repeat([]byte{255}, 64)))
	bytesOf("s negated is a signature too", Valid, join(raw[:end], r, high))
	bytesOf("signed without the tag", BadSignature, m.sign(m.a, raw[:end], raw[:end]))
	bytesOf("signed with another tag", BadSignature, m.sign(m.a, raw[:end], append([]byte("leeway certificate v2\x00"), raw[:end]...)))
	bytesOf("alg 3", UnknownAlg, join(raw[:4], []byte{3}, raw[5:]))
	bytesOf("alg changed to a packager's", UnknownKey, join(raw[:4], []byte{2}, raw[5:]))
	m.add("alg and key ID changed to a packager's", BadSignature, func(v *vectorVerify) {
		v.Certificate, v.Hex = "", hex.EncodeToString(join(raw[:4], []byte{2}, unhex(m.tb, m.v.Keys[2].KeyID), raw[13:]))
	})
	p := unhex(m.tb, m.v.hexOf("packager's"))
	bytesOf("packager's", Valid, p)
	bytesOf("packager's, a digest changed", BadSignature, flip(p, len(p)-65))
	bytesOf("packager's, issued at changed", BadSignature, flip(p, 20))
	bytesOf("packager's, alg changed to a seed's", UnknownKey, join(p[:4], []byte{1}, p[5:]))
	bytesOf("packager's, alg and key ID changed to a seed's", BadSignature, join(p[:4], []byte{1}, raw[5:13], p[13:]))
	bytesOf("packager's, signed as a seed's", BadSignature, m.sign(m.p, p[:len(p)-64], append([]byte(signedTag), p[:len(p)-64]...)))
	m.add("packager's, by a viewer without its key", UnknownKey, func(v *vectorVerify) { v.Certificate, v.Keys = "packager's", []string{"A", "B"} })
	m.add("packager's, signed with a seed's key", UnknownKey, func(v *vectorVerify) { v.Certificate = v.Name })
	m.add("a seed's, signed with a packager's key", UnknownKey, func(v *vectorVerify) { v.Certificate = v.Name })
	bytesOf("a byte short", Malformed, raw[:len(raw)-1])
}

func (m *builder) verifyRevocations() {
	a, b := m.v.Keys[0].KeyID, m.v.Keys[1].KeyID
	revoked := func(name string, o Outcome, list ...vectorRevocation) {
		m.add(name, o, func(v *vectorVerify) { v.Revocations = list })
	}
	revoked("key revoked", Revoked, vectorRevocation{KeyID: a})
	revoked("another key revoked", Valid, vectorRevocation{KeyID: b})
	revoked("site revoked", Revoked, vectorRevocation{Site: "demo", Prefix: "/", MinIssuedAt: t0 + 1})
	revoked("site revoked up to when it was issued", Valid, vectorRevocation{Site: "demo", Prefix: "/", MinIssuedAt: t0})
	revoked("another site revoked", Valid, vectorRevocation{Site: "other", Prefix: "/", MinIssuedAt: t0 + 1})
	revoked("folder revoked", Revoked, vectorRevocation{Site: "demo", Prefix: "/media/bbb/", MinIssuedAt: t0 + 1})
	revoked("name revoked", Revoked, vectorRevocation{Site: "demo", Prefix: film, MinIssuedAt: t0 + 1})
	revoked("another folder revoked", Valid, vectorRevocation{Site: "demo", Prefix: "/media/bb/", MinIssuedAt: t0 + 1})
	revoked("prefix within an element", Revoked, vectorRevocation{Site: "demo", Prefix: "/media/b", MinIssuedAt: t0 + 1})
	revoked("prefix in another case", Valid, vectorRevocation{Site: "demo", Prefix: "/Media/", MinIssuedAt: t0 + 1})
	revoked("longer than the name", Valid, vectorRevocation{Site: "demo", Prefix: film + "#", MinIssuedAt: t0 + 1})
	buried := func(name string, o Outcome, until, now int64) {
		r := Tombstone("demo", "/media/bbb/", time.UnixMilli(until))
		m.add(name, o, func(v *vectorVerify) {
			v.Revocations, v.NowMs = []vectorRevocation{{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: r.MinIssuedAt.UnixMilli()}}, now
		})
	}
	buried("under a tombstone", Revoked, t0+3600000, t0+1000)
	buried("from before a tombstone that has ended", Revoked, t0+3600000, t0+3600001)
	buried("issued ahead of a tombstone's end", Revoked, t0-299999, t0-300000)
	buried("issued at a tombstone's end, five minutes ahead", Valid, t0-300000, t0-300000)
	buried("a tombstone before from the future", Revoked, t0, t0-400000)
	revoked("one of several", Revoked, vectorRevocation{KeyID: b}, vectorRevocation{Site: "other", Prefix: "/", MinIssuedAt: t0 + 9},
		vectorRevocation{Site: "demo", Prefix: "/media/", MinIssuedAt: t0 + 9}, vectorRevocation{Site: "demo", Prefix: "/media/", MinIssuedAt: 5})
}

// flip2 changes length and object length alike, so that the certificate stays well-formed.
func flip2(raw []byte) []byte {
	c := bytes.Clone(raw)
	c[36] ^= 1
	c[40] ^= 1
	return c
}

// encode writes one case a line.
func encode(tb testing.TB, v vectors) []byte {
	var b bytes.Buffer
	line := func(x any) string {
		j, err := json.Marshal(x)
		if err != nil {
			tb.Fatal(err)
		}
		return string(j)
	}
	fmt.Fprintf(&b, "{\n  \"about\": %s", line(v.About))
	list := func(name string, n int, at func(int) any) {
		fmt.Fprintf(&b, ",\n  %q: [", name)
		for i := range n {
			b.WriteString(map[bool]string{true: "\n    ", false: ",\n    "}[i == 0] + line(at(i)))
		}
		b.WriteString("\n  ]")
	}
	list("keys", len(v.Keys), func(i int) any { return v.Keys[i] })
	list("certificates", len(v.Certificates), func(i int) any { return v.Certificates[i] })
	list("malformed", len(v.Malformed), func(i int) any { return v.Malformed[i] })
	list("cuts", len(v.Cuts), func(i int) any { return v.Cuts[i] })
	list("verify", len(v.Verify), func(i int) any { return v.Verify[i] })
	list("pieces", len(v.Pieces), func(i int) any { return v.Pieces[i] })
	list("shorts", len(v.Shorts), func(i int) any { return v.Shorts[i] })
	list("lists", len(v.Lists), func(i int) any { return v.Lists[i] })
	list("list_urls", len(v.ListURLs), func(i int) any { return v.ListURLs[i] })
	list("part_urls", len(v.PartURLs), func(i int) any { return v.PartURLs[i] })
	b.WriteString("\n}\n")
	return b.Bytes()
}
