package netstat

import (
	"math"
	"slices"
)

const (
	// MovingAverage is over how many intervals a test of responsiveness looks (draft-ietf-ippm-responsiveness, MAD).
	MovingAverage = 4
	// Tolerance is what the values of those may spread, by the latest (SDT).
	Tolerance = 0.05
)

// Probes are the times of requests under load, in microseconds (draft-ietf-ippm-responsiveness).
type Probes struct {
	TCP    []int64 // handshakes of connections of their own
	TLS    []int64 // a round trip of theirs; empty without TLS
	HTTP   []int64 // requests on those
	Loaded []int64 // requests on the connections that make the load, or their round-trip times
}

// TrimmedMean is the mean of the values without the largest 5 %. ok is false of none.
func TrimmedMean(values []int64) (mean float64, ok bool) {
	if len(values) == 0 {
		return 0, false
	}
	ascending := slices.Sorted(slices.Values(values))
	ascending = ascending[:(95*len(ascending)+99)/100]
	sum := int64(0)
	for _, v := range ascending {
		sum += v
	}
	return float64(sum) / float64(len(ascending)), true
}

// RPM is the responsiveness in round trips per minute. ok is false where a kind of probe is missing.
func (p Probes) RPM() (rpm float64, ok bool) {
	tcp, a := TrimmedMean(p.TCP)
	http, b := TrimmedMean(p.HTTP)
	loaded, c := TrimmedMean(p.Loaded)
	foreign := (tcp + http) / 2
	if tls, d := TrimmedMean(p.TLS); d {
		foreign = (tcp + tls + http) / 3
	}
	if !a || !b || !c || foreign <= 0 || loaded <= 0 {
		return 0, false
	}
	return (60e6/foreign + 60e6/loaded) / 2, true
}

// Stable says whether the last values, one of each interval, have come to rest: their standard deviation is below 5 % of the latest.
// Fewer than MovingAverage have not.
func Stable(values []float64) bool {
	if len(values) < MovingAverage {
		return false
	}
	last := values[len(values)-MovingAverage:]
	return Spread(last) < Tolerance*last[MovingAverage-1]
}

// Spread is the standard deviation of values, of which there is one at least.
func Spread(values []float64) float64 {
	mean, squares, n := 0.0, 0.0, float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean) / n
	}
	return math.Sqrt(squares)
}

// Confidence is how far a figure of responsiveness has come to rest, in the draft's words.
type Confidence string

// The grades.
const (
	Low    Confidence = "low"    // fewer figures than it takes to tell
	Medium Confidence = "medium" // they have not come to rest
	High   Confidence = "high"
)

// ConfidenceOf grades the figures of the intervals.
func ConfidenceOf(values []float64) Confidence {
	switch {
	case len(values) < MovingAverage:
		return Low
	case !Stable(values):
		return Medium
	}
	return High
}
