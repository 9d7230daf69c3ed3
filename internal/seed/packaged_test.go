package seed_test

import (
	"bytes"
	"crypto/ecdsa"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// packager signs lists as leeway certify does.
type packager struct {
	t      *testing.T
	key    *ecdsa.PrivateKey
	public string
}

func newPackager(t *testing.T) *packager {
	t.Helper()
	p := &packager{t: t, key: testkit.PackagerKey(t)}
	var err error
	if p.public, err = certificate.Public(p.key); err != nil {
		t.Fatal(err)
	}
	return p
}

// entry is a short certificate for bytes that were read at a time.
func (p *packager) entry(name segment.Name, data []byte, at time.Time) []byte {
	p.t.Helper()
	raw, err := certificate.Issue(nil, p.key, certificate.Certificate{
		Alg: certificate.Packager, IssuedAt: at, NotAfter: at.Add(time.Hour), ObjectLength: int64(len(data)), Length: int64(len(data)),
		Site: "demo", Name: name, Digests: certificate.DigestPieces(data),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := certificate.Parse(raw)
	if err != nil {
		p.t.Fatal(err)
	}
	short, err := c.Short()
	if err != nil {
		p.t.Fatal(err)
	}
	return short
}

func (p *packager) list(entries ...[]byte) []byte {
	p.t.Helper()
	b, err := certificate.EncodeList(entries)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// site has the seed's site name the packager's key.
func (p *packager) site(c *site.Config, _ *seed.Config) { c.PackagerKeys = []string{p.public} }

// TestASeedCertifiesNothingThatAPackagerContradicts: neither what it fetches when it has the list, nor what it held before the list
// came. What the packager did not sign, or not with a key of the site, it certifies as ever; and again what was purged.
func TestASeedCertifiesNothingThatAPackagerContradicts(t *testing.T) {
	o, p, stranger := newOrigin(t), newPackager(t), newPackager(t)
	o.film(6)
	name := func(i int) segment.Name { return segment.Name(fmt.Sprintf("/film/low/%d.m4s", i)) }
	file := func(i int) []byte { return o.files["/vod"+string(name(i))] }
	now := time.Now()
	release := o.hold("/vod/film/low/index.m3u8.leeway")
	w := newWorld(t, o, p.site)
	o.put("/vod/film/low/index.m3u8.leeway", p.list(
		p.entry(name(0), file(0), now), p.entry(name(1), noise(200_001), now), p.entry(name(2), file(2)[1:], now),
		p.entry(name(3), noise(7), now), stranger.entry(name(4), noise(8), now),
	))
	v := w.connect(1, 1)
	if c, none := v.certificate(name(1)); c == nil {
		t.Fatalf("a list that does not come keeps a segment from being certified: %+v", none)
	}
	release()
	testkit.Eventually(t, "the list is loaded", func() bool { return w.counted("leeway_seed_signed_lists_total", "demo", "loaded") > 0 })
	for i, refused := range []bool{false, true, true, true, false, false} {
		c, none := v.certificate(name(i))
		if refused != (c == nil) || refused && none.Reason != peer.NoneWithdrawn {
			t.Errorf("segment %d: certified %v, %+v", i, c != nil, none)
		}
	}
	if n := w.counted("leeway_seed_contradictions_total", "demo"); n != 3 {
		t.Errorf("%v contradictions are counted", n)
	}
	w.revoke(signal.Revocation{Site: "demo", Prefix: "/film/low/3", MinIssuedAt: time.Now().UnixMilli()})
	o.put("/vod"+string(name(3)), noise(9))
	// The refusal is remembered for a minute, by the seed that made it: another one asks the origin now.
	w.stop()
	again := newWorld(t, o, func(c *site.Config, s *seed.Config) { p.site(c, s); s.DataDir = w.dir })
	v = again.connect(2, 1)
	v.certificate(name(0))
	testkit.Eventually(t, "the list is loaded again", func() bool { return again.counted("leeway_seed_signed_lists_total", "demo", "loaded") > 0 })
	if c, none := v.certificate(name(3)); c == nil {
		t.Errorf("what was purged is not certified: %+v", none)
	}
	if c, _ := v.certificate(name(2)); c != nil {
		t.Error("what is contradicted still is certified")
	}
}

// TestListsOfAnOriginAreBounded: a list that is missing, garbage, too long or another one each second costs a few requests, which are
// charged as playlists are, and no segment its certificate.
func TestListsOfAnOriginAreBounded(t *testing.T) {
	p := newPackager(t)
	long := append([]byte("LWL1"), make([]byte, 32<<20)...)
	for name, c := range map[string]struct {
		outcome string
		list    func(asked int) []byte
		most    int // requests in five minutes, in which the playlist changes 300 times
	}{
		"missing": {"missing", func(int) []byte { return nil }, 11},
		"garbage": {"malformed", func(int) []byte { return []byte("garbage") }, 11},
		"32 MiB":  {"too-long", func(int) []byte { return long }, 11},
		"slow":    {"missing", func(int) []byte { <-time.After(10 * time.Second); return nil }, 9},
		"another each second": {"loaded", func(n int) []byte {
			return p.list(p.entry(segment.Name(fmt.Sprintf("/live/%d.ts", n)), []byte("x"), time.Now()))
		}, 320},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { boundedList(t, p, c.outcome, c.list, c.most) })
		})
	}
}

// TestAListIsReadAgainForWhatIsWithdrawn: after a purge the packager signs again, and no playlist changes. The seed finds the new list,
// and asks for it ever more rarely while there is none.
func TestAListIsReadAgainForWhatIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/film/index.m3u8"
		p := newPackager(t)
		list := p.list(p.entry("/film/0.m4s", []byte("old"), time.Now()))
		s := newStreet(t, func(at string) []byte {
			switch at {
			case path:
				return []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.m4s\n#EXT-X-ENDLIST\n")
			case path + ".leeway":
				return list
			}
			return []byte("old") // a cache before the origin that the purge did not reach
		}, p.streets)
		c := s.call(1, "net", path)
		c.open()
		if !c.certified("/film/0.m4s") || s.count(path+".leeway") != 1 {
			t.Fatalf("the list was read %d times", s.count(path+".leeway"))
		}
		<-time.After(time.Second)
		s.revoke(signal.Revocation{Site: "demo", Prefix: "/film/", MinIssuedAt: time.Now().UnixMilli()})
		for range 60 { // at 0, 30, 90 and 210 s
			<-time.After(5 * time.Second)
			c.certified("/film/0.m4s")
		}
		if n := s.count(path + ".leeway"); n != 5 {
			t.Errorf("in five minutes after the purge the list was read %d times", n-1)
		}
		list = p.list(p.entry("/film/0.m4s", []byte("new"), time.Now()))
		for range 60 {
			<-time.After(5 * time.Second)
			c.certified("/film/0.m4s")
		}
		if c.certified("/film/0.m4s") {
			t.Error("what the packager signed anew contradicts what the cache has, and it is certified")
		}
		if n := s.count(path + ".leeway"); n != 6 {
			t.Errorf("a list whose entries count was read %d times more", n-5)
		}
	})
}

// certified asks for a segment's certificate, and says whether the answer is one.
func (c *caller) certified(name segment.Name) bool {
	c.s.t.Helper()
	for len(c.wire().sent) > 0 {
		<-c.wire().sent
	}
	c.says(peer.CertificateRequest{Segments: []segment.ID{segment.NewID("demo", name)}})
	synctest.Wait()
	for len(c.wire().sent) > 0 {
		m, err := peer.Decode(peer.Control, <-c.wire().sent)
		if err != nil {
			c.s.t.Fatal(err)
		}
		switch m.(type) {
		case peer.Certificate:
			return true
		case peer.CertificateNone:
			return false
		}
	}
	c.s.t.Fatalf("%s: no answer", name)
	return false
}

// streets has a street's site name the packager's key.
func (p *packager) streets(c *seed.Config) {
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: "https://origin.example.com", PackagerKeys: []string{p.public}, Policy: site.Policy{CertifyFrom: 1}})
	if err != nil {
		p.t.Fatal(err)
	}
	c.Sites[0].Site = rules
}

func boundedList(t *testing.T, p *packager, outcome string, list func(asked int) []byte, most int) {
	const path = "/live/index.m3u8"
	asked, begun := 0, time.Now()
	s := newStreet(t, func(at string) []byte {
		first := int(time.Since(begun) / time.Second)
		switch {
		case at == path+".leeway":
			asked++
			return list(asked)
		case strings.HasSuffix(at, ".ts"):
			return []byte("x")
		}
		return fmt.Appendf(nil, "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:%d\n#EXTINF:1,\n%d.ts\n#EXTINF:1,\n%d.ts\n", first, first, first+1)
	}, p.streets)
	for n := range 30 {
		c := s.call(n, fmt.Sprint("net", n), path)
		c.open()
		<-time.After(10 * time.Second)
		if latest := segment.Name(fmt.Sprintf("/live/%d.ts", int(time.Since(begun)/time.Second))); !c.certified(latest) {
			t.Fatalf("%s has no certificate", latest)
		}
	}
	<-time.After(15 * time.Second) // what is under way ends
	synctest.Wait()                // a load of this very moment, too
	if n := s.count(path + ".leeway"); n > most || n < most/2 {
		t.Errorf("the list was asked for %d times, the playlist %d times", n, s.count(path))
	}
	if n := s.value("leeway_seed_signed_lists_total", "demo", outcome); int(n) != s.count(path+".leeway") {
		t.Errorf("%v times %s are counted, of %d", n, outcome, s.count(path+".leeway"))
	}
	if n := s.value("leeway_seed_index_bytes"); n > 1<<20 {
		t.Errorf("the index takes %v bytes", n)
	}
	if n := s.count(path); n < 280 {
		t.Errorf("the playlist was loaded %d times", n)
	}
}

// TestASiteWithoutPackagersHasNoLists: no origin is asked for what it cannot have.
func TestASiteWithoutPackagersHasNoLists(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	if c, none := w.connect(1, 1).certificate("/film/low/0.m4s"); c == nil {
		t.Fatalf("%+v", none)
	}
	w.stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for path := range o.asked {
		if bytes.HasSuffix([]byte(path), []byte(".leeway")) {
			t.Errorf("asked for %s", path)
		}
	}
}
