package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestAViewerSendsNoMoreThanItsSiteAllows: viewers with fast lines serve each other under a cap of 1 Mbit/s, and no longer once the
// tracker has lifted it.
func TestAViewerSendsNoMoreThanItsSiteAllows(t *testing.T) {
	const perSecond, seconds = 125_000, 20
	s := newScene(t, fourSeconds(20, 750_000))
	s.tracker.policy.UploadKbps = 1000
	sent := func() (each []int64) {
		for _, v := range s.viewers {
			n, _ := v.title.engine.pacing.uploader.Background.Totals()
			each = append(each, n)
		}
		return each
	}
	for range 4 {
		s.viewer(fast, nil)
	}
	s.w.run(seconds * time.Second)
	var most int64
	for _, n := range sent() {
		most = max(most, n)
	}
	if most < perSecond*seconds/8 || most > perSecond*(seconds+1) {
		t.Errorf("a viewer sent %d bytes in %d s under a cap of %d a second", most, seconds, perSecond)
	}
	s.tracker.policy.UploadKbps = 0
	s.tracker.everyone(&signal.SetPolicy{Policy: s.tracker.policy})
	before := sent()
	s.w.run(seconds * time.Second)
	most = 0
	for i, n := range sent() {
		most = max(most, n-before[i])
	}
	if most < 2*perSecond*seconds {
		t.Errorf("a viewer sent %d bytes in %d s without a cap", most, seconds)
	}
	s.w.run(80 * time.Second)
	s.check()
}
