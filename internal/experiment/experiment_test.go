package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	Levels []struct {
		PlayedMs  int64      `json:"played_ms"`
		StalledMs int64      `json:"stalled_ms"`
		StartupMs int64      `json:"startup_ms"`
		Levels    [Tests]int `json:"levels"`
	} `json:"levels"`
	Evidence []struct {
		About     string       `json:"about"`
		Permille  int          `json:"permille"`
		Counts    Counts       `json:"counts"`
		Millinats [Tests]int64 `json:"evidence_millinats"`
	} `json:"evidence"`
}

// TestVectors: spec/vectors/experiment.json was computed with 40 decimal digits, by other code.
func TestVectors(t *testing.T) {
	v := spec.Vectors[vectors](t, "experiment.json")
	for i, c := range v.Levels {
		if got := (Seen{c.PlayedMs, c.StalledMs, c.StartupMs}).Levels(); got != c.Levels {
			t.Errorf("viewer %d: %v, want %v", i, got, c.Levels)
		}
	}
	for _, c := range v.Evidence {
		for test, e := range c.Counts.Evidence(c.Permille) {
			if got := int64(math.RoundToEven(1000 * e)); got != c.Millinats[test] {
				t.Errorf("%s: %s: %d, want %d", c.About, Names[test], got, c.Millinats[test])
			}
		}
	}
}

// TestABetGainsNothingByTheLot: whatever a viewer sees, what a bet is worth after the lot has put it into a group is at most what it
// was before, on average, and never negative. That is all that the bound on false alarms needs.
func TestABetGainsNothingByTheLot(t *testing.T) {
	for _, permille := range []int{1, 10, 30, 200, 500, 800, 999} {
		p := float64(permille) / 1000
		for _, margin := range margins {
			for _, stake := range stakes {
				for _, mean := range means {
					for l := range Levels {
						var peer, control [Variants][Levels]int64
						peer[Peer][l], control[Control][l] = 1, 1
						with, without := math.Exp(wealth(&peer, p, stake, mean, margin)), math.Exp(wealth(&control, p, stake, mean, margin))
						if worth := (1-p)*with + p*without; !(worth <= 1+1e-12) || !(with > 0) || !(without > 0) {
							t.Errorf("%d ‰, stake %v, mean %v, level %d: %v becomes %v or %v", permille, stake, mean, l, worth, with, without)
						}
					}
				}
			}
		}
	}
}

// crowd draws viewers. quality of a moment, 0–1, moves all of them: nights are worse than mornings.
type crowd struct {
	stall, startup, failure float64 // how much worse those with peers are off
}

func (c crowd) viewer(r *rand.Rand, quality float64, v Variant) Seen {
	var worse crowd
	if v == Peer {
		worse = c
	}
	// One session in a hundred ends before it joins a swarm, whatever its group: it has no picture.
	if r.Float64() < 0.01+0.01*(1-quality)+worse.failure {
		return Seen{}
	}
	s := Seen{PlayedMs: int64(r.ExpFloat64() * 180_000), StartupMs: int64(300 + 400*(1-quality) + 1000*worse.startup + 500*r.ExpFloat64())}
	s.PlayedMs = min(s.PlayedMs, 300_000)
	if r.Float64() < 0.02+0.1*(1-quality) { // few stall, and some of those for long
		s.StalledMs = int64(500 * math.Pow(r.Float64(), -0.8))
	}
	if r.Float64() < worse.stall {
		s.StalledMs += s.PlayedMs / 20
	}
	return s
}

// strongest plays a window of so many viewers, looks after every few of them, and returns the most evidence that there ever was,
// and after how many viewers there was enough to act.
func (c crowd) strongest(r *rand.Rand, viewers, permille int) (most float64, acted int) {
	var counts Counts
	most = math.Inf(-1)
	for n := range viewers {
		v := Peer
		if r.IntN(1000) < permille {
			v = Control
		}
		quality := 0.5 + 0.5*math.Sin(2*math.Pi*float64(n)/float64(viewers))
		counts.Observe(v, c.viewer(r, quality, v))
		if n%250 != 249 {
			continue
		}
		for _, e := range counts.Evidence(permille) {
			most = max(most, e)
		}
		if most >= Threshold && acted == 0 {
			acted = n + 1
		}
	}
	return most, acted
}

// TestFalseAlarms: without harm the evidence ever reaches ln(3/0.05) in at most one of twenty windows, and what switches a site
// off in none of them.
func TestFalseAlarms(t *testing.T) {
	const windows, alpha = 200, 0.05
	for name, c := range map[string]struct {
		crowd
		permille int
	}{
		"no difference":              {crowd{}, 30},
		"no difference, large group": {crowd{}, 300},
		"peers are better":           {crowd{startup: -0.1, failure: -0.005}, 30},
		"less harm than the margin":  {crowd{startup: 0.03, failure: 0.002}, 30},
	} {
		alarms := 0
		for w := range uint64(windows) {
			most, acted := c.strongest(rand.New(rand.NewPCG(w, uint64(c.permille))), 10_000, c.permille)
			if most >= math.Log(float64(Tests)/alpha) {
				alarms++
			}
			if acted > 0 {
				t.Errorf("%s: window %d was switched off after %d viewers", name, w, acted)
			}
		}
		t.Logf("%s: %d of %d windows reach what one of twenty may", name, alarms, windows)
		if alarms > alpha*windows {
			t.Errorf("%s: %d of %d windows", name, alarms, windows)
		}
	}
}

// TestHarmIsFound in one day of a site with ten thousand observed viewers, three in a hundred of them in the control group.
func TestHarmIsFound(t *testing.T) {
	const windows = 50
	for name, c := range map[string]crowd{
		"one viewer in five stalls for a twentieth of the time": {stall: 0.2},
		"half a second later":               {startup: 0.5},
		"one viewer in twelve sees nothing": {failure: 1. / 12},
	} {
		found, sum := 0, 0
		for w := range uint64(windows) {
			if _, acted := c.strongest(rand.New(rand.NewPCG(w, 1)), 10_000, 30); acted > 0 {
				found++
				sum += acted
			}
		}
		t.Logf("%s: found in %d of %d windows, after %d viewers on average", name, found, windows, sum/max(1, found))
		if found < windows*9/10 {
			t.Errorf("%s: found in %d of %d windows", name, found, windows)
		}
	}
}

// TestLiesOfAFewSubnetsAreNotEnough: a subnet is observed once a window, and says the worst of peers and the best of the control
// group. However the lot falls, it takes more of them than these.
func TestLiesOfAFewSubnetsAreNotEnough(t *testing.T) {
	for permille, subnets := range map[int]int{30: 31, 100: 32, 500: 15} {
		enough := false
		for control := range subnets + 1 {
			if strongest(permille, subnets-control, control) >= Threshold {
				t.Errorf("%d permille: %d subnets switch a site off when %d of them are in the control group", permille, subnets, control)
			}
		}
		for control := range subnets + 2 {
			enough = enough || strongest(permille, subnets+1-control, control) >= Threshold
		}
		if !enough {
			t.Errorf("%d permille: the bound is above %d subnets", permille, subnets)
		}
	}
}

// strongest is the evidence of so many viewers that say the worst of peers and the best of the control group.
func strongest(permille, peers, control int) float64 {
	var c Counts
	for range peers {
		c.Observe(Peer, Seen{PlayedMs: 1, StalledMs: 1000, StartupMs: 120_000})
	}
	for range control {
		c.Observe(Control, Seen{PlayedMs: 1000, StartupMs: 1})
	}
	evidence := c.Evidence(permille)
	return slices.Max(evidence[:])
}

func TestCountsOfTrackersAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var all, one, two Counts
	for n := range 1000 {
		v, s := Variant(r.IntN(2)), crowd{}.viewer(r, 0.5, Peer)
		all.Observe(v, s)
		if n%3 == 0 {
			one.Observe(v, s)
		} else {
			two.Observe(v, s)
		}
	}
	one.Add(&two)
	if one != all || all.Viewers() != 1000 {
		t.Errorf("%v of %v, %d viewers", one, all, all.Viewers())
	}
}
