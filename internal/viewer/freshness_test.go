package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
)

func TestFreshness(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	for name, c := range map[string]struct {
		set      func(r *rig, f *freshness)
		adaptive bool
		relaxed  func() bool
		stale    bool
	}{
		"never measured":    {func(*rig, *freshness) {}, true, yes, true},
		"a fixed rendition": {func(*rig, *freshness) {}, false, yes, false},
		"no time":           {func(*rig, *freshness) {}, true, no, false},
		"measured of late":  {func(r *rig, f *freshness) { f.line.at = r.w.now.Add(time.Second - capacityFresh) }, true, yes, false},
		"measured long ago": {func(r *rig, f *freshness) { f.line.at = r.w.now.Add(-capacityFresh) }, true, yes, true},
		"the line carries four times what is played": {func(_ *rig, f *freshness) { f.line.sample(500_000, time.Second, 0, time.Time{}) }, true, yes, false},
		"the line carries less than that":            {func(_ *rig, f *freshness) { f.line.sample(499_000, time.Second, 0, time.Time{}) }, true, yes, true},
		"looked of late":                             {func(r *rig, f *freshness) { f.looked = r.w.now.Add(time.Second - capacityFresh) }, true, yes, false},
		"the origin is asked":                        {func(r *rig, _ *freshness) { r.segment(1, nil).origin = schedule.OriginRunning }, true, yes, false},
		"peers deliver nothing":                      {func(_ *rig, f *freshness) { f.off = schedule.ByPolicy }, true, yes, false},
		"the origin has ended":                       {func(r *rig, _ *freshness) { r.segment(1, nil).origin = schedule.OriginFailed }, true, yes, true},
	} {
		r := newRig(t)
		r.w.run(time.Hour)
		f := &r.freshness
		c.set(r, f)
		if got := f.stale(c.adaptive, 1_000_000, leastSample-1, c.relaxed); got != c.stale {
			t.Errorf("%s: stale %v", name, got)
		}
		if c.stale && f.stale(c.adaptive, 1_000_000, leastSample-1, c.relaxed) {
			t.Errorf("%s: stale twice within a minute", name)
		}
	}
}

// TestALookThatMeasuredNothing is taken again with a segment that may be long enough, until something is measured.
func TestALookThatMeasuredNothing(t *testing.T) {
	r := newRig(t)
	r.w.run(time.Hour)
	f := &r.freshness
	stale := func(bytes float64) bool {
		return f.stale(true, 1_000_000, bytes, func() bool { return true })
	}
	if !stale(leastSample-1) || stale(leastSample-1) || !stale(leastSample) || !stale(leastSample) {
		t.Error("nothing is measured: short segments are no look twice in a minute, and longer ones each are")
	}
	f.line.sample(100_000, time.Second, 0, time.Time{})
	if stale(leastSample) {
		t.Error("there is an estimate, and a second look in a minute")
	}
}
