package viewer

import (
	"testing"
	"time"
)

// otherLines are access lines on which nothing of the controller was chosen.
var otherLines = []homes{
	{"4/0.6", 0.3, access{up: 75_000, down: 500_000, delay: 25 * time.Millisecond}},
	{"16/2.5", 0.4, access{up: 312_500, down: 2_000_000, delay: 20 * time.Millisecond}},
	{"50/10", 0.3, access{up: 1_250_000, down: 6_250_000, delay: 6 * time.Millisecond}},
}

// BenchmarkAudienceElsewhere plays viewers on other lines, five traces of each kind without prefetch
// (docs/experiments/ablation-transport.md).
func BenchmarkAudienceElsewhere(b *testing.B) {
	for _, c := range []struct {
		name string
		audience
	}{
		{"ten", audience{viewers: 10, film: 100 * time.Second, within: 40 * time.Second, lines: otherLines}},
		{"seven-thin-seed", audience{viewers: 7, film: 100 * time.Second, within: 15 * time.Second, lines: otherLines, thin: 1e6}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				const traces = 5
				var sum tally
				for seed := range uint64(traces) {
					a := c.audience
					a.seed = seed + 21
					got := a.play(b)
					b.Logf("trace %d: %+v", seed, got)
					sum.add(got, traces)
				}
				b.ReportMetric(sum.offload, "offload")
				b.ReportMetric(sum.duplicates, "duplicates")
				b.ReportMetric(sum.requests, "requests")
				b.ReportMetric(sum.queue, "uplink-ms-p95")
				b.ReportMetric(float64(sum.stalls), "stalls")
			}
		})
	}
}
