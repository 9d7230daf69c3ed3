package packaging

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// TestALivePlaylistIsFollowed: new segments are signed as they are listed, and nothing twice.
func TestALivePlaylistIsFollowed(t *testing.T) {
	p := newPackager(t, nil)
	type told struct {
		plan *Plan
		err  error
	}
	reports := make(chan told, 10)
	written := 0
	publish := func(from, to int) {
		list := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:%d\n", from)
		for i := from; i < to; i++ {
			if i >= written {
				p.put(fmt.Sprintf("live-%d.ts", i), content(20_000, byte(i)), time.Second)
				written++
			}
			list += fmt.Sprintf("#EXTINF:2,\nlive-%d.ts\n", i)
		}
		p.put("live.m3u8", []byte(list), 0)
	}
	publish(0, 3)
	ticks, stop := watching(p.Packager, func(_ string, plan *Plan, err error) { reports <- told{plan, err} })
	for i, want := range []struct{ signed, kept int }{{3, 0}, {1, 2}, {1, 2}} {
		r := <-reports
		if r.err != nil || r.plan.Segments()-r.plan.Kept != want.signed || r.plan.Kept != want.kept || !r.plan.Live {
			t.Fatalf("round %d: kept %d of %d, %v", i, r.plan.Kept, r.plan.Segments(), r.err)
		}
		ticks <- p.Now() // a round in which nothing has changed
		p.pass(2 * time.Second)
		publish(i+1, i+4)
		ticks <- p.Now()
	}
	<-reports
	if c := p.list("live.m3u8")["/media/bbb/live-5.ts"]; c == nil || c.NotAfter.Sub(c.IssuedAt) != 6*time.Second+liveGrace {
		t.Errorf("%+v", c)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if len(reports) > 0 {
		t.Errorf("%d reports too many", len(reports))
	}
}

// TestMediaThatComesLaterOrIsReplacedIsSigned, though the playlist stays as it is.
func TestMediaThatComesLaterOrIsReplacedIsSigned(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	if err := os.Remove(filepath.Join(p.dir, "seg-2.m4s")); err != nil {
		t.Fatal(err)
	}
	reports := make(chan *Plan, 10)
	ticks, stop := watching(p.Packager, func(_ string, plan *Plan, err error) {
		if err != nil {
			t.Error(err)
		}
		reports <- plan
	})
	if plan := <-reports; plan.Segments() != 2 || len(plan.Missing) != 1 {
		t.Errorf("first %d segments, missing %q", plan.Segments(), plan.Missing)
	}
	for _, seed := range []byte{7, 9} { // it comes, and it is replaced
		p.pass(time.Minute)
		p.put("seg-2.m4s", content(2*segment.PieceSize, seed), time.Second)
		ticks <- p.Now()
		if plan := <-reports; plan.Segments() != 3 || plan.Kept != 2 {
			t.Errorf("then %d segments, %d kept", plan.Segments(), plan.Kept)
		}
	}
	if err := stop(); err != nil || len(reports) > 0 {
		t.Errorf("%v, %d reports too many", err, len(reports))
	}
}

// TestWatchingAgainSignsOnce: what was signed before is signed anew, and what was signed anew is not. The list that is written changes
// the folder, so that the packager looks once more.
func TestWatchingAgainSignsOnce(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	p.certify("720p.m3u8")
	p.pass(time.Minute)
	s := p.Settings
	s.Again = true
	again, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan *Plan, 10)
	ticks, stop := watching(again, func(_ string, plan *Plan, _ error) { reports <- plan })
	for range 5 {
		p.pass(everyFile / 3)
		ticks <- p.Now()
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if plan := <-reports; plan.Segments() != 3 || plan.Kept != 0 || len(reports) > 0 || again.Read() != plan.Bytes {
		t.Errorf("signed %d of %d segments, and %d times more: %d bytes read", plan.Segments()-plan.Kept, plan.Segments(), len(reports), again.Read())
	}
}

// TestAFileWhoseTimeIsAheadIsSignedOnce, as long as its time is ahead of the clock and the same, and once more when it is not ahead any
// more: from then on the time says what is written to the file.
func TestAFileWhoseTimeIsAheadIsSignedOnce(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	put := func(seed byte) { p.put("seg-2.m4s", content(2*segment.PieceSize, seed), -time.Hour) }
	put(7)
	reports := make(chan *Plan, 100)
	ticks, stop := watching(p.Packager, func(_ string, plan *Plan, _ error) { reports <- plan })
	looks := func() {
		for range 5 {
			p.pass(everyFile / 3)
			if err := os.Chtimes(p.dir, p.Now(), p.Now()); err != nil { // a file came to it
				t.Error(err)
			}
			ticks <- p.Now()
		}
	}
	for _, step := range []struct {
		name   string
		change func()
		signed int
	}{{"it is there", func() {}, 3}, {"it is another one", func() { put(9) }, 1}, {"its time has come", func() { p.pass(2 * time.Hour) }, 1}} {
		step.change()
		looks()
		if len(reports) != 1 {
			t.Errorf("%s: signed %d times", step.name, len(reports))
		}
		if plan := <-reports; plan.Segments()-plan.Kept != step.signed {
			t.Errorf("%s: signed %d of %d segments", step.name, plan.Segments()-plan.Kept, plan.Segments())
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestASegmentOfOnePlaylistHasNoOtherRead: that would take longer the more playlists there are, and the longer they are. A file that was
// replaced is found all the same, by the next look at the files, or with the next change of its playlist.
func TestASegmentOfOnePlaylistHasNoOtherRead(t *testing.T) {
	p := newPackager(t, nil)
	written := 0
	publish := func() {
		list := "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
		for i := range written + 1 {
			list += fmt.Sprintf("#EXTINF:2,\nlive-%d.ts\n", i)
		}
		p.put(fmt.Sprintf("live-%d.ts", written), content(1000, byte(written)), time.Second)
		p.put("live.m3u8", []byte(list), 0)
		written++
	}
	p.film()
	publish()
	reports := make(chan string, 100)
	ticks, stop := watching(p.Packager, func(file string, _ *Plan, err error) {
		if err != nil {
			t.Error(err)
		}
		reports <- file
	})
	look := func() (of map[string]int) {
		ticks <- p.Now() // the look before has ended
		ticks <- p.Now()
		of = map[string]int{}
		for len(reports) > 0 {
			of[<-reports]++
		}
		return of
	}
	if of := look(); of["720p.m3u8"] != 1 || of["live.m3u8"] != 1 {
		t.Errorf("at first %v", of)
	}
	p.put("seg-2.m4s", content(2*segment.PieceSize, 11), 0)
	for at := 2 * time.Second; at < everyFile; at += 2 * time.Second {
		p.pass(2 * time.Second)
		publish()
		if of := look(); of["720p.m3u8"] != 0 || of["live.m3u8"] != 1 {
			t.Errorf("after %v %v", at, of)
		}
	}
	p.pass(2 * time.Second)
	if of := look(); of["720p.m3u8"] != 1 || of["live.m3u8"] != 0 {
		t.Errorf("after %v %v", everyFile, of)
	}
	p.pass(2 * time.Second)
	p.put("live-0.ts", content(1000, 99), 0)
	publish()
	if of := look(); of["live.m3u8"] != 1 || p.list("live.m3u8")["/media/bbb/live-0.ts"].IssuedAt.Before(p.Now().Add(-time.Second)) {
		t.Errorf("with a change of the playlist %v", of)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// watching has a packager watch its folder until it is stopped; stop says what came of it.
func watching(p *Packager, report func(file string, plan *Plan, err error)) (ticks chan<- time.Time, stop func() error) {
	looks, ended := make(chan time.Time), make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- p.Watch(ctx, looks, report) }()
	return looks, func() error {
		cancel()
		return <-ended
	}
}
