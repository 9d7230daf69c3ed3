package swarmbench

import (
	"math"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

func outcome(origin, seed, peer, startup, stall, played, bits int64) Outcome {
	return Outcome{Stats: signal.Stats{
		Bytes:     map[string]int64{"origin": origin, "seed": seed, "peer": peer},
		Reasons:   map[string]int64{"no-holder": 2, "urgent": 1},
		StartupMs: startup, StallMs: stall, Stalls: min(stall, 1), PlayedMs: played, PlayedBits: bits, DuplicateBytes: 10,
	}}
}

func TestCompare(t *testing.T) {
	with := Swarm{
		Outcomes: []Outcome{outcome(100, 100, 300, 800, 0, 10_000, 10_000_000), outcome(0, 0, 500, 1200, 100, 9_900, 20_000_000)},
		Served:   Served{OriginToViewers: 100, OriginToSeeds: 200, Seed: 100, Signaling: 7},
	}
	without := Swarm{
		Outcomes: []Outcome{outcome(500, 0, 0, 1000, 0, 10_000, 10_000_000), outcome(500, 0, 0, 1000, 0, 10_000, 10_000_000)},
		Served:   Served{OriginToViewers: 1000},
	}
	got := compare(with, without)
	for name, want := range map[string]float64{
		"offload_ratio": 0.8, "egress_saved_ratio": 0.6, "origin_bytes": 300, "viewer_bytes": 1000,
		"startup_delay": 1, "startup_delay_vs_origin_only": 1,
		"stalls": 1, "stall_ratio": 0.005, "stall_ratio_vs_origin_only": 51,
		"mean_bitrate": 30_000.0 / 19_900, "mean_bitrate_origin_only": 1,
		"duplicate_ratio": 0.02, "not_from_peer_no_holder": 4, "not_from_peer_urgent": 2, "not_from_peer_no_cert": 0,
	} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestEveryFigureIsDeclared: the frame refuses a run with a figure that its case does not name.
func TestEveryFigureIsDeclared(t *testing.T) {
	names := map[string]bool{}
	for _, f := range declared(nil) {
		if names[f.Name] {
			t.Errorf("%s is declared twice", f.Name)
		}
		names[f.Name] = true
	}
	one := Swarm{Outcomes: []Outcome{outcome(1, 1, 1, 1, 1, 1, 1)}, UplinkWaits: []float64{1}, HeadlessWaits: []float64{1}}
	got := compare(one, one)
	for name := range got {
		if !names[name] {
			t.Errorf("%s is not declared", name)
		}
	}
	for name := range names {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is declared and not measured", name)
		}
	}
}

func TestARunWithoutPlaybackIsNoDivision(t *testing.T) {
	for name, v := range compare(Swarm{}, Swarm{}) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%s is %v", name, v)
		}
	}
}

// TestViewersWithoutAPictureHaveFailed: they neither wait nor stall, so that a swarm of them alone would be quicker than any other.
func TestViewersWithoutAPictureHaveFailed(t *testing.T) {
	seen, never := outcome(1, 1, 1, 1000, 0, 1, 1), outcome(0, 0, 0, 0, 0, 0, 0)
	got := compare(Swarm{Outcomes: []Outcome{never, never}}, Swarm{Outcomes: []Outcome{seen, never}})
	if _, is := got["startup_delay_vs_origin_only"]; is || got["failed_viewers"] != 2 || got["failed_viewers_origin_only"] != 1 {
		t.Errorf("%v", got)
	}
}
