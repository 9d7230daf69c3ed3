package seed_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestViewerFetchesACertifiedSegment(t *testing.T) {
	o := newOrigin(t)
	o.film(3)
	w := newWorld(t, o, nil)
	keys := w.keySet()
	v := w.connect(1, 1)
	for _, name := range []segment.Name{"/film/low/init.mp4", "/film/low/0.m4s", "/film/high/2.m4s"} {
		c, none := v.certificate(name)
		if none != nil {
			t.Fatalf("%s: no certificate, reason %d", name, none.Reason)
		}
		if err := keys.Verify(c, "demo", name, time.Now(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.Validator == "" {
			t.Errorf("%s: the origin's ETag is not in the certificate", name)
		}
		data, rejected := v.fetch(c)
		if !bytes.Equal(data, o.files[path(name)]) || rejected != nil {
			t.Errorf("%s: %d bytes came, rejected %v", name, len(data), rejected)
		}
	}
	// A second viewer costs the origin nothing.
	v2 := w.connect(2, 2)
	c, none := v2.certificate("/film/low/0.m4s")
	if none != nil {
		t.Fatalf("no certificate for the second viewer, reason %d", none.Reason)
	}
	v2.fetch(c)
	if n := o.count("/vod/film/low/0.m4s"); n != 1 {
		t.Errorf("the origin was asked %d times for one segment", n)
	}
	if c, none := v.certificate("/film/low/99.m4s"); c != nil || none.Reason != peer.NoneUnknown {
		t.Errorf("a segment of no playlist: %v %v", c, none)
	}
	if n := o.count("/vod/film/low/99.m4s"); n != 0 {
		t.Error("the origin was asked for a segment that no playlist lists")
	}
	w.stop()
	if r := wait(t, v.closed, "the farewell of a draining seed"); r != peer.CloseClosed {
		t.Errorf("closed: %s", r)
	}
	if n := w.metrics.Dropped(); n != 0 {
		t.Errorf("%d observations were outside their definitions", n)
	}
}

// TestAnAnswerSaysTheCertificatesThatTheOfferWants, of what is in memory and short: an offer has a seed fetch nothing, since it
// costs its sender nothing. The rest is asked for over the link.
func TestAnAnswerSaysTheCertificatesThatTheOfferWants(t *testing.T) {
	o := newOrigin(t)
	o.film(3)
	o.put("/vod/film/low/2.m4s", noise(5<<20))
	w := newWorld(t, o, nil)
	first := w.connect(1, 2)
	for _, name := range []segment.Name{"/film/low/0.m4s", "/film/low/2.m4s"} {
		if _, none := first.certificate(name); none != nil {
			t.Fatalf("%s: no certificate, reason %d", name, none.Reason)
		}
	}
	const absent = segment.Name("/film/low/1.m4s")
	for n, c := range []struct {
		wanted, said []segment.Name
	}{
		{[]segment.Name{"/film/low/0.m4s", absent}, []segment.Name{"/film/low/0.m4s"}},
		{[]segment.Name{"/film/low/99.m4s", "/film/low/2.m4s"}, nil},
	} {
		v := w.newViewer(byte(2 + n))
		for _, name := range c.wanted {
			v.wanted = append(v.wanted, signal.ID(w.id(name)))
		}
		var said []segment.Name
		for _, m := range w.answered(v, 2+n) {
			c, err := certificate.Parse(m.Raw)
			if err != nil || m.Segment != w.id(c.Name) {
				t.Fatalf("certificate of %x: %v", m.Segment, err)
			}
			said = append(said, c.Name)
			if data, rejected := v.fetch(c); !bytes.Equal(data, o.files[path(c.Name)]) || rejected != nil {
				t.Errorf("%d bytes came under the certificate of the answer, rejected %v", len(data), rejected)
			}
		}
		if !slices.Equal(said, c.said) {
			t.Errorf("of %v the answer says %v", c.wanted, said)
		}
	}
	if n := o.count(path(absent)); n != 0 {
		t.Errorf("an offer has the origin asked %d times", n)
	}
	if c, none := first.certificate(absent); c == nil || o.count(path(absent)) != 1 {
		t.Errorf("asked for over the link: %+v; the origin was asked %d times", none, o.count(path(absent)))
	}
}

func TestCertificatesWaitForEnoughViewers(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, func(s *site.Config, _ *seed.Config) { s.Policy.CertifyFrom = 2 })
	v := w.connect(1, 1)
	if _, none := v.certificate("/film/low/0.m4s"); none == nil || none.Reason != peer.NoneTooFewViewers {
		t.Fatalf("certified for one viewer: %+v", none)
	}
	w.name(2)
	if _, none := v.certificate("/film/low/0.m4s"); none != nil {
		t.Errorf("not certified for two viewers: reason %d", none.Reason)
	}
}

// TestVariablesOfPlaylistsAreFilledIn: those of the master playlist in the media playlists, and none for a token, which no key has.
func TestVariablesOfPlaylistsAreFilledIn(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	o.put("/vod/film/master.m3u8", []byte("#EXTM3U\n#EXT-X-DEFINE:NAME=\"dir\",VALUE=\"low\"\n#EXT-X-STREAM-INF:BANDWIDTH=1500000\n{$dir}/index.m3u8\n"))
	o.put("/vod/film/low/index.m3u8", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-DEFINE:IMPORT=\"dir\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n"+
		"#EXTINF:4,\n../{$dir}/0.m4s?token={$token}\n#EXT-X-ENDLIST\n"))
	w := newWorld(t, o, func(s *site.Config, _ *seed.Config) { s.Key.IgnoreQuery = []string{"token"} })
	if _, none := w.connect(1, 1).certificate("/film/low/0.m4s"); none != nil {
		t.Errorf("not certified: reason %d", none.Reason)
	}
}

func TestLargeObjectsAreSharedInParts(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	big := noise(9 << 20)
	o.put("/vod/film/low/0.m4s", big)
	w := newWorld(t, o, nil)
	v := w.connect(1, 1)
	_, none := v.certificate("/film/low/0.m4s")
	if none == nil || none.Reason != peer.NoneTooLarge || none.ObjectLength != uint64(len(big)) {
		t.Fatalf("answer for a large object: %+v", none)
	}
	name := segment.RangeName("/film/low/0.m4s", 4<<20, 8<<20-1)
	c, none := v.certificate(name)
	if none != nil {
		t.Fatalf("no certificate for a virtual segment: reason %d", none.Reason)
	}
	if data, _ := v.fetch(c); !bytes.Equal(data, big[4<<20:8<<20]) || c.ObjectLength != int64(len(big)) {
		t.Error("a virtual segment has other bytes than its part of the object")
	}
}

func TestResponsesThatAreNotForEveryoneAreNotShared(t *testing.T) {
	for key, value := range map[string]string{"Set-Cookie": "id=1", "Cache-Control": "max-age=60, no-store"} {
		o := newOrigin(t)
		o.film(1)
		o.head.Set(key, value)
		w := newWorld(t, o, nil)
		v := w.connect(1, 1)
		if _, none := v.certificate("/film/low/0.m4s"); none == nil || none.Reason != peer.NoneNotAllowed {
			t.Errorf("shared although the response says %s: %s: %+v", key, value, none)
		}
		if files := w.stored(); len(files) > 0 {
			t.Errorf("kept on disk: %v", files)
		}
		w.stop()
	}
}

// TestWhatIsNotToBeStoredAnyMoreLeavesTheDisk: the origin says so when it is asked whether the bytes are still the same.
func TestWhatIsNotToBeStoredAnyMoreLeavesTheDisk(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	clock := &jump{}
	w := newWorld(t, o, clock.config)
	const name = "/film/low/0.m4s"
	if _, none := w.connect(1, 1).certificate(name); none != nil || len(w.stored()) != 1 {
		t.Fatalf("%+v, on disk %v", none, w.stored())
	}
	o.mu.Lock()
	o.head.Set("Cache-Control", "no-store")
	o.mu.Unlock()
	clock.forward(5 * time.Hour)
	v := w.connect(2, 1)
	v.certificate(name)
	until(t, "the file is gone", func() bool { return len(w.stored()) == 0 })
	if c, none := v.certificate(name); c != nil || none.Reason != peer.NoneNotAllowed {
		t.Errorf("shared still: %+v", none)
	}
}

// stored are the segments on disk.
func (w *world) stored() []string {
	files, err := filepath.Glob(filepath.Join(w.dir, "segments", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

func TestStoreSurvivesARestartAndCorruption(t *testing.T) {
	o := newOrigin(t)
	o.film(2)
	w := newWorld(t, o, nil)
	v := w.connect(1, 1)
	first, _ := v.certificate("/film/low/0.m4s")
	second, _ := v.certificate("/film/low/1.m4s")
	w.stop()
	files, err := filepath.Glob(filepath.Join(w.dir, "segments", w.id("/film/low/1.m4s").String()+"-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of a segment: %v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	again := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.DataDir = w.dir })
	v2 := again.connect(2, 1)
	c, _ := v2.certificate("/film/low/0.m4s")
	if c == nil || !bytes.Equal(c.Bytes(), first.Bytes()) {
		t.Error("the certificate did not survive the restart")
	}
	if data, _ := v2.fetch(c); !bytes.Equal(data, o.files["/vod/film/low/0.m4s"]) {
		t.Error("the pieces did not survive the restart")
	}
	if n := o.count("/vod/film/low/0.m4s"); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
	c, _ = v2.certificate("/film/low/1.m4s")
	if c == nil || !c.SameContent(second) || o.count("/vod/film/low/1.m4s") != 2 {
		t.Error("a corrupted file was not fetched again")
	}
}

// TestStoreSurvivesAClockThatIsBehind: a machine may start before it knows the time.
func TestStoreSurvivesAClockThatIsBehind(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	const name = "/film/low/0.m4s"
	w := newWorld(t, o, nil)
	first, _ := w.connect(1, 1).certificate(name)
	w.stop()
	clock := &jump{}
	clock.forward(-24 * time.Hour)
	again := newWorld(t, o, func(s *site.Config, c *seed.Config) {
		clock.config(s, c)
		c.DataDir = w.dir
	})
	if c, _ := again.connect(2, 1).certificate(name); c == nil || !bytes.Equal(c.Bytes(), first.Bytes()) || o.count(path(name)) != 1 {
		t.Error("what was issued when the clock was right was thrown away")
	}
}

func TestPurgeHealsAChangedObject(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	v := w.connect(1, 1)
	const name = "/film/low/0.m4s"
	old, _ := v.certificate(name)
	o.put(path(name), noise(150_000)) // encoded again under the same URL
	if c, none := v.certificate(name); c == nil || !c.SameContent(old) {
		t.Fatalf("the certificate changed while the old one holds: %+v", none)
	}
	w.revoke(signal.Revocation{Site: "demo", Prefix: "/film/", MinIssuedAt: time.Now().Add(time.Millisecond).UnixMilli()})
	c, none := v.certificate(name)
	if c == nil || c.SameContent(old) {
		t.Fatalf("no new certificate after the purge: %+v", none)
	}
	if data, rejected := v.fetch(c); !bytes.Equal(data, o.files[path(name)]) {
		t.Errorf("the new bytes do not come, rejected %v", rejected)
	}
}

// TestLostSignalsAreSaidAgain loses the first signals to the viewer's tracker, the answer among them: the link comes up.
func TestLostSignalsAreSaidAgain(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	lost := 0
	w.bus.loses(func(subject string) bool {
		if subject != bus.SubjectSeedSignal(w.tracker) || lost == 3 {
			return false
		}
		lost++
		return true
	})
	w.name(1)
	w.connect(1, 1)
	w.bus.loses(nil)
	if lost != 3 {
		t.Errorf("%d signals were lost", lost)
	}
}

func TestOffersForWhatIsNotServedAreRefused(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	for _, c := range []struct {
		title *bus.Title
		want  string
	}{
		{nil, "refused"},
		{&bus.Title{Site: "other", Title: "/film", Manifest: "/film/master.m3u8", Swarm: w.swarm, Viewers: 1}, "refused"},
		{&bus.Title{Site: "demo", Title: "/film", Manifest: "", Swarm: w.swarm, Viewers: 1}, "refused"},
		{&bus.Title{Site: "demo", Title: "/film", Manifest: "/film/../../etc/passwd", Swarm: w.swarm, Viewers: 1}, "refused"},
	} {
		v := w.newViewer(byte(len(w.viewers) + 1))
		v.offer(c.title)
		if r := wait(t, v.failed, "the refusal"); r != c.want {
			t.Errorf("%+v: %s", c.title, r)
		}
		v.link.Close(peer.CloseClosed, nil)
	}
}

func TestBeatSaysWhatTheSeedCanDo(t *testing.T) {
	o := newOrigin(t)
	w := newWorld(t, o, nil)
	first := wait(t, w.keys, "the first beat")
	if first.Seed != w.seed.ID() || len(first.Sites) != 1 || len(first.VerifyKeys) != 1 || first.Draining {
		b, _ := json.Marshal(first)
		t.Errorf("beat: %s", b)
	}
	w.stop()
	for {
		if m := wait(t, w.keys, "the last beat"); m.Gone {
			if !m.Draining {
				t.Error("gone, but not draining")
			}
			break
		}
	}
	info, err := os.Stat(filepath.Join(w.dir, "seed-key.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("signing key: %v, %v", info, err)
	}
}

func TestBadKeyIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "seed-key.pem"), []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := seed.New(seed.Config{DataDir: dir}, &memoryBus{}, nil)
	if err == nil || !strings.Contains(err.Error(), "seed-key.pem") {
		t.Errorf("error: %v", err)
	}
}

// TestASeedFetchesWhatAPackagerCertified: a viewer that has the certificate from others asks for pieces at once.
func TestASeedFetchesWhatAPackagerCertified(t *testing.T) {
	o := newOrigin(t)
	o.film(3)
	w := newWorld(t, o, nil)
	v := w.connect(1, 2)
	name := names(3)[1]
	data := o.files["/vod"+string(name)]
	if _, none := v.certificate(names(3)[0]); none != nil { // the seed knows the playlist from then on
		t.Fatalf("reason %d", none.Reason)
	}
	got, rejected := v.fetch(&certificate.Certificate{
		Site: "demo", Name: name, Length: int64(len(data)), ObjectLength: int64(len(data)), Digests: certificate.DigestPieces(data),
	})
	if n := o.count("/vod" + string(name)); !bytes.Equal(got, data) || rejected != nil || n != 1 {
		t.Errorf("%d pieces were refused, and the origin was asked %d times", len(rejected), n)
	}
}
