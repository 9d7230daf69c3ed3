package viewer

import (
	"testing"
	"time"
)

// signs has the film signed as it is packaged, beside a seed.
func (s *scene) signs(time.Duration) {
	s.film.certify(worldBegin.Add(-time.Hour))
	s.tracker.keys = append(s.tracker.keys, packagerVerifyKey())
}

// turns are six orders of six windows, each begun by the next one of the order before, and two more.
func turns() [][]int {
	first, all := []int{2, 0, 1, 1, 0, 2}, [][]int{{0, 0, 1, 1, 2, 2}, {0, 1, 2, 0, 1, 2}}
	for n := range first {
		all = append(all, append(append([]int{}, first[n:]...), first[:n]...))
	}
	return all
}

// BenchmarkThinViewers plays films that are signed as they are packaged to viewers of which some cannot send what they play. A rule for
// such a viewer is weighed by all of them (docs/experiments/few-viewers.md).
func BenchmarkThinViewers(b *testing.B) {
	for _, c := range []struct {
		name   string
		orders [][]int // of homeLines, in windows
		windows
		audience
	}{
		{name: "windows-4", orders: orders()},
		{name: "windows-4-ahead", orders: orders(), windows: windows{ahead: true}},
		{name: "windows-4-far", orders: orders(), windows: windows{far: true}},
		{name: "windows-6", orders: turns()},
		{name: "windows-2", orders: [][]int{{0, 1}, {0, 2}, {1, 0}, {2, 0}}},
		{name: "windows-4-thin", orders: [][]int{{0, 0, 0, 0}}},
		{name: "minute-4", audience: audience{viewers: 4, film: 5 * time.Minute, within: time.Minute}},
		{name: "thin-4", audience: audience{viewers: 4, film: 5 * time.Minute, within: 10 * time.Second, lines: thinLines}},
		{name: "twelve", audience: audience{viewers: 12, film: 100 * time.Second, within: 50 * time.Second}},
		{name: "twelve-20s", audience: audience{viewers: 12, film: 100 * time.Second, within: 20 * time.Second}},
		{name: "eight-thin-seed", audience: audience{viewers: 8, film: 100 * time.Second, within: 20 * time.Second, thin: 1.25e6}},
		{name: "ten-elsewhere", audience: audience{viewers: 10, film: 100 * time.Second, within: 40 * time.Second, lines: otherLines}},
		{name: "seven-thin-seed-elsewhere", audience: audience{viewers: 7, film: 100 * time.Second, within: 15 * time.Second, lines: otherLines, thin: 1e6}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				var sum tally
				for _, lines := range c.orders {
					w := c.windows
					w.signed, w.from, w.lines = true, 2, lines
					s, _ := w.play(b)
					sum.add(s.tally(), float64(len(c.orders)))
				}
				if c.orders == nil {
					const traces = 4
					for seed := range uint64(traces) {
						a := c.audience
						a.seed, a.trouble = seed+61, (*scene).signs
						sum.add(a.play(b), traces)
					}
				}
				b.ReportMetric(sum.offload, "offload")
				b.ReportMetric(sum.saved, "saved")
				b.ReportMetric(sum.requests, "requests")
				b.ReportMetric(float64(sum.stalls), "stalls")
				b.ReportMetric(sum.startup, "startup-s")
				b.ReportMetric(sum.bitrate, "Mbps")
			}
		})
	}
}
