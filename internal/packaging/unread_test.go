package packaging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// TestAFileThatCannotBeReadHoldsUpNoOther: the others are signed, and are not read again when it is tried again.
func TestAFileThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	plan, err := p.Plan("720p.m3u8")
	if err != nil {
		t.Fatal(err)
	}
	p.put("seg-1.m4s", content(4*segment.PieceSize, 5), time.Hour)
	if _, err := p.Finish(context.Background(), plan); !errors.Is(err, errChanged) || !strings.Contains(err.Error(), "seg-1.m4s") {
		t.Errorf("%v", err)
	}
	if list := p.list("720p.m3u8"); len(list) != 2 || list["/media/bbb/seg-1.m4s"] != nil || plan.Segments() != 2 {
		t.Errorf("%d segments, listed %v", plan.Segments(), list)
	}
	before := p.Read()
	if plan := p.certify("720p.m3u8"); plan.Segments() != 3 || plan.Kept != 2 || p.Read()-before != 4*segment.PieceSize {
		t.Errorf("then %d segments, %d kept, %d bytes read", plan.Segments(), plan.Kept, p.Read()-before)
	}
}

// TestAPlaylistThatCannotBeReadHoldsUpNoOther, and is told.
func TestAPlaylistThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	p.put("1080p.m3u8", []byte("<html>"), time.Hour)
	plans, err := p.Plans()
	if err == nil || !strings.Contains(err.Error(), "1080p.m3u8") || len(plans) != 1 || plans[0].File != "720p.m3u8" {
		t.Errorf("%d plans, %v", len(plans), err)
	}
}

// TestAPlaylistThatComesWithinTheResolutionOfTheFoldersTimeIsSigned: the folder was read just before, and its time is the same.
func TestAPlaylistThatComesWithinTheResolutionOfTheFoldersTimeIsSigned(t *testing.T) {
	p := newPackager(t, nil)
	p.put("init.mp4", content(700, 3), time.Hour)
	p.put("seg-1.m4s", content(100, 3), time.Hour)
	p.put("seg-2.m4s", content(100, 5), time.Hour)
	reports := make(chan *Plan, 10)
	ticks, stop := watching(p.Packager, func(_ string, plan *Plan, _ error) { reports <- plan })
	ticks <- p.Now() // the first look is over
	before, err := os.Stat(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	p.put("720p.m3u8", []byte(vod), time.Hour)
	if err := os.Chtimes(p.dir, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		p.pass(resolution / 2)
		ticks <- p.Now()
	}
	if err := stop(); err != nil || len(reports) != 1 {
		t.Fatalf("%v, %d reports", err, len(reports))
	}
}

// TestAListThatCannotBeWrittenHasNoMediaReadAgain: the disk is full. Each look tries to write it, and the failure is told once.
func TestAListThatCannotBeWrittenHasNoMediaReadAgain(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	taken := filepath.Join(p.dir, "720p.m3u8"+Suffix)
	if err := os.MkdirAll(filepath.Join(taken, "folder"), 0o755); err != nil { // no file takes the place of a folder that is not empty
		t.Fatal(err)
	}
	reports := make(chan error, 100)
	ticks, stop := watching(p.Packager, func(_ string, _ *Plan, err error) { reports <- err })
	looks := func() {
		for range 5 {
			p.pass(everySlow)
			ticks <- p.Now()
		}
	}
	looks()
	read := p.Read()
	looks()
	if read == 0 || p.Read() != read || len(reports) != 1 {
		t.Errorf("%d bytes read at first, %d then; %d failures told", read, p.Read()-read, len(reports))
	}
	if err := <-reports; err == nil {
		t.Error("the list was written")
	}
	p.put("seg-2.m4s", content(2*segment.PieceSize, 7), 0) // another file of the same length
	looks()
	if got := p.Read() - read; got != 2*segment.PieceSize {
		t.Errorf("%d bytes read for a file that was replaced", got)
	}
	if err := os.RemoveAll(taken); err != nil {
		t.Fatal(err)
	}
	looks()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if list := p.list("720p.m3u8"); len(list) != 3 || p.Read() != read+2*segment.PieceSize {
		t.Errorf("%d segments listed, %d bytes read once there was room", len(list), p.Read()-read)
	}
}
