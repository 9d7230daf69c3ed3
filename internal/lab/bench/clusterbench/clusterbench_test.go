package clusterbench

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/benchtest"
)

// TestMain lets this program be the processes of the cluster.
func TestMain(m *testing.M) { benchtest.Main(m, Bench) }

// handful is a small audience.
var handful = scale{sessions: 60, swarms: 6, linked: 10, watched: 3 * time.Second}

// TestNothingIsLost takes one process away from a small cluster of real ones, or all of NATS for some seconds.
func TestNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	for name, c := range map[string]bench.Case{
		"tracker": taking("", "", handful, killTracker, 10, true), "server": taking("", "", handful, killServer, 10, true),
		"drained tracker": taking("", "", handful, drainTracker, 16, true), "all servers": losing("", handful, 3*time.Second, true),
	} {
		t.Run(name, func(t *testing.T) {
			sample, err := c.Run(t.Context(), &bench.Run{Log: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			v := sample.Values
			for _, f := range c.Figures {
				if f.Goal == "<= 0" && v[f.Name] != 0 {
					t.Errorf("%s: %v", f.Name, v[f.Name])
				}
			}
			if gone := name != "server" && name != "all servers"; v["link_ends"] == 0 || (v["sessions_lost_their_socket"] == 0) == gone {
				t.Errorf("%v ends of links, %v sessions that lost their socket", v["link_ends"], v["sessions_lost_their_socket"])
			}
		})
	}
}

func TestPeak(t *testing.T) {
	at := func(ms ...int) (all []time.Time) {
		for _, n := range ms {
			all = append(all, time.Unix(0, 0).Add(time.Duration(n)*time.Millisecond))
		}
		return all
	}
	for want, all := range map[int][]time.Time{0: nil, 1: at(5), 3: at(3000, 0, 999, 500, 2200), 2: at(0, 1001, 2000, 3500)} {
		if got := peak(all); got != want {
			t.Errorf("at most %d in a second, counted %d", want, got)
		}
	}
}
