package packaging

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAFileThatGrowsInItsPlaceIsSigned, though it grew when nothing had been written for long: its folder does not change then.
func TestAFileThatGrowsInItsPlaceIsSigned(t *testing.T) {
	p := newPackager(t, nil)
	p.put("all.mp4", content(1000, 3), time.Hour)
	p.put("a.m3u8", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-BYTERANGE:1000@0\n#EXTINF:4,\nall.mp4\n#EXT-X-BYTERANGE:500@1000\n#EXTINF:4,\nall.mp4\n#EXT-X-ENDLIST\n"), time.Hour)
	reports := make(chan *Plan, 10)
	ticks, stop := watching(p.Packager, func(_ string, plan *Plan, err error) {
		if err != nil {
			t.Error(err)
		}
		reports <- plan
	})
	if plan := <-reports; plan.Segments() != 1 {
		t.Errorf("at first %d segments", plan.Segments())
	}
	looks := func() {
		for range 5 {
			p.pass(everyFile / 2)
			ticks <- p.Now()
		}
	}
	looks()
	f, err := os.OpenFile(filepath.Join(p.dir, "all.mp4"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content(500, 5)); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	looks()
	if err := stop(); err != nil || len(reports) != 1 {
		t.Fatalf("%v, %d reports", err, len(reports))
	}
	if plan := <-reports; plan.Segments() != 2 {
		t.Errorf("then %d segments", plan.Segments())
	}
}

// TestAClockThatIsSetBackHasAllSignedAnew: what was signed before is of the future, and viewers take none of it.
func TestAClockThatIsSetBackHasAllSignedAnew(t *testing.T) {
	const year = 365 * 24 * time.Hour
	p := newPackager(t, nil)
	at := p.Now().Add(year)
	p.pass(year)
	p.film()
	reports := make(chan *Plan, 10)
	ticks, stop := watching(p.Packager, func(_ string, plan *Plan, _ error) { reports <- plan })
	<-reports
	p.pass(-year)
	for i := range 3 {
		ticks <- at.Add(time.Duration(i+1) * time.Second)
	}
	if err := stop(); err != nil || len(reports) != 1 {
		t.Fatalf("%v, %d reports", err, len(reports))
	}
	for name, c := range p.list("720p.m3u8") {
		if c.IssuedAt.After(p.Now()) {
			t.Errorf("%s was issued at %v", name, c.IssuedAt)
		}
	}
}

// TestWhatIsToBeSignedAgainIsSignedAgainOnce, also where the clock is set back meanwhile.
func TestWhatIsToBeSignedAgainIsSignedAgainOnce(t *testing.T) {
	p := newPackager(t, func(s *Settings) { s.Again = true })
	p.film()
	for i, kept := range []int{0, 3, 0, 3} {
		if i == 2 {
			p.pass(-30 * time.Minute) // what was signed is of the future
		}
		if plan := p.certify("720p.m3u8"); plan.Kept != kept || plan.Segments() != 3 {
			t.Errorf("%d: %d of %d segments kept, want %d", i, plan.Kept, plan.Segments(), kept)
		}
	}
}
