package seed_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/procstat"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// shelf puts a title with one rendition of count segments of 8 MiB on the origin.
func (o *origin) shelf(count int) (names []segment.Name) {
	o.put("/vod/film/master.m3u8", []byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=16000000\nlow/index.m3u8\n"))
	list := "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"init.mp4\"\n"
	o.put("/vod/film/low/init.mp4", noise(800))
	for i := range count {
		list += fmt.Sprintf("#EXTINF:4,\n%d.m4s\n", i)
		o.put(fmt.Sprintf("/vod/film/low/%d.m4s", i), noise(segment.MaxLength))
		names = append(names, segment.Name(fmt.Sprintf("/film/low/%d.m4s", i)))
	}
	o.put("/vod/film/low/index.m3u8", []byte(list+"#EXT-X-ENDLIST\n"))
	return names
}

func targetOf(c *certificate.Certificate) *transfer.Target {
	return &transfer.Target{Segment: segment.NewID(c.Site, c.Name), Certificate: c}
}

// counted is the value of one of the seed's series.
func (w *world) counted(name string, labels ...string) float64 {
	w.t.Helper()
	i := slices.IndexFunc(seed.Metrics(), func(d *metric.Def) bool { return d.Name == name })
	if i < 0 {
		w.t.Fatalf("no metric %s", name)
	}
	return w.metrics.Value(seed.Metrics()[i], labels...)
}

// takes fetches pieces, so many at a time, until stop is closed, and returns how many bytes came. next says which.
func (v *viewer) takes(stop <-chan struct{}, atATime int, next func() (*transfer.Target, int)) (bytes int) {
	ask := func() {
		t, piece := next()
		v.download.Request(t, peer.Foreground, "test", piece)
	}
	for range atATime {
		ask()
	}
	for out := atATime; out > 0; {
		f := wait(v.w.t, v.fetched, "a piece")
		if f.rejected != nil {
			v.w.t.Errorf("rejected: %d", *f.rejected)
		}
		bytes += len(f.data)
		select {
		case <-stop:
			out--
		default:
			ask()
		}
	}
	return bytes
}

// spent is what was had for how much processor time.
type spent struct {
	bytes int
	cpu   time.Duration
}

// rate is in MB for each second of processor time.
func (s spent) rate() float64 { return float64(s.bytes) / 1e6 / s.cpu.Seconds() }

// TestALinkThatReadsTheDiskHoldsUpNoOther: a link asks for one piece each of many segments that have left memory, so that each makes
// the seed read and hash 8 MiB. Another one's throughput must not fall by half: TestHalfOfTheThroughputIsLeftBesideReads holds that, in
// virtual time. Here both sides of both links and the seed's reads take the same processors, and the share that is left, about a third with
// the race detector, says how quickly this machine hashes. The bound is a tenth: one part in a hundred was left when the loop that uploads
// read the disk itself. Throughput is bytes for each second of this process's processor time, since other programs of the machine take
// turns with it. That no piece waits for a read is TestPiecesAreSentWhileTheDiskIsStuck.
func TestALinkThatReadsTheDiskHoldsUpNoOther(t *testing.T) {
	const files, window, rounds = 8, 400 * time.Millisecond, 4
	o := newOrigin(t)
	names := o.shelf(files)
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) {
		c.MemoryBytes, c.SessionFactor = 2*segment.MaxLength, 1e5 // no budget helps
	})
	hostile, honest := w.connect(1, 2), w.connect(2, 2)
	var shelf []*transfer.Target
	for _, name := range names[1:] {
		c, none := hostile.certificate(name)
		if none != nil {
			t.Fatalf("no certificate for %s: %d", name, none.Reason)
		}
		shelf = append(shelf, targetOf(c))
	}
	c, _ := honest.certificate(names[0])
	target, piece := targetOf(c), 0
	measure := func(sum *spent) {
		began := procstat.CPU()
		stop := make(chan struct{})
		defer time.AfterFunc(window, func() { close(stop) }).Stop()
		sum.bytes += honest.takes(stop, 64, func() (*transfer.Target, int) {
			piece = (piece + 1) % len(c.Digests)
			return target, piece
		})
		sum.cpu += procstat.CPU() - began
	}
	measure(&spent{}) // the path's rate is found
	n, asked, alone, beside := 0, 0, spent{}, spent{}
	for range rounds {
		measure(&alone)
		stop := make(chan struct{})
		var attack sync.WaitGroup
		attack.Go(func() {
			asked += hostile.takes(stop, 16, func() (*transfer.Target, int) {
				n++
				return shelf[n%len(shelf)], n % 512
			}) / segment.PieceSize
		})
		measure(&beside)
		close(stop)
		attack.Wait()
	}
	t.Logf("%.0f MB/s of processor time alone, %.0f beside %d pieces of other files: %.0f %%", alone.rate(), beside.rate(), asked, 100*beside.rate()/alone.rate())
	if 10*beside.rate() < alone.rate() {
		t.Error("less than a tenth of the throughput is left")
	}
	if read := w.counted("leeway_seed_disk_read_bytes_total"); asked == 0 || read == 0 {
		t.Errorf("%d pieces of other files, for which %v bytes were read from disk", asked, read)
	}
}

// TestDiskReadsAreOfTheSessionsBudget: a session that asks for one thing after the other which has left memory is refused in the
// end, and another one is not.
func TestDiskReadsAreOfTheSessionsBudget(t *testing.T) {
	const files = 6
	o := newOrigin(t)
	names := o.shelf(files)
	// The least that a session may have read at once is 32 MiB, and nearly nothing comes after that.
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.MemoryBytes, c.SessionFactor = 1, 1e-6 })
	for i, name := range names {
		if _, none := w.connect(byte(10+i), 1).certificate(name); none != nil {
			t.Fatalf("%s could not be fetched: %d", name, none.Reason)
		}
	}
	greedy, other := w.connect(1, 1), w.connect(2, 1)
	shown, refused := 0, 0
	for _, name := range names {
		c, none := greedy.certificate(name)
		switch {
		case c != nil:
			shown++
		case none.Reason == peer.NoneBudget:
			refused++
		}
	}
	if read := w.counted("leeway_seed_disk_read_bytes_total"); shown == 0 || refused == 0 || read > 4*segment.MaxLength || w.counted("leeway_seed_budget_refusals_total", "session") == 0 {
		t.Errorf("%d shown and %d refused, %v bytes read", shown, refused, read)
	}
	if _, none := other.certificate(names[1]); none != nil {
		t.Errorf("another session may not have read what one has spent: %d", none.Reason)
	}
}
