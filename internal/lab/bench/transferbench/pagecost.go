package transferbench

import (
	"context"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// pageCosts are what a viewer's page spends on its links: one page takes and gives at once, behind the line of a home. No player
// is on it, so that what its thread does is the library's own.
func pageCosts() []bench.Case {
	var list []bench.Case
	for _, m := range []struct {
		down, up int64
		busy     string
	}{{20, 5, ""}, {5, 5, "<= 0.05"}} {
		over := path{
			name: fmt.Sprintf("page/%d-%dmbit", m.down, m.up), rate: m.up * mega, down: m.down * mega, delay: 20 * time.Millisecond, peers: 1,
		}
		list = append(list, bench.Case{
			Name: over.name, Extra: true, Needs: demopage.MissingEnd,
			About: fmt.Sprintf("A page in Chromium that takes %d and gives %d Mbit/s over one link, as viewers do: its thread.", m.down, m.up),
			Figures: []bench.Figure{
				{Name: "goodput_down", Unit: "Mbit/s"}, {Name: "goodput_up", Unit: "Mbit/s"},
				{Name: "longest_task", Unit: "ms", Goal: "<= 50"}, {Name: "thread_busy", Goal: m.busy},
			},
			Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) { return over.cost(ctx, r) },
		})
	}
	return list
}

// cost measures the page behind the line, which is the sender among the two ends.
func (p path) cost(ctx context.Context, r *bench.Run) (bench.Sample, error) {
	l := ours()
	l.kind, l.both, l.warm, l.run = kindPageLaw, true, laneWarm, laneRun
	o, void, err := p.move(ctx, r, l)
	if err != nil {
		return bench.Sample{}, err
	}
	r.Logf("  %s", o.busiest())
	return bench.Sample{Void: void, Values: pageCost(o.sent, o.got)}, nil
}

// pageCost has the figures of a page that sent and took, and of the other end. A browser notes no task below 50 ms: then the longest is 0.
func pageCost(page, other report) map[string]float64 {
	return map[string]float64{
		"goodput_down": float64(page.Bytes) * 8 / mega / page.Seconds, "goodput_up": float64(other.Bytes) * 8 / mega / other.Seconds,
		"longest_task": page.Task, "thread_busy": page.Threads[pageThread] / page.Seconds,
	}
}
