package packaging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
)

const lowHead = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:41\n"

func newPartPackager(t testing.TB) *packager {
	return newPackager(t, func(s *Settings) { s.Parts = true })
}

// part reads the certificate of a part. nil: there is none.
func (p *packager) part(file string) *certificate.Certificate {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, file+Suffix))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := certificate.Parse(b)
	if err != nil {
		p.t.Fatal(file, err)
	}
	return c
}

// certificates are the files of the folder that are certificates of parts, without their ending.
func (p *packager) certificates() (names []string) {
	p.t.Helper()
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		if isOfPart(e.Name()) {
			names = append(names, strings.TrimSuffix(e.Name(), Suffix))
		}
	}
	return names
}

func partTag(uri, more string) string {
	return fmt.Sprintf("#EXT-X-PART:DURATION=0.5,URI=\"%s\"%s\n", uri, more)
}

// publishes writes a playlist of parts that are files of their own, from one to another, four a segment.
func (p *packager) publishes(from, to int) {
	list := strings.Replace(lowHead, ":41", fmt.Sprint(":", from/4), 1)
	once := func(file string, data []byte) {
		if _, err := os.Stat(filepath.Join(p.dir, file)); err != nil {
			p.put(file, data, time.Second)
		}
	}
	for i := from; i < to; i++ {
		once(livePart(i), content(9_000+i, byte(i)))
		list += partTag(livePart(i), "")
		if i%4 == 3 {
			once(fmt.Sprintf("live-%d.m4s", i/4), content(100, byte(i)))
			list += fmt.Sprintf("#EXTINF:2,\nlive-%d.m4s\n", i/4)
		}
	}
	p.put("live.m3u8", []byte(list+`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="next.m4s"`+"\n"), 0)
}

func livePart(i int) string { return fmt.Sprintf("live-%d.%d.m4s", i/4, i%4) }

// TestEachPartHasACertificateBesideIt: what a viewer does with it and the pieces of the part.
func TestEachPartHasACertificateBesideIt(t *testing.T) {
	p := newPartPackager(t)
	data := content(40_000, 5)
	p.put("41.0.m4s", data, time.Second)
	p.put("41.m4s", data, time.Second)
	p.put("gap.m4s", data, time.Second)
	p.put("next.m4s", data[:100], time.Second)
	p.put("empty.m4s", nil, time.Second)
	p.put("long.m4s", make([]byte, maxPart+1), time.Second)
	p.put("live.m3u8", []byte(lowHead+partTag("41.0.m4s?session=7", "")+partTag("41.m4s", `,BYTERANGE="20000@1600"`)+partTag("41.m4s", `,BYTERANGE="18401@21600"`)+
		partTag("gap.m4s", ",GAP=YES")+partTag("empty.m4s", "")+partTag("long.m4s", "")+partTag("../other/1.m4s", "")+
		`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="next.m4s"`+"\n"), 0)
	plan := p.certify("live.m3u8")
	if got := p.certificates(); plan.Parts != 2 || !slices.Equal(got, []string{"41.0.m4s", "41.m4s.1600-21599"}) {
		t.Fatalf("%d parts, certificates of %q", plan.Parts, got)
	}
	for file, want := range map[string]struct {
		name   segment.Name
		data   []byte
		object int64
	}{
		"41.0.m4s":          {"/media/bbb/41.0.m4s", data, 40_000},
		"41.m4s.1600-21599": {"/media/bbb/41.m4s#1600-21599", data[1600:21600], 21_600},
	} {
		c := p.part(file)
		if err := p.keys.Verify(c, "demo", want.name, p.Now(), nil); err != nil {
			t.Error(file, err)
		}
		if c.Alg != certificate.Packager || c.ObjectLength != want.object || c.Length != int64(len(want.data)) || c.NotAfter.Sub(c.IssuedAt) != certificate.PartLife {
			t.Errorf("%s: %+v", file, c)
		}
		for i := range c.Digests {
			from := i * segment.PieceSize
			if !c.CheckPiece(i, want.data[from:from+segment.PieceLen(c.Length, i)]) {
				t.Errorf("%s: piece %d is another", file, i)
			}
		}
	}
}

// TestOfManyPartsTheLatestAreSigned, and each once.
func TestOfManyPartsTheLatestAreSigned(t *testing.T) {
	p := newPartPackager(t)
	p.publishes(0, 40)
	if p.certify("live.m3u8"); len(p.certificates()) != mostParts || p.part(livePart(24)) == nil || p.part(livePart(23)) != nil {
		t.Errorf("certificates of %q", p.certificates())
	}
	p.pass(time.Second)
	first, read := p.part(livePart(30)).IssuedAt, p.Read()
	p.publishes(0, 41)
	if p.certify("live.m3u8"); p.Read()-read != 9_040 || !p.part(livePart(30)).IssuedAt.Equal(first) || len(p.certificates()) != mostParts+1 {
		t.Errorf("%d bytes read for one part more, %d certificates", p.Read()-read, len(p.certificates()))
	}
}

// TestCertificatesOfPartsGoWithThem: with the part, with the playlist's end, and with the playlist.
func TestCertificatesOfPartsGoWithThem(t *testing.T) {
	p := newPartPackager(t)
	for name, gone := range map[string]func(){
		"its end": func() { p.put("live.m3u8", []byte(vod), 0); p.certify("live.m3u8") },
		"a playlist without": func() {
			p.put("live.m3u8", []byte(strings.Replace(vod, "#EXT-X-ENDLIST\n", "", 1)), 0)
			p.certify("live.m3u8")
		},
		"unlisted": func() { _ = p.Unlist("live.m3u8") },
	} {
		p.publishes(0, 10)
		p.certify("live.m3u8")
		p.publishes(8, 12)
		if p.certify("live.m3u8"); fmt.Sprint(p.certificates()) != "[live-2.0.m4s live-2.1.m4s live-2.2.m4s live-2.3.m4s]" {
			t.Errorf("%s: certificates of %q", name, p.certificates())
		}
		if gone(); len(p.certificates()) > 0 || len(p.parts.all) > 0 {
			t.Errorf("%s leaves certificates of %q, and remembers %d playlists", name, p.certificates(), len(p.parts.all))
		}
	}
}

// TestAPartThatIsReplacedIsSignedAnew, and one that is not there yet when it is.
func TestAPartThatIsReplacedIsSignedAnew(t *testing.T) {
	p := newPartPackager(t)
	p.publishes(0, 4)
	p.certify("live.m3u8")
	p.pass(time.Minute)
	other := content(9_001, 77)
	p.put(livePart(1), other, time.Second)
	p.certify("live.m3u8")
	if c := p.part(livePart(1)); c == nil || !c.CheckPiece(0, other) {
		t.Errorf("%+v", c)
	}
	if err := os.Remove(filepath.Join(p.dir, livePart(2))); err != nil {
		t.Fatal(err)
	}
	if plan := p.certify("live.m3u8"); len(plan.Missing) != 1 || plan.Missing[0] != livePart(2) {
		t.Errorf("missing: %q", plan.Missing)
	}
	p.put(livePart(2), other, time.Second)
	p.certify("live.m3u8")
	if c := p.part(livePart(2)); c == nil || !c.CheckPiece(0, other) {
		t.Errorf("%+v", c)
	}
}

// TestRangesOfAnObjectThatGrowsAreSigned as they are listed, and anew when the object begins anew.
func TestRangesOfAnObjectThatGrowsAreSigned(t *testing.T) {
	p := newPartPackager(t)
	data := content(60_000, 3)
	list := lowHead + partTag("41.m4s", `,BYTERANGE="20000@0"`) + partTag("41.m4s", `,BYTERANGE="20000"`)
	p.put("live.m3u8", []byte(list), 0)
	grow := func(to int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.dir, "41.m4s"), data[:to], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	grow(20_000)
	if plan := p.certify("live.m3u8"); plan.Parts != 1 || len(plan.Missing) != 0 {
		t.Errorf("%d parts of what is there, missing %q", plan.Parts, plan.Missing)
	}
	grow(50_000)
	read := p.Read()
	if p.certify("live.m3u8"); p.Read()-read != 20_000 || p.part("41.m4s.20000-39999") == nil {
		t.Errorf("%d bytes read, certificates of %q", p.Read()-read, p.certificates())
	}
	data = content(60_000, 4)
	p.put("41.m4s", data, time.Second)
	if p.certify("live.m3u8"); !p.part("41.m4s.0-19999").CheckPiece(0, data[:segment.PieceSize]) {
		t.Error("the certificate is of the object before")
	}
}

// TestWithoutPartsNoneAreSigned: what ends could not be removed.
func TestWithoutPartsNoneAreSigned(t *testing.T) {
	p := newPackager(t, nil)
	p.publishes(0, 8)
	if plan := p.certify("live.m3u8"); len(p.certificates()) > 0 || plan.Parts > 0 || plan.Segments() == 0 {
		t.Errorf("%+v, certificates of %q", plan, p.certificates())
	}
}

// TestWhatAKilledPackagerLeftIsRemoved once it has ended, and nothing else is.
func TestWhatAKilledPackagerLeftIsRemoved(t *testing.T) {
	p := newPartPackager(t)
	p.publishes(0, 4)
	p.put("film.m3u8", []byte(vod), time.Hour)
	p.certify("live.m3u8")
	p.certify("film.m3u8")
	q := newPackager(t, func(s *Settings) { s.Parts, s.Root, s.Now = true, p.Root, p.Now })
	p.put("note"+Suffix, []byte("another program's"), time.Hour)
	for _, passed := range []struct {
		time.Duration
		left int
	}{{certificate.PartLife - time.Minute, 5}, {2 * time.Minute, 1}} {
		p.pass(passed.Duration)
		if _, err := q.Playlists(); err != nil || len(p.certificates()) != passed.left {
			t.Errorf("after %v: %q, %v", passed.Duration, p.certificates(), err)
		}
	}
	if p.list("film.m3u8") == nil || len(p.list("live.m3u8")) != 1 {
		t.Error("a list is gone")
	}
}

// TestWhatWasLeftIsRemovedWhereNothingIsWatched, too: with a playlist that is pushed.
func TestWhatWasLeftIsRemovedWhereNothingIsWatched(t *testing.T) {
	p := newPartPackager(t)
	p.publishes(0, 4)
	p.certify("live.m3u8")
	p.pass(certificate.PartLife + time.Minute)
	q := newPackager(t, func(s *Settings) { s.Parts, s.Root, s.Now = true, p.Root, p.Now })
	list := []byte(lowHead + partTag(livePart(0), ""))
	if _, _, err := q.CertifyText(t.Context(), "other.m3u8", list); err != nil || !slices.Equal(p.certificates(), []string{livePart(0)}) {
		t.Errorf("%v, certificates of %q", err, p.certificates())
	}
}

// TestPlaylistsOfPartsAreLookedAtMoreOften than the others.
func TestPlaylistsOfPartsAreLookedAtMoreOften(t *testing.T) {
	p := newPartPackager(t)
	p.film()
	p.publishes(0, 4)
	reports := make(chan string, 10)
	ticks, stop := watching(p.Packager, func(file string, _ *Plan, err error) {
		if err != nil {
			t.Error(err)
		}
		reports <- file
	})
	<-reports
	<-reports
	p.publishes(0, 8)
	p.put("720p.m3u8", []byte(strings.Replace(vod, "seg-2", "seg-1", 1)), 0)
	p.pass(Every)
	ticks <- p.Now()
	if file := <-reports; file != "live.m3u8" {
		t.Errorf("%s is looked at", file)
	}
	p.pass(everySlow)
	ticks <- p.Now()
	if file := <-reports; file != "720p.m3u8" {
		t.Errorf("%s is looked at then", file)
	}
	if err := stop(); err != nil || len(p.certificates()) != 8 {
		t.Errorf("%v, certificates of %q", err, p.certificates())
	}
}
