package viewer

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
)

// partCrowd are twelve viewers of mixed lines at the edge of a stream with segments of 2 s in so many parts, for a minute.
func partCrowd(each int, thin float64, seed uint64) crowd {
	return crowd{viewers: 12, segment: 2 * time.Second, parts: each, window: 12, length: time.Minute, within: 30 * time.Second, seed: seed, thin: thin}
}

// TestAnAudienceOfShortPartsServesItself: parts of 200 ms at up to 1.88 Mbit/s, beside the same viewers without peers.
func TestAnAudienceOfShortPartsServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	c := partCrowd(10, 0, 1)
	_, with := c.play(t)
	c.alone = true
	_, alone := c.play(t)
	t.Logf("with peers %+v, without %+v", with, alone)
	if with.offload < 0.55 || with.lag > alone.lag+0.1 || with.stall > alone.stall+0.001 || with.bitrate < alone.bitrate || with.leaps > 0 {
		t.Errorf("with peers %+v, without %+v", with, alone)
	}
}

// BenchmarkPartAudience plays streams in parts in virtual time, with peers and by the origin alone. Thin 2 is a largest rendition of 0.94 Mbit/s,
// 0 of 1.88.
func BenchmarkPartAudience(b *testing.B) {
	for _, each := range []int{4, 10} {
		for _, thin := range []float64{2, 0} {
			b.Run(fmt.Sprintf("part=%v/thin=%v", 2*time.Second/time.Duration(each), thin), func(b *testing.B) {
				const traces = 3
				for b.Loop() {
					var with, alone aired
					for seed := range uint64(traces) {
						c := partCrowd(each, thin, seed+1)
						with.add(c.play(b))
						c.alone = true
						alone.add(c.play(b))
					}
					b.ReportMetric(with.offload/traces, "offload_ratio")
					b.ReportMetric(with.origin/traces, "origin_ratio")
					b.ReportMetric((with.lag-alone.lag)/traces, "lag_added_seconds")
					b.ReportMetric(alone.stall/traces, "stall_alone_ratio")
					b.ReportMetric((with.stall-alone.stall)/traces, "stall_added_ratio")
					b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
				}
			})
		}
	}
}
