package viewer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
)

// TestAnAudienceOfShortPartsServesItself: parts of 200 ms at up to 1.88 Mbit/s, beside the same viewers without peers.
func TestAnAudienceOfShortPartsServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	partCrowd(12, 2*time.Second, 10).servesItself(t, 0.55, 0.001)
}

// partCrowd are viewers of mixed lines at the edge of a stream with segments in so many parts, for a minute.
func partCrowd(viewers int, segment time.Duration, each int) crowd {
	return crowd{viewers: viewers, segment: segment, parts: each, window: 12, length: time.Minute, within: 30 * time.Second, seed: 1}
}

// BenchmarkPartAudience plays streams in parts in virtual time, with peers and by the origin alone. Thin 2 is a largest rendition of 0.94 Mbit/s,
// 0 of 1.88.
func BenchmarkPartAudience(b *testing.B) {
	for _, of := range []struct {
		viewers, seconds, parts int
		thin                    float64
		traces                  uint64
	}{{12, 2, 4, 2, 3}, {12, 2, 4, 0, 3}, {12, 2, 10, 2, 3}, {12, 2, 10, 0, 3}, {12, 4, 8, 0, 3}, {30, 2, 4, 2, 1}, {30, 2, 4, 0, 1}} {
		segment := time.Duration(of.seconds) * time.Second
		b.Run(fmt.Sprintf("viewers=%d/segment=%v/part=%v/thin=%v", of.viewers, segment, segment/time.Duration(of.parts), of.thin), func(b *testing.B) {
			c := partCrowd(of.viewers, segment, of.parts)
			c.thin = of.thin
			c.besideTheOrigin(b, of.traces)
		})
	}
}

// BenchmarkUnevenParts plays parts of up to 1.88 Mbit/s whose origin answers each request, or each tenth, up to so much later.
func BenchmarkUnevenParts(b *testing.B) {
	for _, parts := range []int{4, 10} {
		for _, most := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond} {
			for _, each := range []int{1, 10} {
				b.Run(fmt.Sprintf("part=%v/most=%v/each=%d", 2*time.Second/time.Duration(parts), most, each), func(b *testing.B) {
					c := partCrowd(12, 2*time.Second, parts)
					c.happens = func(s *scene) {
						random := rand.New(rand.NewPCG(1, 2))
						through(s, func(bool) (refused bool, late time.Duration) {
							if random.IntN(each) > 0 {
								return false, 0
							}
							return false, time.Duration(random.Int64N(int64(most)))
						})
					}
					c.besideTheOrigin(b, 3)
				})
			}
		}
	}
}

// servesItself plays an audience, and the same viewers without peers, beside which it may stall for no more than so much of the time. It
// returns the first, and how many stalls it has more.
func (c crowd) servesItself(t *testing.T, offload, stall float64) (s *scene, more int64) {
	t.Helper()
	s, with := c.play(t)
	c.alone = true
	_, alone := c.play(t)
	t.Logf("with peers %+v, without %+v", with, alone)
	if with.offload < offload || with.lag > alone.lag+0.1 || with.stall > alone.stall+stall || with.bitrate < alone.bitrate || with.leaps > 0 {
		t.Errorf("with peers %+v, without %+v", with, alone)
	}
	return s, with.stalls - alone.stalls
}

// besideTheOrigin plays traces of an audience with peers and by the origin alone, and reports the means, the least that comes from viewers in a
// trace, and the most stalls that one has more. It returns the sums.
func (c crowd) besideTheOrigin(b *testing.B, traces uint64) (with, alone aired) {
	least, most := 0.0, int64(0)
	for b.Loop() {
		with, alone, least, most = aired{}, aired{}, 1, math.MinInt64
		for seed := range traces {
			one := c
			one.seed = seed + 1
			_, shared := one.play(b)
			one.alone = true
			_, bare := one.play(b)
			with.add(nil, shared)
			alone.add(nil, bare)
			least = min(least, shared.offload)
			most = max(most, shared.stalls-bare.stalls)
		}
	}
	n := float64(traces)
	b.ReportMetric(with.offload/n, "offload_ratio")
	b.ReportMetric(least, "offload_least")
	b.ReportMetric(with.origin/n, "origin_ratio")
	b.ReportMetric((with.lag-alone.lag)/n, "lag_added_seconds")
	b.ReportMetric(alone.stall/n, "stall_alone_ratio")
	b.ReportMetric((with.stall-alone.stall)/n, "stall_added_ratio")
	b.ReportMetric(float64(most), "stalls_added")
	b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
	return with, alone
}
