// Package partsbench is `leeway-lab bench parts`: audiences of a low-latency live stream that push its parts to each other, in virtual
// time, beside the origin alone on the same traces (docs/experiments/parts.md). Its figures do not depend on the machine.
package partsbench

import (
	"context"
	"fmt"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/partsim"
)

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "parts",
	About: "Parts of a low-latency live stream between viewers, in virtual time; each run is another trace.",
	Cases: cases(),
}

// figures of a case, beside the origin alone on the same trace.
func figures(share float64) []bench.Figure {
	goal := func(s string) string {
		if share == 0 {
			return ""
		}
		return s
	}
	least := ""
	if share > 0 {
		least = fmt.Sprintf(">= %.2f", share)
	}
	return []bench.Figure{
		{Name: "part_offload_ratio", Goal: least},
		{Name: "seed_ratio"},
		{Name: "egress_saved_ratio"},
		{Name: "lag_added_seconds", Unit: "s", Goal: goal("<= 0.15"), Every: true},
		{Name: "stalls_added", Goal: goal("<= 0"), Every: true},
		{Name: "stall_added_ratio", Goal: goal("<= 0.0001"), Every: true}, // a frame in ten minutes
		{Name: "startup_added_seconds", Unit: "s"},
		{Name: "certificate_lag_p99_seconds", Unit: "s", Goal: goal("<= 0.1"), Every: true},
		{Name: "part_delay_added_p50_ms", Unit: "ms"},
		{Name: "part_delay_added_p99_ms", Unit: "ms"},
		{Name: "duplicate_ratio"},
		{Name: "depth_mean"},
		{Name: "depth_max"},
		{Name: "messages_per_viewer_second"},
		{Name: "wrong_pieces_of_one_peer_max"},
	}
}

func cases() []bench.Case {
	var list []bench.Case
	for _, n := range []int{12, 30} {
		share := 0.60
		if n == 12 {
			share = 0.55
		}
		for _, segment := range []int{2, 4} {
			o := options(n, segment)
			list = append(list, one(fmt.Sprintf("%d/%ds", n, segment), "An audience on mixed lines.", share, o))
		}
	}
	for _, ms := range []int64{200, 333, 1000} {
		for _, lines := range []string{"mixed", "thin"} {
			o := options(12, 2)
			o.Part, o.Segment, o.Lines = ms*1000, int(2000/ms), partsim.Lines[lines]
			list = append(list, one(fmt.Sprintf("12/2s/%dms/%s", ms, lines), "Parts of another length.", 0.55, o))
		}
	}
	for _, trouble := range partsim.Troubles() {
		for _, n := range []int{12, 30} {
			o := options(n, 2)
			o.Trouble = trouble
			list = append(list, one(fmt.Sprintf("trouble/%s/%d", trouble.Name, n), trouble.About, trouble.Share, o))
		}
	}
	for _, other := range partsim.Others() {
		for _, lines := range []string{"mixed", "thin"} {
			o := other.Options
			o.Viewers, o.Segment, o.Lines = 30, 4, partsim.Lines[lines]
			c := one("way/"+other.Name+"/"+lines, other.About, 0, o)
			c.Extra = true
			list = append(list, c)
		}
	}
	return list
}

// options are those of what was chosen.
func options(viewers, seconds int) partsim.Options {
	o := partsim.Chosen
	o.Viewers, o.Segment, o.Lines = viewers, 2*seconds, partsim.Lines["mixed"]
	return o
}

func one(name, about string, share float64, o partsim.Options) bench.Case {
	return bench.Case{Name: name, About: about, Figures: figures(share), Run: func(_ context.Context, r *bench.Run) (bench.Sample, error) {
		o := o
		o.Trace = uint64(r.Number) + 1
		with := partsim.Play(o)
		o.Way = partsim.Alone
		alone := partsim.Play(o)
		return bench.Sample{Values: map[string]float64{
			"part_offload_ratio":           with.Peers,
			"seed_ratio":                   with.Seed,
			"egress_saved_ratio":           with.Saved,
			"lag_added_seconds":            with.Lag - alone.Lag,
			"stalls_added":                 float64(with.Stalls - alone.Stalls),
			"stall_added_ratio":            with.Stalled - alone.Stalled,
			"startup_added_seconds":        with.Startup - alone.Startup,
			"certificate_lag_p99_seconds":  with.Digest99 / 1000,
			"part_delay_added_p50_ms":      with.Delay50 - alone.Delay50,
			"part_delay_added_p99_ms":      with.Delay99 - alone.Delay99,
			"duplicate_ratio":              with.Twice,
			"depth_mean":                   with.Depth,
			"depth_max":                    float64(with.Deepest),
			"messages_per_viewer_second":   with.Messages,
			"wrong_pieces_of_one_peer_max": float64(with.WorstBad),
		}}, nil
	}}
}
