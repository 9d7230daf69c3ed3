package swarmbench

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestEachWayHasItsBrowsers(t *testing.T) {
	s := scenario{viewers: 4, kinds: true, watch: time.Minute}
	plans := Trace(1, s.viewers, filmLength, 0, 0)
	windows(plans)
	for way, want := range map[string]string{
		withLeeway: "cccc", originOnly: "cccc", withLeewayFirefox: "ffff", originOnlyFirefox: "ffff", withLeewayMixed: "cfcf",
	} {
		if !slices.Contains(s.ways(), way) {
			t.Errorf("not played: %s", way)
		}
		marks := ""
		for i, p := range s.cast(way, plans) {
			marks += p.mark()
			if p.Line != plans[i].Line || p.Arrive != plans[i].Arrive || !p.Browser {
				t.Errorf("%s, viewer %d: %+v, want what is planned: %+v", way, i+1, p, plans[i])
			}
		}
		if marks != want {
			t.Errorf("%s: %s, want %s", way, marks, want)
		}
	}
	if cast := (scenario{}).cast(withLeewayFirefox, plans); slices.ContainsFunc(cast, func(p Plan) bool { return p.Firefox }) {
		t.Error("another case is played in Firefox")
	}
}

// pages is a swarm of two viewers that had so much from peers, and whose startup and stalls took so long.
func pages(peer int64, startups [2]int64, stallMs int64) (s Swarm) {
	for _, startup := range startups {
		s.Outcomes = append(s.Outcomes, Outcome{Stats: signal.Stats{
			Bytes: map[string]int64{"peer": peer, "origin": 100 - peer}, StartupMs: startup, PlayedMs: 1000 - stallMs, StallMs: stallMs, PlayedBits: 1000,
		}})
	}
	return s
}

// TestWhatABrowserTakesByItselfIsNoLoss: Firefox takes twice as long with Leeway and without, and stalls as much; it loses what it has
// less from peers.
func TestWhatABrowserTakesByItselfIsNoLoss(t *testing.T) {
	got := compareKinds([]Swarm{
		pages(60, [2]int64{500, 500}, 0), pages(0, [2]int64{500, 500}, 0),
		pages(50, [2]int64{1000, 1000}, 100), pages(0, [2]int64{1000, 1000}, 100),
		pages(58, [2]int64{500, 1150}, 100),
	})
	for name, want := range map[string]float64{
		"offload_ratio_firefox": 0.5, "startup_delay_firefox": 1, "startup_delay_vs_origin_only_firefox": 1, "stall_ratio_firefox": 0.1,
		"offload_lost_firefox": 0.1, "startup_lost_firefox": 0, "stalls_lost_firefox": 0,
		// Alone the first waits 0.5 s in Chromium and does not stall; the second waits 1 s in Firefox and stalls for a tenth.
		"startup_delay_origin_only_mixed": 0.75, "stall_ratio_origin_only_mixed": 0.05,
		"offload_lost_mixed": 0.02, "startup_lost_mixed": 0.1, "stalls_lost_mixed": 0.05,
	} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	declared := declaredKinds(alike)
	for name := range got {
		if !slices.ContainsFunc(declared, func(f bench.Figure) bool { return f.Name == name }) {
			t.Errorf("%s is not declared", name)
		}
	}
	c := scenario{kinds: true, goals: alike}.of("any", "")
	for name := range alike {
		if !slices.ContainsFunc(c.Figures, func(f bench.Figure) bool { return f.Name == name && f.Goal != "" }) {
			t.Errorf("%s is no figure", name)
		}
	}
	if c.Needs == nil {
		t.Error("nothing is needed")
	}
}
