package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
)

const (
	capacityFresh = time.Minute // an estimate that is older is refreshed at the origin
	// ample: a line that is estimated to carry so many times what is played leaves the player no choice to make.
	ample = 4
)

// freshness says when the origin is asked for a segment so that the estimate of the line follows it.
type freshness struct {
	*shared
	looked time.Time // when a segment was last asked of the origin for that
}

// stale says whether the estimate is so old that a segment should come from the origin, if that segment can wait: once in a
// while only, for peers that send all the time leave no transfer the line to itself. While nothing has been measured, a look that measured
// nothing does not count before a segment that may be long enough to measure by: the player would stay with its first rendition.
func (f *freshness) stale(adaptive bool, bitrate int64, bytes float64, relaxed func() bool) bool {
	if f.line.estimate() == 0 && bytes >= leastSample {
		f.looked = time.Time{}
	}
	if !f.dated(adaptive, bitrate) {
		return false
	}
	for _, other := range f.segments.all() {
		if other.origin == schedule.OriginRunning {
			return false
		}
	}
	if !relaxed() {
		return false
	}
	f.looked = f.loop.Now()
	return true
}

// dated says whether the estimate is too old to choose renditions by: a player at so many bits per second may want another.
func (f *freshness) dated(adaptive bool, bitrate int64) bool {
	if f.line.estimate() >= ample*float64(bitrate) {
		return false
	}
	last := f.line.at
	if f.looked.After(last) {
		last = f.looked
	}
	return adaptive && f.off == "" && (last.IsZero() || f.loop.Now().Sub(last) >= capacityFresh)
}
