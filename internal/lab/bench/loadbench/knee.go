package loadbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// knee is the third experiment of Jattack. The server has one processor, so that it is the bottleneck on a machine of two, and not the arm.
var knee = func() load.Scenario {
	s := media("j3", "One publisher, and more and more viewers of its video through a forwarding server with one processor, until each has less.", load.OneToMany, 1, 2000)
	s.Peer.Processors = 1
	s.Groups[0].RampUp, s.Groups[0].Hold = 200*time.Second, 10*time.Second
	return s
}()

// kneeSpan is how many seconds before the knee the processors are those of.
const kneeSpan = 10

// kneeCase is its case.
func kneeCase() bench.Case {
	return bench.Case{
		Name: "J3", Extra: true,
		About: fmt.Sprintf("%s Video of %d kbit/s; at most %d clients, that come over %s.", knee.About, videoRate/1000, knee.Groups[0].Clients, knee.Groups[0].RampUp),
		Figures: []bench.Figure{
			{Name: "knee", Unit: "clients", Goal: ">= 1"},
			{Name: "arm_cpu_vs_tested", Goal: "<= 1"},
			{Name: "arm_processors"}, {Name: "tested_processors"},
			{Name: "clients"}, {Name: "nacks"}, {Name: "packet_loss", Unit: "packets"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			result, err := runMedia(ctx, r, knee)
			if err != nil {
				return bench.Sample{}, err
			}
			return kneeSample(r, result), nil
		},
	}
}

// kneeSample is what a run of it says. What the arms spoiled after the knee spoils nothing of it.
func kneeSample(r *bench.Run, result *load.Result) bench.Sample {
	v := map[string]float64{"clients": result.Figures["peak_sessions"], "nacks": result.Figures["nacks"], "packet_loss": result.Figures["packet_loss"]}
	if result.Knee == nil {
		v["knee"] = 0
		return bench.Sample{Values: v, Void: mediaVoid(result)}
	}
	r.Logf("  the knee: %d clients after %.0f s: %s went from %.4g to %.4g", result.Knee.Clients, result.Knee.Second, result.Knee.Measure, result.Knee.Before, result.Knee.Value)
	v["knee"] = float64(result.Knee.Clients)
	addProcessors(v, slices.DeleteFunc(slices.Clone(result.Samples), func(s load.Sample) bool {
		return s.Second < result.Knee.Second-kneeSpan || s.Second >= result.Knee.Second
	}))
	return bench.Sample{Values: v}
}
