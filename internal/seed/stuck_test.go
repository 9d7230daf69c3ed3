//go:build unix

package seed_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// sticks has whatever reads a segment's file wait until release is called. reached waits until something does.
func (w *world) sticks(id segment.ID) (reached, release func()) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "segments", id.String()+"-*"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("files of %s: %v, %v", id, files, err)
	}
	if err := errors.Join(os.Remove(files[0]), syscall.Mkfifo(files[0], 0o600)); err != nil {
		w.t.Fatal(err)
	}
	var pipe *os.File
	return func() {
			w.t.Helper()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for late := time.After(patience); ; {
				if pipe, err = os.OpenFile(files[0], os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
					return
				}
				select {
				case <-tick.C:
				case <-late:
					w.t.Fatalf("the file is not read: %v", err)
				}
			}
		}, func() {
			if pipe != nil {
				_ = pipe.Close()
			}
		}
}

// TestPiecesAreSentWhileTheDiskIsStuck: a read from disk for one link does not end. Another link has all the pieces that it asks for
// meanwhile, at most as many at a time as it would have anyway. It counts pieces and no time, so other load of the machine is not in it.
func TestPiecesAreSentWhileTheDiskIsStuck(t *testing.T) {
	const files, atATime, pieces = 4, 64, 2048
	o := newOrigin(t)
	names := o.shelf(files)
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.MemoryBytes, c.SessionFactor = 2*segment.MaxLength, 1e5 })
	hostile, honest := w.connect(1, 2), w.connect(2, 2)
	stuck, _ := hostile.certificate(names[1])
	for _, name := range names[2:] { // the first leaves memory
		hostile.certificate(name)
	}
	held, _ := honest.certificate(names[0])
	if stuck == nil || held == nil {
		t.Fatal("no certificate")
	}
	file := targetOf(stuck)
	reached, release := w.sticks(file.Segment)
	defer release()
	read := w.counted("leeway_seed_disk_read_bytes_total")
	hostile.download.Request(file, peer.Foreground, "test", 0)
	reached()
	stop, sent := make(chan struct{}), 0
	target := targetOf(held)
	bytes := honest.takes(stop, atATime, func() (_ *transfer.Target, piece int) {
		if sent++; sent == pieces {
			close(stop)
		}
		return target, sent % len(held.Digests)
	})
	if bytes < pieces*segment.PieceSize {
		t.Errorf("%d bytes came while the disk was stuck, want %d pieces", bytes, pieces)
	}
	select {
	case f := <-hostile.fetched:
		t.Errorf("the read was not stuck: %+v", f.rejected)
	default:
	}
	if w.counted("leeway_seed_disk_read_bytes_total") == read {
		t.Error("nothing was read from disk")
	}
}
