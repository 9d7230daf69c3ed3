package viewer

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
)

// partCrowd are twelve viewers of mixed lines at the edge of a stream with segments of 2 s in so many parts, for a minute.
func partCrowd(each int, thin float64) crowd {
	return crowd{viewers: 12, segment: 2 * time.Second, parts: each, window: 12, length: time.Minute, within: 30 * time.Second, seed: 1, thin: thin}
}

// TestAnAudienceOfShortPartsServesItself: parts of 200 ms at up to 1.88 Mbit/s, beside the same viewers without peers.
func TestAnAudienceOfShortPartsServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	partCrowd(10, 0).servesItself(t, 0.55, 0.001)
}

// BenchmarkPartAudience plays streams in parts in virtual time, with peers and by the origin alone. Thin 2 is a largest rendition of 0.94 Mbit/s,
// 0 of 1.88.
func BenchmarkPartAudience(b *testing.B) {
	for _, each := range []int{4, 10} {
		for _, thin := range []float64{2, 0} {
			b.Run(fmt.Sprintf("part=%v/thin=%v", 2*time.Second/time.Duration(each), thin), func(b *testing.B) {
				partCrowd(each, thin).besideTheOrigin(b)
			})
		}
	}
}

// servesItself plays an audience, and the same viewers without peers, beside which it may stall for no more than so much of the time.
func (c crowd) servesItself(t *testing.T, offload, stall float64) {
	t.Helper()
	_, with := c.play(t)
	c.alone = true
	_, alone := c.play(t)
	t.Logf("with peers %+v, without %+v", with, alone)
	if with.offload < offload || with.lag > alone.lag+0.1 || with.stall > alone.stall+stall || with.bitrate < alone.bitrate || with.leaps > 0 {
		t.Errorf("with peers %+v, without %+v", with, alone)
	}
}

// benchTraces are how many traces a benchmark of an audience plays.
const benchTraces = 3

// besideTheOrigin plays the traces of an audience with peers and by the origin alone, and reports the means. It returns the sums.
func (c crowd) besideTheOrigin(b *testing.B) (with, alone aired) {
	for b.Loop() {
		with, alone = aired{}, aired{}
		for seed := range uint64(benchTraces) {
			one := c
			one.seed = seed + 1
			with.add(one.play(b))
			one.alone = true
			alone.add(one.play(b))
		}
	}
	b.ReportMetric(with.offload/benchTraces, "offload_ratio")
	b.ReportMetric(with.origin/benchTraces, "origin_ratio")
	b.ReportMetric((with.lag-alone.lag)/benchTraces, "lag_added_seconds")
	b.ReportMetric(alone.stall/benchTraces, "stall_alone_ratio")
	b.ReportMetric((with.stall-alone.stall)/benchTraces, "stall_added_ratio")
	b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
	return with, alone
}
