package seed

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
)

// TestOneReadServesAllThatWait: after a restart many viewers ask for the same segment, of up to 8 MiB, at once.
func TestOneReadServesAllThatWait(t *testing.T) {
	s := newShop(t)
	st := s.open(t, 1<<20, 1<<20)
	h := s.held(t, 1, 40_000)
	if err := st.put(h); err != nil {
		t.Fatal(err)
	}
	var read atomic.Int32
	release := make(chan struct{})
	s.deny = func(*certificate.Certificate) bool {
		read.Add(1)
		<-release
		return false
	}
	reads := newLoads(s.open(t, 1<<20, 1<<20).get, nil, 1)
	var started, ended sync.WaitGroup
	for range 50 {
		started.Add(1)
		ended.Go(func() {
			started.Done()
			if got := reads.now(h.id); got == nil || got.sum != h.sum {
				t.Error("not the segment")
			}
		})
	}
	started.Wait()
	close(release)
	ended.Wait()
	if n := read.Load(); n != 1 {
		t.Errorf("the file was read %d times", n)
	}
}

// TestFileThatCannotBeReadNowIsKept: with no file descriptor left, every file of the store would be taken for corrupt.
func TestFileThatCannotBeReadNowIsKept(t *testing.T) {
	s := newShop(t)
	h := s.held(t, 1, 40_000)
	if err := s.open(t, 1<<20, 1<<20).put(h); err != nil {
		t.Fatal(err)
	}
	st := s.open(t, 1<<20, 1<<20)
	files, err := os.ReadDir(s.dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	file, aside := filepath.Join(s.dir, files[0].Name()), filepath.Join(t.TempDir(), "aside")
	if err := os.Rename(file, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil { // reading it fails, with another error than that it is not there
		t.Fatal(err)
	}
	if st.get(h.id) != nil {
		t.Fatal("a folder was read")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, file); err != nil {
		t.Fatal(err)
	}
	if st.get(h.id) == nil || s.rec.Value(mCorrupt) != 0 {
		t.Error("the segment was dropped, or counted as corrupt")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	st = newStore(st.disk, 1<<20, s.rec)
	if st.get(h.id) != nil || st.disk.bytes != 0 {
		t.Error("a file that is gone is still counted")
	}
}
