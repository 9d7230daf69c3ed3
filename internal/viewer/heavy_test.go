package viewer

import (
	"fmt"
	"testing"
	"time"
)

// fastLines carry renditions of 4K.
var fastLines = []homes{
	{"100/40", 0.5, access{up: 5e6, down: 12.5e6, delay: 7500 * time.Microsecond}},
	{"1000/100", 0.5, access{up: 12.5e6, down: 125e6, delay: 7500 * time.Microsecond}},
}

// BenchmarkHeavy plays films and streams of so many times as many bytes as others have, up to 7.5 MB a segment, beside the origin alone.
func BenchmarkHeavy(b *testing.B) {
	for _, of := range []struct {
		heavy   int
		segment time.Duration
	}{{4, 4 * time.Second}, {8, 4 * time.Second}, {13, 2 * time.Second}} {
		for _, live := range []bool{false, true} {
			b.Run(fmt.Sprintf("live=%v/heavy=%d/segment=%v", live, of.heavy, of.segment), func(b *testing.B) {
				for b.Loop() {
					var with, alone aired
					for trace := range uint64(2) {
						a := audience{viewers: 8, film: time.Minute, within: 30 * time.Second, seed: trace + 1, lines: fastLines, heavy: of.heavy, short: of.segment < 4*time.Second}
						c := crowd{viewers: 8, segment: of.segment, window: 12, length: time.Minute, within: 20 * time.Second, seed: trace + 1, lines: fastLines, thin: 1 / float64(of.heavy)}
						for _, to := range []*aired{&with, &alone} {
							a.alone = to == &alone
							c.alone = a.alone
							if live {
								to.add(c.play(b))
							} else {
								to.tally.add(a.play(b), 1)
							}
						}
					}
					b.ReportMetric(with.offload/2, "offload_ratio")
					b.ReportMetric(with.saved/2, "egress_saved_ratio")
					b.ReportMetric((with.lag-alone.lag)/2, "lag_added_seconds")
					b.ReportMetric((with.stall-alone.stall)/2, "stall_added_ratio")
					b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
					b.ReportMetric(with.startup/alone.startup, "startup_vs_origin_only")
				}
			})
		}
	}
}
