package swarmbench

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestOutageIsAboutNewcomersAndTheirWaits(t *testing.T) {
	o := outage{kind: "500", from: time.Minute, length: time.Minute}
	at := func(came time.Duration, startup, stall int64) Outcome {
		return Outcome{Plan: Plan{Arrive: came}, Stats: signal.Stats{StartupMs: startup, StallMs: stall, Interval: 50_000}}
	}
	with := Swarm{Outcomes: []Outcome{at(0, 500, 0), at(time.Minute, 2000, 0), at(90*time.Second, 4000, 1500), at(2*time.Minute, 700, 0)}}
	// The second newcomer never had a picture.
	without := Swarm{Outcomes: []Outcome{at(0, 500, 30_000), at(time.Minute, 30_000, 2000), at(90*time.Second, 0, 0), at(2*time.Minute, 700, 0)}}
	got := o.compare(with, without)
	for name, want := range map[string]float64{
		"came_in_outage": 2, "startup_in_outage": 3, "startup_in_outage_origin_only": 40, "startup_in_outage_vs_origin_only": 0.075,
		"stalled_viewers": 1, "stalled_viewers_origin_only": 2, "longest_wait": 1.5, "longest_wait_origin_only": 30,
		"waited": 8.7 / 4, "waited_origin_only": 113.2 / 4, "waited_vs_origin_only": 8.7 / 113.2,
	} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	declared := map[string]bool{}
	for _, f := range o.declared(outlived) {
		declared[f.Name] = true
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(declared))) {
		t.Errorf("measured %v, declared %v", names, declared)
	}
	if got := o.compare(Swarm{}, Swarm{}); got["startup_in_outage_vs_origin_only"] != 0 || got["waited_vs_origin_only"] != 0 {
		t.Error("no viewer came, and yet there is a ratio")
	}
}
