package tracker

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func (n *node) held() int {
	return n.sessions.count()
}

// TestAFullTrackerShedsToOthers: it sends some away, to come back at times of their own, until it is not full any more.
func TestAFullTrackerShedsToOthers(t *testing.T) {
	w := newWorld(t)
	full := w.tracker(func(c *Config) { c.MaxSessions, c.BeatEvery = 10, time.Hour })
	var viewers []*viewer
	for range 10 {
		viewers = append(viewers, full.viewer(""))
	}
	full.shed()
	if w.metrics.Value(defShed) != 0 {
		t.Error("a tracker shed sessions without another")
	}
	other := w.tracker(nil)
	testkit.Eventually(t, "they know each other", func() bool { n, _ := full.roster.load(); return n == 1 })
	for _, want := range []float64{1, 2} {
		full.shed()
		// A session ends before its socket has given its place back, and by places the tracker is full.
		testkit.Eventually(t, "one is gone", func() bool { return full.held() == 10-int(want) && full.admission.count() == 10-int(want) })
		if got := w.metrics.Value(defShed); got != want {
			t.Errorf("%v are shed, want %v", got, want)
		}
	}
	full.shed()
	if full.held() != 8 || w.metrics.Value(defShed) != 2 {
		t.Errorf("a tracker with room shed sessions: %d are left", full.held())
	}
	away := 0
	for _, v := range viewers {
		if full.sessions.session(v.id) != nil {
			continue
		}
		away++
		if m := expect[*signal.Reconnect](v); m.AfterMs < 0 || m.AfterMs >= shedSpread.Milliseconds() {
			t.Errorf("told to come back after %d ms", m.AfterMs)
		}
		if code := v.closed(); code != closeDraining {
			t.Errorf("closed with %d", code)
		}
		back := other.viewer(v.ticket)
		if back.id != v.id {
			t.Error("the session is another one at the other tracker")
		}
	}
	if away != 2 {
		t.Errorf("%d viewers are away", away)
	}
}

func TestNoSessionIsShedToATrackerWithMore(t *testing.T) {
	w := newWorld(t)
	small := w.tracker(func(c *Config) { c.MaxSessions, c.BeatEvery = 2, time.Hour })
	large := w.tracker(func(c *Config) { c.BeatEvery = time.Hour })
	small.viewer("")
	small.viewer("")
	for range 3 {
		large.viewer("")
	}
	large.beat(false)
	testkit.Eventually(t, "the small one knows", func() bool { _, n := small.roster.load(); return n == 3 })
	small.shed()
	if small.held() != 2 || w.metrics.Value(defShed) != 0 {
		t.Error("sessions went where there are more")
	}
}

// TestTooManyAreNotEvenTold: saying that there is no room takes room, too.
func TestTooManyAreNotEvenTold(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.MaxSessions = 1 })
	n.viewer("")
	if n.Crowded() {
		t.Error("one session is a crowd")
	}
	for range maxTurning {
		n.TurnAway(sink{}, true)
	}
	if !n.Crowded() {
		t.Error("there is always room for words")
	}
	for range maxTurning {
		turned{n.admission}.End(nil)
	}
	if n.Crowded() || !n.refused() {
		t.Error("words are not spoken any more")
	}
}
