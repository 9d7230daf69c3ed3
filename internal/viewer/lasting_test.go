package viewer_test

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/viewer"
)

// hoursVariable says how many hours of a live stream are played.
const hoursVariable = "LEEWAY_LIVE_HOURS"

// lasts is how long the stream is watched. All that is bounded is full after a third of it.
func lasts(t *testing.T) time.Duration {
	text := os.Getenv(hoursVariable)
	if text == "" {
		return 2 * time.Hour
	}
	hours, err := strconv.Atoi(text)
	if err != nil || hours < 2 {
		t.Fatalf("%s=%q (give whole hours, 2 or more)", hoursVariable, text)
	}
	return time.Duration(hours) * time.Hour
}

// kept is what is in memory once all garbage is gone, and the goroutines.
func kept() (bytes, goroutines int) {
	runtime.GC()
	runtime.GC() // what the first has found to be finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc), runtime.NumGoroutine()
}

// TestALongLiveStreamFillsNoMemory: a tracker, a seed and three viewers at the edge of one stream keep as much after hours of it as after
// the first third (make live-hours plays twelve of them).
func TestALongLiveStreamFillsNoMemory(t *testing.T) {
	if testkit.RaceDetector {
		t.Skip("a play of hours takes too long with the race detector")
	}
	length := lasts(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, func(c *seed.Config) { c.MemoryBytes, c.DiskBytes = 2<<20, 4<<20 })
		var viewers []*viewer.Viewer
		var wrong atomic.Int64
		for range 3 {
			viewers = append(viewers, s.watch(func(c *viewer.Config) {
				c.StoreBytes = 2 << 20
				c.OnSegment = func(r *viewer.Result) {
					if path := strings.TrimPrefix(r.URL, "https://video.example.com"); !bytes.Equal(bytes.Join(r.Pieces, nil), segmentBytes(path)) {
						wrong.Add(1)
					}
				}
			}))
			<-time.After(700 * time.Millisecond)
		}
		const looks = 12
		var sizes, goroutines []int
		for range looks {
			<-time.After(length / looks)
			synctest.Wait()
			size, n := kept()
			sizes, goroutines = append(sizes, size>>10), append(goroutines, n)
		}
		t.Logf("%v: KiB in memory %v, goroutines %v", length, sizes, goroutines)
		for i, v := range viewers {
			told := make(chan viewer.Summary, 1)
			v.Report(func(sum viewer.Summary) { told <- sum })
			sum := <-told
			if played := time.Duration(sum.Stats.PlayedMs) * time.Millisecond; played < length-20*time.Second || sum.Stats.Stalls > 0 || sum.Leaps > 0 || sum.Links < 3 {
				t.Errorf("viewer %d: played %v, %d stalls, %d leaps, %d links", i, played, sum.Stats.Stalls, sum.Leaps, sum.Links)
			}
			if share := sum.Offload; i > 0 && share < 0.3 {
				t.Errorf("viewer %d: %.2f from viewers", i, share)
			}
		}
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d segments are not the origin's", n)
		}
		// The least of each is what is kept: at a look some loads are under way.
		before, after := slices.Min(sizes[looks/3:2*looks/3]), slices.Min(sizes[2*looks/3:])
		if after-before > 512 {
			t.Errorf("%d KiB more in the last third: %v", after-before, sizes)
		}
		if a, b := slices.Min(goroutines[looks/3:2*looks/3]), slices.Min(goroutines[2*looks/3:]); b > a {
			t.Errorf("%d goroutines more in the last third: %v", b-a, goroutines)
		}
	})
}
