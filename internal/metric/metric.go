// Package metric describes what the services count, as data.
//
// A service declares its metrics as package variables of type [Def] in its metrics.go, returns all of them from a function
// Metrics() []*Def, and counts through a [Sink] that it was given. It knows no metrics library: internal/promreg turns
// definitions into time series, and a test compares the definitions of all services with spec/metrics.md.
package metric

import "slices"

// Kind is the type of a metric.
type Kind int

// The kinds, with their names in spec/metrics.md.
const (
	Counter   Kind = iota // only grows; its name ends in _total
	Gauge                 // goes up and down; its name never ends in _total
	Histogram             // distribution over Def.Buckets; its name ends in a base unit
)

// String returns the kind's name as spec/metrics.md writes it.
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case Gauge:
		return "gauge"
	case Histogram:
		return "histogram"
	}
	return "unknown"
}

// Label is one dimension of a metric with the closed set of its values.
type Label struct {
	Name string
	// Values is the closed set. It is nil for the label "site", whose values the registry takes from the configuration, and for
	// "title", whose values are known when they are asked for.
	Values []string
}

// Def defines one metric. Definitions are package variables and are compared by address: a Sink knows the ones that it
// was created with.
type Def struct {
	Name    string    // leeway_<service>_<thing>_<unit>[_total], base units
	Help    string    // one sentence
	Kind    Kind      //
	Labels  []Label   // in the order in which a Sink takes their values
	Buckets []float64 // upper bounds of a Histogram in the unit of the name, ascending
}

// Open says that labels of the metric are known only when it is asked for: it is told by a [Collector], not counted in a [Sink].
func (d *Def) Open() bool {
	return slices.ContainsFunc(d.Labels, func(l Label) bool { return l.Name == Title().Name })
}

// Collector tells what metrics with the label "title" stand at now. It bounds how many titles there are.
type Collector interface {
	Collect(tell func(d *Def, v float64, labels ...string))
}

// Sink takes observations. Labels come in the order of Def.Labels. An observation whose labels are outside their closed
// set, or whose kind does not fit, is dropped and counted, never an error: counting must not be able to break a service.
// Implementations are safe for concurrent use.
type Sink interface {
	// Add adds v to a counter or gauge; a counter ignores negative values.
	Add(d *Def, v float64, labels ...string)
	// Set sets a gauge.
	Set(d *Def, v float64, labels ...string)
	// Observe records v in a histogram.
	Observe(d *Def, v float64, labels ...string)
}

// Discard is a Sink that keeps nothing.
var Discard Sink = discard{}

type discard struct{}

func (discard) Add(*Def, float64, ...string)     {}
func (discard) Set(*Def, float64, ...string)     {}
func (discard) Observe(*Def, float64, ...string) {}

// Site is the label "site", whose values come from the configuration.
func Site() Label { return Label{Name: "site"} }

// Title is the label "title", the only one whose values are not known at the start.
func Title() Label { return Label{Name: "title"} }

// The closed label sets that more than one service uses, as spec/metrics.md lists them. Treat as constants.
var (
	Sources  = []string{"origin", "seed", "peer"}
	Paths    = []string{"direct", "relay"}
	Lanes    = []string{"foreground", "background"}
	Roles    = []string{"viewer", "seed"}
	Variants = []string{"peer", "control", "off"} // the last is of viewers that are in neither group
	// Reasons says why a segment did not come from a peer.
	Reasons = reasonNames()
)
