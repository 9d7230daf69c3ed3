package load_test

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/trackerside"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// TestSessionsJoinATracker: more at once than a tracker takes from one address.
func TestSessionsJoinATracker(t *testing.T) {
	s, err := trackerside.Start(trackerside.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g := load.Group{
		Name: "storm", Behavior: load.Join, Clients: 30, Tracker: "ws://" + s.Address + "/", Site: trackerside.Site, Swarms: 3,
		RampUp: 300 * time.Millisecond, Hold: time.Hour,
	}
	r := newRig(t, load.Scenario{Name: "storm", Groups: []load.Group{g}})
	got := r.until(t, func(one load.Sample) bool { return one.Up == 30 })
	if got.Clients.Opened != 30 || got.Clients.Failed > 0 || got.Figures["join_p99"] <= 0 {
		t.Errorf("%+v, %v", got.Clients, got.Figures)
	}
}
