package cmcd

import (
	"github.com/leeway-video/leeway/internal/metric"
	wire "github.com/leeway-video/leeway/internal/wire/cmcd"
)

// Why a report, or an event of it, was not counted (spec/cmcd.md, "Request").
const (
	refusedAddress   = "address"
	refusedSite      = "site"
	refusedOrigin    = "origin"
	refusedOff       = "off"
	refusedMethod    = "method"
	refusedType      = "type"
	refusedSize      = "size"
	refusedSlow      = "slow"
	refusedMalformed = "malformed"
)

// classes of statuses; the last one is of what is no answer to a request for media.
var classes = []string{"2xx", "3xx", "4xx", "5xx", "other"}

var (
	mEvents = &metric.Def{Name: "leeway_cmcd_events_total", Help: "Events that players reported by CMCD", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "event", Values: wire.Types}}}
	mStates = &metric.Def{Name: "leeway_cmcd_states_total", Help: "Changes of players to a state, by their reports", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "state", Values: wire.States}}}
	mResponses = &metric.Def{Name: "leeway_cmcd_responses_total", Help: "Responses that players received, by their reports and by class of status", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "class", Values: classes}}}
	mStartup = &metric.Def{Name: "leeway_cmcd_startup_seconds", Help: "From the wish to play to the first picture, by reports of players", Kind: metric.Histogram,
		Labels: []metric.Label{metric.Site()}, Buckets: []float64{0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3, 5, 10, 20}}
	mRefused = &metric.Def{Name: "leeway_cmcd_refused_total", Help: "Reports of players that were refused, and events that were malformed", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: []string{
			refusedAddress, refusedSite, refusedOrigin, refusedOff, refusedMethod, refusedType, refusedSize, refusedSlow, refusedMalformed,
		}}}}
)

// Metrics lists what a collector counts.
func Metrics() []*metric.Def {
	return []*metric.Def{mEvents, mStates, mResponses, mStartup, mRefused}
}
