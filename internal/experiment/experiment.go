// Package experiment judges whether viewers with peers are worse off than the control group, which the origin alone serves
// (spec/experiment.md).
//
// A viewer is one observation: once a time after it joined has passed, what it saw is sorted into a level of each [Test], and
// counted by variant. Counts are all that the judgment needs, so that those of several trackers are added up. [Evidence] is
// the logarithm of an e-value: with a true assignment by lot and no harm, the chance that it ever reaches [Threshold] is at
// most [Alpha], however often one looks.
package experiment

import (
	"math"
	"time"
)

// Test is one way in which peer delivery may hurt.
type Test int

// The tests, in the order of [Names].
const (
	Stall   Test = iota // share of the time stalled
	Startup             // delay until the first picture
	Failure             // no picture at all
	Tests               // how many there are
)

// Names of the tests, as metrics and messages have them.
var Names = [Tests]string{"stall", "startup", "failure"}

// Variant is the group that a viewer was drawn into.
type Variant int

// The variants, in the order of metric.Variants.
const (
	Peer Variant = iota
	Control
	Variants
)

// Constants of spec/experiment.md; their sources are in docs/experiments/control-group.md.
const (
	// Horizon is how long after its join a viewer is watched.
	Horizon = 5 * time.Minute
	// Levels of a test: 0 is without harm, the last as bad as anything counts.
	Levels = 11
	// Alpha bounds the chance of a false alarm in one window of one site.
	Alpha = 0.001

	stallStep   = 1   // percent of the time, a level
	startupStep = 500 // ms, a level
)

// Windows are the stretches of time over which evidence is gathered: each begins with none.
var Windows = [...]time.Duration{24 * time.Hour, 7 * 24 * time.Hour}

// margins are the harm that is let pass, in tenths of levels ÷ 10.
var margins = [Tests]float64{Stall: 0.01, Startup: 0.01, Failure: 0.005}

// Bets are mixed over how much is staked and around which mean.
var (
	stakes = [...]float64{15. / 16, 1. / 2, 1. / 4}
	means  = [...]float64{0.05, 0.15, 0.4}
)

// Threshold is what Evidence has to reach: each of the tests may spend its part of Alpha.
var Threshold = math.Log(float64(Tests) / Alpha)

// Seen is what a viewer reported while it was watched.
type Seen struct {
	PlayedMs, StalledMs int64
	StartupMs           int64 // 0: no picture yet
}

// Levels sorts what a viewer saw; -1 where it says nothing of a test.
func (s Seen) Levels() (l [Tests]int) {
	began := s.StartupMs > 0 || s.PlayedMs > 0
	l = [Tests]int{-1, -1, Levels - 1}
	if began {
		l[Failure] = 0
	}
	if s.StartupMs > 0 {
		l[Startup] = level(s.StartupMs, startupStep)
	}
	if all := s.PlayedMs + s.StalledMs; s.PlayedMs > 0 && all > 0 {
		l[Stall] = level(100*s.StalledMs, stallStep*all)
	}
	return l
}

// level is a ÷ step, rounded up, at most the last.
func level(a, step int64) int { return int(min((a+step-1)/step, Levels-1)) }

// Counts are viewers by test, variant and level.
type Counts [Tests][Variants][Levels]int64

// Observe counts one viewer.
func (c *Counts) Observe(v Variant, s Seen) {
	for test, l := range s.Levels() {
		if l >= 0 {
			c[test][v][l]++
		}
	}
}

// Add adds other viewers.
func (c *Counts) Add(o *Counts) {
	for test := range c {
		for v := range c[test] {
			for l := range c[test][v] {
				c[test][v][l] += o[test][v][l]
			}
		}
	}
}

// Viewers is how many were observed: each counts in Failure once.
func (c *Counts) Viewers() (n int64) {
	for _, of := range c[Failure] {
		for _, m := range of {
			n += m
		}
	}
	return n
}

// Evidence against "no harm", of each test: log of an e-value. permille of the viewers are drawn into the control group; with
// one group empty there is none.
func (c *Counts) Evidence(permille int) (e [Tests]float64) {
	if permille <= 0 || permille >= 1000 {
		return e
	}
	p := float64(permille) / 1000
	for test := range e {
		var logs [len(stakes) * len(means)]float64
		for i, stake := range stakes {
			for j, mean := range means {
				logs[i*len(means)+j] = wealth(&c[test], p, stake, mean, margins[test])
			}
		}
		e[test] = logMean(logs[:])
	}
	return e
}

// wealth is the logarithm of what has become of 1 that bet on harm, viewer after viewer.
func wealth(c *[Variants][Levels]int64, p, stake, mean, margin float64) (log float64) {
	stake *= min(p, 1-p)
	for l := range Levels {
		score := float64(l)/(Levels-1) - mean
		if n := c[Peer][l]; n > 0 {
			log += float64(n) * math.Log1p(stake*(score/(1-p)-margin))
		}
		if n := c[Control][l]; n > 0 {
			log += float64(n) * math.Log1p(stake*(-score/p-margin))
		}
	}
	return log
}

// logMean is the logarithm of the mean of numbers given as logarithms.
func logMean(logs []float64) float64 {
	most := math.Inf(-1)
	for _, l := range logs {
		most = max(most, l)
	}
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - most)
	}
	return most + math.Log(sum/float64(len(logs)))
}
