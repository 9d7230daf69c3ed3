package certificate

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
)

// short is the short form of a certificate of the vectors.
func (m *builder) short(name string) []byte {
	m.tb.Helper()
	c, err := Parse(unhex(m.tb, m.v.hexOf(name)))
	if err != nil {
		m.tb.Fatal(name, err)
	}
	b, err := c.Short()
	if err != nil {
		m.tb.Fatal(name, err)
	}
	return b
}

func (m *builder) shorts() {
	add := func(name, of string, b []byte, o Outcome) {
		m.v.Shorts = append(m.v.Shorts, vectorShort{name, of, hex.EncodeToString(b), o})
	}
	b := m.short("packager's")
	end := len(b) - signatureSize
	add("packager's", "packager's", b, Valid)
	add("packager's, one piece", "packager's, one piece", m.short("packager's, one piece"), Valid)
	add("the digest changed", "packager's", flip(b, end-1), BadSignature)
	add("name changed", "packager's", flip(b, 49), BadSignature)
	add("length changed", "packager's", flip2(b), BadSignature)
	add("signature changed", "packager's", flip(b, end), BadSignature)
	add("signed with the short magic", "packager's", m.sign(m.p, b[:end], append([]byte(signedTag), b[:end]...)), BadSignature)
	add("alg 1", "packager's", bytes.Join([][]byte{b[:4], {1}, b[5:]}, nil), UnknownAlg)
	add("alg 3", "packager's", bytes.Join([][]byte{b[:4], {3}, b[5:]}, nil), UnknownAlg)
	add("a byte more", "packager's", append(bytes.Clone(b), 0), Malformed)
	add("a byte less", "packager's", b[:len(b)-1], Malformed)
	add("a digest more", "packager's", append(bytes.Clone(b), make([]byte, 32)...), Malformed)
	add("the long form", "packager's", unhex(m.tb, m.v.hexOf("packager's, one piece")), Malformed)
	add("object length 0", "packager's", bytes.Join([][]byte{b[:29], make([]byte, 8), b[37:]}, nil), Malformed)
	add("nothing", "packager's", nil, Malformed)
}

func (m *builder) lists() {
	add := func(name string, b []byte, entries ...string) {
		m.v.Lists = append(m.v.Lists, vectorList{name, hex.EncodeToString(b), entries})
	}
	counted := func(n int, entries ...[]byte) []byte {
		b := binary.BigEndian.AppendUint32([]byte(magicList), uint32(n))
		for _, e := range entries {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(e))), e...)
		}
		return b
	}
	one := m.short("packager's")
	c := with(packaged(1000), func(c *Certificate) { c.Name, c.ObjectLength = "/media/film.mp4#4000-4999", 100000 })
	raw, err := Issue(nil, m.p, c)
	if err != nil {
		m.tb.Fatal(err)
	}
	parsed, err := Parse(raw)
	if err != nil {
		m.tb.Fatal(err)
	}
	two, err := parsed.Short()
	if err != nil {
		m.tb.Fatal(err)
	}
	unknown := bytes.Join([][]byte{two[:4], {3}, two[5:]}, nil)
	both := counted(2, one, two)

	add("empty", counted(0))
	add("two", both, film, string(c.Name))
	add("an entry of an unknown alg is left out", counted(3, unknown, one, two), film, string(c.Name))
	m.v.Lists[0].Entries = []string{}
	add("nothing", nil)
	add("another magic", append([]byte("LWL2"), both[4:]...))
	add("cut behind the magic", both[:4])
	add("cut in an entry", both[:100])
	add("cut behind an entry", both[:8+2+len(one)])
	add("a byte more", append(bytes.Clone(both), 0))
	add("an entry more than counted", counted(1, one, two))
	add("one name twice", counted(2, one, one))
	add("an entry of no bytes", counted(1, nil))
	add("an entry that is malformed", counted(1, one[:len(one)-1]))
	add("an entry in the long form", counted(1, unhex(m.tb, m.v.hexOf("packager's, one piece"))))
	add("4,294,967,295 entries", counted(1<<32-1, one))

	m.v.ListURLs = []vectorListURL{
		{"https://a.example/media/bbb/720p.m3u8", "https://a.example/media/bbb/720p.m3u8.leeway"},
		{"https://a.example/720p.m3u8?token=a/b.c&x=%20", "https://a.example/720p.m3u8.leeway?token=a/b.c&x=%20"},
		{"https://a.example/720p.m3u8?a?b", "https://a.example/720p.m3u8.leeway?a?b"},
		{"https://a.example/720p.m3u8?", "https://a.example/720p.m3u8.leeway?"},
		{"https://a.example/720p.m3u8?a#b?c", "https://a.example/720p.m3u8.leeway?a"},
		{"https://a.example/720p.m3u8#b", "https://a.example/720p.m3u8.leeway"},
		{"https://a.example/", "https://a.example/.leeway"},
	}
	m.v.PartURLs = []vectorPartURL{
		{"https://a.example/live/720p/41.2.m4s", nil, "https://a.example/live/720p/41.2.m4s.leeway"},
		{"https://a.example/live/720p/41.m4s", []int64{1600, 4799}, "https://a.example/live/720p/41.m4s.1600-4799.leeway"},
		{"https://a.example/live/720p/41.m4s", nil, "https://a.example/live/720p/41.m4s.leeway"}, // the end of a segment of chunks
		{"https://a.example/41.m4s?token=a/b.c&x=%20", []int64{0, 999}, "https://a.example/41.m4s.0-999.leeway?token=a/b.c&x=%20"},
		{"https://a.example/41.2.m4s?a#b", nil, "https://a.example/41.2.m4s.leeway?a"},
	}
}
