package fleet

import "github.com/leeway-video/leeway/internal/metric"

// What came of a segment that a newcomer wanted of its siblings.
const (
	warmFetched = "fetched"
	warmHeld    = "held"
	warmMissing = "missing"
)

// The metrics of a fleet (spec/metrics.md).
var (
	mSiblingRequests = &metric.Def{Name: "leeway_seed_sibling_requests_total", Help: "Questions to siblings by what came of them", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: outcomes()}}}
	mSiblingBytes = &metric.Def{Name: "leeway_seed_sibling_bytes_total", Help: "Bytes of segments and certificates between siblings", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "direction", Values: []string{"in", "out"}}}}
	mSiblingTime = &metric.Def{Name: "leeway_seed_sibling_seconds", Help: "Time from the question until a sibling's segment is there", Kind: metric.Histogram,
		Buckets: []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3}}
	mWarmSegments = &metric.Def{Name: "leeway_seed_warm_up_segments_total", Help: "Segments that a newcomer wanted of its siblings", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: []string{warmFetched, warmHeld, warmMissing}}}}
	mWarmBytes = &metric.Def{Name: "leeway_seed_warm_up_bytes_total", Help: "Bytes that a newcomer had of its siblings before viewers came", Kind: metric.Counter}
)

func outcomes() (all []string) {
	for _, o := range Outcomes {
		all = append(all, string(o))
	}
	return all
}

// Metrics lists what a member of a fleet counts.
func Metrics() []*metric.Def {
	return []*metric.Def{mSiblingRequests, mSiblingBytes, mSiblingTime, mWarmSegments, mWarmBytes}
}
