package experiment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// week draws the viewers of a week, day by day, and says after how many viewers one of the windows has enough to act; 0: never. Harm begins
// after so many quiet days, and viewers are counted from then on.
func (c crowd) week(r *rand.Rand, perDay, permille, quiet int) (acted int) {
	windows := make([]Counts, len(Windows))
	began := make([]int64, len(Windows))
	for n := range 7 * perDay {
		at := time.Duration(n) * 7 * 24 * time.Hour / time.Duration(7*perDay)
		v := Peer
		if r.IntN(1000) < permille {
			v = Control
		}
		now := c
		if n < quiet*perDay {
			now = crowd{}
		}
		seen := now.viewer(r, 0.7, v)
		for i, length := range Windows {
			if number := int64(at / length); number != began[i] {
				windows[i], began[i] = Counts{}, number
			}
			windows[i].Observe(v, seen)
		}
		if n%(perDay/25) != 0 {
			continue
		}
		for i := range windows {
			if e := windows[i].Evidence(permille); slices.Max(e[:]) >= Threshold {
				return n + 1 - quiet*perDay
			}
		}
	}
	return 0
}

// BenchmarkHarmElsewhere plays weeks of sites that did not choose the bets: three sets of 4 to 20 weeks each. tools/ablation runs it with other bets, margins
// and windows (docs/experiments/ablation-schedule.md).
func BenchmarkHarmElsewhere(b *testing.B) {
	for _, c := range []struct {
		name             string
		perDay, permille int
		crowd
		quiet int // days
	}{
		{"stalls-little", 5000, 30, crowd{stall: 0.08}, 0},
		{"stalls-much", 5000, 30, crowd{stall: 0.5}, 0},
		{"later-little", 5000, 30, crowd{startup: 0.2}, 0},
		{"later-much", 5000, 30, crowd{startup: 1.5}, 0},
		{"nothing-little", 5000, 30, crowd{failure: 0.045}, 0},
		{"nothing-much", 5000, 30, crowd{failure: 0.3}, 0},
		{"stalls-late", 5000, 30, crowd{stall: 0.3}, 4},
		{"later-late", 5000, 30, crowd{startup: 0.6}, 4},
		{"small-site", 1000, 100, crowd{stall: 0.2, startup: 0.3}, 0},
		{"big-stalls", 60_000, 30, crowd{stall: 0.032}, 0},
		{"big-later", 60_000, 30, crowd{startup: 0.075}, 0},
		{"big-nothing", 60_000, 30, crowd{failure: 0.012}, 0},
		{"half-later", 2000, 500, crowd{startup: 0.08}, 0},
		{"half-nothing", 2000, 500, crowd{failure: 0.03}, 0},
		{"none", 5000, 30, crowd{}, 0},
		{"within-margins", 5000, 30, crowd{startup: 0.04, failure: 0.004}, 0},
	} {
		for set := range uint64(3) {
			b.Run(fmt.Sprintf("%s/%d", c.name, set), func(b *testing.B) {
				weeks := max(4, min(20, 100_000/c.perDay))
				for b.Loop() {
					found, sum := 0, 0
					for w := range uint64(weeks) {
						acted := c.week(rand.New(rand.NewPCG(1000*set+w, 5)), c.perDay, c.permille, c.quiet)
						if acted != 0 {
							found++
						} else {
							acted = (7 - c.quiet) * c.perDay
						}
						sum += acted
					}
					b.ReportMetric(100*float64(found)/float64(weeks), "found-%")
					b.ReportMetric(float64(sum)/float64(weeks), "viewers")
				}
			})
		}
	}
}
