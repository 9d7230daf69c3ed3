package loadbench

import (
	"testing"

	"github.com/leeway-video/leeway/internal/lab/load"
)

// TestMediaFiguresAreOfTheHold: processors and memory while all clients were there.
func TestMediaFiguresAreOfTheHold(t *testing.T) {
	r := &load.Result{Figures: map[string]float64{"peak_sessions": 100, "join_p99": 0.5, "nacks": 3}, Knee: &load.Knee{Clients: 90}}
	for second := 0.5; second < 140; second++ {
		s := load.Sample{Second: second, ArmCPU: 9, PeerCPU: 1, ArmRSS: 1 << 40}
		if second > mediaUp.Seconds() && second < (mediaUp+mediaHold).Seconds() {
			s.ArmCPU, s.PeerCPU, s.ArmRSS, s.PeerRSS = 0.5, 0.8, 1<<20, 1<<21
		}
		r.Samples = append(r.Samples, s)
	}
	got := mediaFigures(r)
	for name, want := range map[string]float64{
		"clients": 100, "join_p99": 0.5, "nacks": 3, "knee": 90, "arm_processors": 0.5, "tested_processors": 0.8, "arm_cpu_vs_tested": 0.625, "arm_rss": 1 << 20, "tested_rss": 1 << 21,
	} {
		if v, ok := got[name]; !ok || v < want-1e-9 || v > want+1e-9 {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if v := mediaFigures(&load.Result{}); len(v) != 3 {
		t.Errorf("a run without samples has %v", v)
	}
	if why := mediaVoid(&load.Result{Verdict: load.Refused, Reasons: []string{"busy"}}); why != "busy" {
		t.Errorf("%q", why)
	}
}

// TestExperimentsAreScenarios: each is one that a file could be.
func TestExperimentsAreScenarios(t *testing.T) {
	for _, s := range jattack {
		if bad := s.Check(); len(bad) > 0 {
			t.Errorf("%s: %v", s.Name, bad)
		}
		if mediaCase(s).Run == nil {
			t.Errorf("%s cannot be run", s.Name)
		}
	}
}
