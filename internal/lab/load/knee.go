package load

import (
	"fmt"
	"slices"
	"time"
)

// Knee is where what each client has becomes worse as clients come.
type Knee struct {
	Clients int64   `json:"clients"` // that were connected
	Second  float64 `json:"s"`
	Measure string  `json:"measure"`
	Value   float64 `json:"value"`  // from there on
	Before  float64 `json:"before"` // at its best
}

// kneeClients is how many there have to be: what one of a few does is no knee.
const kneeClients = 10

// kneeWindow is how many samples a measure is the mean of, so that one second is no knee.
const kneeWindow = 5

// measure is something that every client should have alike, however many there are.
type measure struct {
	name string
	of   func(Sample) float64
	// known says whether a second has it: one in which no client came has no time to connect; nil: each has.
	known func(Sample) bool
	// worse says whether a value is a knee after a best one.
	worse func(value, best float64) bool
	less  bool // less is better
}

const (
	// kneeShare is what is left of a client's bytes at a knee, kneeTimes how much longer a delay is, above a floor that people do not
	// notice.
	kneeShare  = 0.9
	kneeTimes  = 3
	chunkFloor = 50 * time.Millisecond
	joinFloor  = 250 * time.Millisecond
	// kneeNACKs is the share of packets that are asked for again.
	kneeNACKs = 0.01
)

var measures = []measure{
	{
		name:  "received bit/s of a client",
		of:    func(s Sample) float64 { return s.Received / float64(s.Up) },
		worse: func(v, best float64) bool { return v < kneeShare*best },
	},
	{name: "delay of chunks (99th percentile, s)", of: func(s Sample) float64 { return s.Chunk }, known: func(s Sample) bool { return s.Chunk > 0 }, worse: slower(chunkFloor), less: true},
	{name: "time to connect (99th percentile, s)", of: func(s Sample) float64 { return s.Join }, known: func(s Sample) bool { return s.Join > 0 }, worse: slower(joinFloor), less: true},
	{
		name:  "packets asked for again",
		of:    func(s Sample) float64 { return float64(s.NACKs) / s.Packets },
		known: func(s Sample) bool { return s.Packets > 0 },
		worse: func(v, _ float64) bool { return v > kneeNACKs }, less: true,
	},
}

func slower(floor time.Duration) func(v, best float64) bool {
	return func(v, best float64) bool { return v > floor.Seconds() && v > kneeTimes*best }
}

// knee finds the first number of clients from which on a measure is worse than at its best before, and stays so until clients leave. nil:
// there is none, up to where the arms were themselves the bottleneck.
func (r *Result) knee() *Knee {
	samples := r.loaded()
	var first *Knee
	for _, m := range measures {
		if k := m.knee(samples); k != nil && (first == nil || k.Second < first.Second) {
			first = k
		}
	}
	return first
}

// loaded are the samples in which enough clients were there and came or stayed: until those of a group begin to leave, or the arms had
// too much to do.
func (r *Result) loaded() (samples []Sample) {
	_, end := r.Scenario.whole()
	spoiled := 0 // seconds in a row
	for i, one := range r.Samples {
		if one.Second > end.Seconds() || spoiled == kneeWindow {
			break
		}
		if spoiled++; len(one.Spoiled) == 0 {
			spoiled = 0
			samples = r.Samples[:i+1]
		}
	}
	return slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return s.Up < kneeClients })
}

func (m measure) knee(samples []Sample) *Knee {
	if m.known != nil { // a second without it is no good one, beside which all others are bad, nor one in which it has come back
		samples = slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return !m.known(s) })
	}
	var means []float64
	for i := range len(samples) - kneeWindow + 1 {
		sum := 0.0
		for _, s := range samples[i : i+kneeWindow] {
			sum += m.of(s)
		}
		means = append(means, sum/kneeWindow)
	}
	var k *Knee
	best := 0.0
	for i, v := range means {
		if i == 0 || m.less == (v < best) {
			best = v
		}
		switch bad := m.worse(v, best); {
		case bad && k == nil:
			k = &Knee{Clients: samples[i].Up, Second: samples[i].Second, Measure: m.name, Value: v, Before: best}
		case !bad:
			k = nil // it has come back
		}
	}
	return k
}

// kneeText says it to a person.
func (r *Result) kneeText() string {
	if r.Knee == nil {
		return fmt.Sprintf("none, up to %.0f clients", r.Figures["peak_sessions"])
	}
	return fmt.Sprintf("%d clients, after %.0f s: %s went from %.4g to %.4g", r.Knee.Clients, r.Knee.Second, r.Knee.Measure, r.Knee.Before, r.Knee.Value)
}
