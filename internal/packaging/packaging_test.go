package packaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// packager is a folder of a site, and a clock.
type packager struct {
	*Packager
	t      testing.TB
	dir    string
	passed atomic.Int64
}

func newPackager(t testing.TB, change func(*Settings)) *packager {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}, Key: site.KeyRule{IgnoreQuery: []string{"session"}}})
	if err != nil {
		t.Fatal(err)
	}
	p, start := &packager{t: t, dir: dir}, time.Now()
	s := Settings{Site: rules, Key: testkit.PackagerKey(t), Root: root, Path: "/media/bbb/", Workers: 3, Now: func() time.Time { return start.Add(time.Duration(p.passed.Load())) }}
	if change != nil {
		change(&s)
	}
	if p.Packager, err = New(s); err != nil {
		t.Fatal(err)
	}
	return p
}

// put writes a file that is older than the clock by age.
func (p *packager) put(file string, data []byte, age time.Duration) {
	p.t.Helper()
	path := filepath.Join(p.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	written := p.Now().Add(-age)
	temporary := filepath.Join(p.t.TempDir(), "file")
	err := errors.Join(os.WriteFile(temporary, data, 0o644), os.Chtimes(temporary, written, written), os.Rename(temporary, path))
	if err != nil {
		p.t.Fatal(err)
	}
}

// pass lets time pass.
func (p *packager) pass(d time.Duration) { p.passed.Add(int64(d)) }

// anew has all that was signed so far signed again.
func (p *packager) anew() {
	p.pass(time.Second)
	p.since = p.Now().Truncate(time.Millisecond)
	clear(p.known)
}

func (p *packager) certify(file string) *Plan {
	p.t.Helper()
	plan, _, err := p.Certify(context.Background(), file)
	if err != nil {
		p.t.Fatal(err)
	}
	return plan
}

// list reads the list of a playlist, by name.
func (p *packager) list(file string) map[string]*certificate.Certificate {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, file+Suffix))
	if err != nil {
		p.t.Fatal(err)
	}
	entries, err := certificate.ParseList(b)
	if err != nil {
		p.t.Fatal(err)
	}
	all := map[string]*certificate.Certificate{}
	for _, c := range entries {
		all[string(c.Name)] = c
	}
	return all
}

func content(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)*seed
	}
	return b
}

const vod = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:4,\nseg-1.m4s?session=7\n#EXTINF:4,\nseg-2.m4s\n#EXT-X-ENDLIST\n"

func (p *packager) film() {
	p.put("720p.m3u8", []byte(vod), time.Hour)
	p.put("init.mp4", content(700, 3), time.Hour)
	p.put("seg-1.m4s", content(3*segment.PieceSize+1, 5), time.Hour)
	p.put("seg-2.m4s", content(2*segment.PieceSize, 7), time.Hour)
}

// TestAListCompletesWithTheBytesThatWereSigned: what a viewer does with a list and a segment of the origin.
func TestAListCompletesWithTheBytesThatWereSigned(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	plan := p.certify("720p.m3u8")
	list := p.list("720p.m3u8")
	if len(list) != 3 || plan.Segments() != 3 || plan.Kept != 0 || plan.Bytes != 700+5*segment.PieceSize+1 || p.Read() != plan.Bytes {
		t.Fatalf("%d entries, %+v, %d bytes read", len(list), plan, p.Read())
	}
	data := content(3*segment.PieceSize+1, 5)
	c := list["/media/bbb/seg-1.m4s"]
	if err := p.keys.Verify(c, "demo", c.Name, p.Now(), nil); err != nil {
		t.Fatal(err)
	}
	full, err := c.Complete(int64(len(data)), certificate.DigestPieces(data))
	if err != nil || !full.CheckPiece(3, data[3*segment.PieceSize:]) {
		t.Fatalf("%v", err)
	}
	data[0] ^= 1
	if _, err := c.Complete(int64(len(data)), certificate.DigestPieces(data)); err == nil {
		t.Error("other bytes complete it")
	}
	if life := c.NotAfter.Sub(c.IssuedAt); life != DefaultLife {
		t.Errorf("lives %v", life)
	}
}

// TestWhatIsSignedIsNotReadAgain until it changes, is due, or is to be signed again.
func TestWhatIsSignedIsNotReadAgain(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	p.certify("720p.m3u8")
	before, _ := os.ReadFile(filepath.Join(p.dir, "720p.m3u8.leeway"))
	steps := []struct {
		name   string
		change func()
		signed int
	}{
		{"nothing changed", func() { p.pass(time.Minute) }, 0},
		{"one file written anew, of the same length", func() { p.put("seg-2.m4s", content(2*segment.PieceSize, 9), time.Second) }, 1},
		{"another file in its place, of the same length and older", func() { p.pass(time.Minute); p.put("seg-2.m4s", content(2*segment.PieceSize, 13), 2*time.Hour) }, 1},
		{"one file longer", func() { p.pass(time.Minute); p.put("seg-2.m4s", content(2*segment.PieceSize+1, 9), 40*24*time.Hour) }, 1},
		{"a list that is none", func() { p.put("720p.m3u8.leeway", []byte("LWL1"), 0) }, 3},
		{"half of the life is over", func() { p.pass(DefaultLife/2 + time.Second) }, 3},
		{"signed by another key", func() {
			q := newPackager(t, nil)
			p.Key, p.keys = q.Key, q.keys
		}, 3},
		{"again", p.anew, 3},
		{"once", func() {}, 0},
	}
	for i, s := range steps {
		s.change()
		plan := p.certify("720p.m3u8")
		if got := plan.Segments() - plan.Kept; got != s.signed {
			t.Errorf("%s: %d signed, want %d", s.name, got, s.signed)
		}
		if after, _ := os.ReadFile(filepath.Join(p.dir, "720p.m3u8.leeway")); i == 0 && !bytes.Equal(before, after) {
			t.Errorf("%s: another list", s.name)
		}
	}
}

// TestSegmentsHaveTheNamesOfViewers: ranges, virtual segments, what is not the folder's.
func TestSegmentsHaveTheNamesOfViewers(t *testing.T) {
	p := newPackager(t, nil)
	p.put("long.ts", make([]byte, segment.MaxLength+1), time.Hour)
	p.put("all.mp4", content(5000, 3), time.Hour)
	p.put("a b.ts", content(9, 3), time.Hour)
	p.put("empty.ts", nil, time.Hour)
	p.put("mixed.m3u8", []byte(`#EXTM3U
#EXT-X-TARGETDURATION:4
#EXTINF:4,
long.ts
#EXT-X-BYTERANGE:1000@2000
#EXTINF:4,
all.mp4
#EXT-X-BYTERANGE:9000@2000
#EXTINF:4,
all.mp4
#EXTINF:4,
a%20b.ts
#EXTINF:4,
a%20b.ts
#EXTINF:4,
empty.ts
#EXTINF:4,
gone.ts
#EXTINF:4,
../other/1.ts
#EXTINF:4,
https://elsewhere.example.net/2.ts
#EXT-X-ENDLIST
`), time.Hour)
	plan := p.certify("mixed.m3u8")
	list := p.list("mixed.m3u8")
	for _, name := range []string{"/media/bbb/long.ts#0-4194303", "/media/bbb/long.ts#4194304-8388607", "/media/bbb/long.ts#8388608-8388608", "/media/bbb/all.mp4#2000-2999", "/media/bbb/a%20b.ts"} {
		if list[name] == nil {
			t.Errorf("no entry for %s", name)
		}
	}
	if len(list) != 5 || len(plan.Missing) != 1 || plan.Missing[0] != "gone.ts" || plan.Unsaid != 3 {
		t.Errorf("%d entries, missing %q, left out %d", len(list), plan.Missing, plan.Unsaid)
	}
}

// TestAListIsNoLongerThanViewersTake: of a live playlist the latest segments are listed, of another one the first.
func TestAListIsNoLongerThanViewersTake(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	p.certify("720p.m3u8")
	size := func(spans []span) int {
		n := certificate.ListHead
		for _, s := range spans {
			n += certificate.EntrySize("demo", s.name)
		}
		return n
	}
	plan, err := p.Plan("720p.m3u8")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(p.dir, "720p.m3u8.leeway")); err != nil || info.Size() != int64(size(plan.lists[0].spans)) {
		t.Fatalf("%d bytes are expected of %+v, %v", size(plan.lists[0].spans), info, err)
	}
	const all = 15_000
	for _, live := range []bool{true, false} {
		one := &sheet{}
		for i := range all {
			one.spans = append(one.spans, span{name: segment.Name(fmt.Sprintf("/media/bbb/%d.ts", i)), first: int64(i)})
		}
		plan := &Plan{packager: p.Packager, Live: live}
		plan.fit(one)
		first, last := one.spans[0].first == 0, one.spans[len(one.spans)-1].first == all-1
		if n := size(one.spans); n > certificate.MaxTaken || n < certificate.MaxTaken-200 || plan.Unsaid != all-len(one.spans) || first == live || last != live {
			t.Errorf("live %v: %d bytes, %d left out, has the first %v and the last %v", live, n, plan.Unsaid, first, last)
		}
	}
}

// TestNothingOutsideOfTheFolderIsRead: a playlist may come from a customer.
func TestNothingOutsideOfTheFolderIsRead(t *testing.T) {
	p := newPackager(t, func(s *Settings) { s.Path = "/" })
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(p.dir, "link.ts")); err != nil {
		t.Fatal(err)
	}
	p.put("a.m3u8", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n../../../../etc/passwd\n#EXTINF:4,\nlink.ts\n#EXTINF:4,\n%2e%2e/%2e%2e/etc/passwd\n#EXT-X-ENDLIST\n"), time.Hour)
	p.certify("a.m3u8")
	if list := p.list("a.m3u8"); len(list) != 0 {
		t.Errorf("signed: %v", list)
	}
}

// TestAFileThatIsWrittenWhileItIsReadIsNotSigned by its length and by its time.
func TestAFileThatIsWrittenWhileItIsReadIsNotSigned(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(p *packager)
	}{
		{"longer", func(p *packager) { p.put("seg-1.m4s", content(9*segment.PieceSize, 5), time.Hour) }},
		{"shorter", func(p *packager) { p.put("seg-1.m4s", content(9, 5), time.Hour) }},
		{"gone", func(p *packager) { _ = os.Remove(filepath.Join(p.dir, "seg-1.m4s")) }},
	} {
		p := newPackager(t, nil)
		p.film()
		plan, err := p.Plan("720p.m3u8")
		if err != nil {
			t.Fatal(err)
		}
		c.write(p)
		if _, err := plan.Sign(context.Background()); err == nil {
			t.Errorf("%s: signed", c.name)
		}
	}
}

// TestAPlaylistThatIsGoneIsForgotten, and its list with it: a packager that is pushed to goes on for years.
func TestAPlaylistThatIsGoneIsForgotten(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	p.certify("720p.m3u8")
	if err := p.Unlist("720p.m3u8"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "720p.m3u8.leeway")); !os.IsNotExist(err) || len(p.known) > 0 {
		t.Errorf("%d playlists are remembered, %v", len(p.known), err)
	}
}

func TestAMasterPlaylistAndRubbishHaveNoList(t *testing.T) {
	p := newPackager(t, nil)
	p.put("master.m3u8", []byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n720p.m3u8\n"), 0)
	if _, _, err := p.Certify(context.Background(), "master.m3u8"); !errors.Is(err, ErrMaster) {
		t.Error(err)
	}
	p.put("rubbish.m3u8", []byte("<html>"), 0)
	p.put("huge.m3u8", make([]byte, playlist.MaxBytes+1), 0)
	for _, file := range []string{"rubbish.m3u8", "huge.m3u8", "none.m3u8"} {
		if _, _, err := p.Certify(context.Background(), file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestInterruptedItEndsWithTheSameFiles: one that is not finished leaves the list before, and the next one tidies up.
func TestInterruptedItEndsWithTheSameFiles(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := p.Certify(ctx, "720p.m3u8"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p.put(".720p.m3u8.leeway.new-1", []byte("LW"), 2*time.Minute)
	p.put(".720p.m3u8.leeway.new-2", []byte("LW"), time.Second)
	files, err := p.Playlists()
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	p.certify(files[0])
	var left []string
	entries, _ := os.ReadDir(p.dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := fmt.Sprint(left); got != "[.720p.m3u8.leeway.new-2 720p.m3u8 720p.m3u8.leeway init.mp4 seg-1.m4s seg-2.m4s]" {
		t.Error(got)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	p := newPackager(t, nil)
	for name, change := range map[string]func(*Settings){
		"life too long": func(s *Settings) { s.Life = 32 * 24 * time.Hour }, "no life": func(s *Settings) { s.Life = time.Second },
		"path without the last slash": func(s *Settings) { s.Path = "/media" }, "path without the first": func(s *Settings) { s.Path = "media/" },
	} {
		s := p.Settings
		change(&s)
		if _, err := New(s); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
