package loadbench

import (
	"io"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// TestKneeSampleIsOfTheTimeBeforeIt: processors are those before the knee, and a run without one is void if the arms were the bottleneck.
func TestKneeSampleIsOfTheTimeBeforeIt(t *testing.T) {
	r := &bench.Run{Log: io.Discard}
	result := &load.Result{
		Figures: map[string]float64{"peak_sessions": 2000}, Verdict: load.Refused, Reasons: []string{"busy"},
		Knee: &load.Knee{Clients: 800, Second: 80},
	}
	for second := range 200 {
		s := load.Sample{Second: float64(second), ArmCPU: 9, PeerCPU: 9}
		if second >= 80-kneeSpan && second < 80 {
			s.ArmCPU, s.PeerCPU = 0.5, 1
		}
		result.Samples = append(result.Samples, s)
	}
	got := kneeSample(r, result)
	if v := got.Values; got.Void != "" || v["knee"] != 800 || v["arm_processors"] != 0.5 || v["tested_processors"] != 1 || v["arm_cpu_vs_tested"] != 0.5 {
		t.Errorf("%+v", got)
	}
	result.Knee = nil
	if got := kneeSample(r, result); got.Void != "busy" || got.Values["knee"] != 0 {
		t.Errorf("without a knee: %+v", got)
	}
	s := knee
	if bad := s.Check(); len(bad) > 0 || s.Peer.Processors != 1 {
		t.Errorf("%v", bad)
	}
}
