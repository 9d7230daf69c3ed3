package swarmbench

import (
	"maps"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestAnUplinkIsLookedAtWhileItCarriesSomething(t *testing.T) {
	u := &uplink{rate: 1_000_000}
	for _, c := range []struct {
		carried uint64
		waiting int
	}{{1_000, 0}, {11_000, 12_500}, {12_000, 30_000}, {24_500, 2_500}} { // the third: idle, whatever waits
		u.look(u.at+100*time.Millisecond, c.carried, c.waiting)
	}
	if len(u.waits) != 2 || u.waits[0] != 100 || u.waits[1] != 20 {
		t.Errorf("waits of %v ms", u.waits)
	}
}

func TestPrefetchIsComparedWithTheSameTraceWithoutIt(t *testing.T) {
	swarm := func(origin, peers, ahead, lost int64) Swarm {
		return Swarm{Outcomes: []Outcome{{Stats: signal.Stats{
			Bytes: map[string]int64{"origin": origin, "peer": peers}, PrefetchedBytes: ahead, PrefetchWasted: lost, Promotions: 3,
		}}}}
	}
	without := swarm(50, 50, 0, 0)
	without.UplinkWaits = []float64{30, 10}
	got := compareAhead(swarm(20, 80, 40, 5), without)
	want := map[string]float64{
		"offload_ratio_without_prefetch": 0.5, "offload_ratio_vs_without_prefetch": 1.6, "egress_saved_ratio_without_prefetch": 0.5,
		"waste_ratio": 0.05, "prefetched_bytes": 40, "prefetch_wasted_bytes": 5, "promotions": 3,
		"stall_ratio_without_prefetch": 0, "uplink_wait_p95_without_prefetch": 30,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	for _, f := range declaredAhead(ahead) {
		if _, ok := got[f.Name]; !ok {
			t.Errorf("%s is declared and not measured", f.Name)
		}
	}
	nothing := compareAhead(Swarm{}, Swarm{})
	if _, seen := nothing["uplink_wait_p95_without_prefetch"]; len(nothing) == 0 || seen {
		t.Errorf("a run of nothing has %v", nothing)
	}
}
