package natbench

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// moved is what a viewer says after so many seconds, with so much from others.
func moved(seconds float64, session string, bytes, stalls int64, linked ...string) viewer.Summary {
	s := said(seconds, linked...)
	s.Session = session
	s.Stats = signal.Stats{Bytes: map[string]int64{"origin": 7, "peer": bytes}, Stalls: stalls}
	return s
}

func TestJudgeOfAViewerThatMoves(t *testing.T) {
	const d, r, s = "viewer/direct", "viewer/relay", "seed/direct"
	for name, c := range map[string]struct {
		row           roamer
		session       string
		said          []viewer.Summary
		good          bool
		again, linked time.Duration
	}{
		"as before": {
			roamer{want: meets}, "a",
			[]viewer.Summary{moved(10, "a", 5, 0, d, s), moved(11, "a", 5, 0, d, s), moved(13, "a", 6, 0, d, s)}, true, 3 * time.Second, 0,
		},
		"what came before does not count": {
			roamer{want: meets}, "a",
			[]viewer.Summary{moved(10, "a", 5, 0, d), moved(10.1, "a", 9, 0, d), moved(12, "a", 9, 0, d), moved(14, "a", 10, 0, d)}, true, 4 * time.Second, 0,
		},
		"by the relay now": {
			roamer{want: relays}, "a",
			[]viewer.Summary{moved(10, "a", 5, 0, d, s), moved(11, "a", 5, 0, s), moved(12, "a", 6, 0, r, s)}, true, 2 * time.Second, 2 * time.Second,
		},
		"no peer serves it, as is right": {
			roamer{want: relays, alone: true}, "a", []viewer.Summary{moved(10, "a", 5, 0, s), moved(12, "a", 5, 0, r)}, true, 0, 2 * time.Second,
		},
		"a stall":           {roamer{want: meets}, "a", []viewer.Summary{moved(10, "a", 5, 0, d), moved(12, "a", 6, 1, d)}, false, afterRoaming, 0},
		"a stall it may":    {roamer{want: meets, stalls: 1}, "a", []viewer.Summary{moved(10, "a", 5, 0, d), moved(12, "a", 6, 1, d)}, true, afterRoaming, 0},
		"another session":   {roamer{want: meets}, "b", []viewer.Summary{moved(10, "a", 5, 0, d)}, false, afterRoaming, 0},
		"another way":       {roamer{want: meets}, "a", []viewer.Summary{moved(10, "a", 5, 0, d), moved(11, "a", 5, 0, s)}, false, afterRoaming, time.Second},
		"it says no more":   {roamer{want: meets}, "a", nil, false, 0, 0},
		"served before lag": {roamer{want: meets}, "a", []viewer.Summary{moved(9, "a", 5, 0, d), moved(11, "a", 6, 0, d)}, true, afterRoaming, time.Second},
	} {
		v := roamed{roamer: c.row, before: moved(9, c.session, 5, 0, d, s)}
		v.judge(c.said, 10_000)
		if v.good() != c.good || v.again != c.again || v.linked != c.linked {
			t.Errorf("%s: good %v, served again after %v, linked after %v; want %v, %v, %v", name, v.good(), v.again, v.linked, c.good, c.again, c.linked)
		}
	}
}

func TestFiguresOfViewersThatMove(t *testing.T) {
	fine := roamed{roamer: roamer{want: meets}, got: meets, kept: true, again: time.Second, linked: 2 * time.Second}
	stalled := fine
	stalled.stalls, stalled.stall, stalled.failed, stalled.kept = 3, 4*time.Second, 2, false
	slept := fine
	slept.roamer.stalls, slept.stalls = 1, 1
	v := roamingValues([]roamed{fine, stalled, slept}).Values
	for name, want := range map[string]float64{
		"rows": 3, "as_expected": 2. / 3, "served_again": 1, "linked_as_expected": 2, "stalls": 3, "longest_stall": 4, "sessions_kept": 2. / 3, "failed_again": 1,
	} {
		if v[name] != want {
			t.Errorf("%s is %g, want %g", name, v[name], want)
		}
	}
}

func TestRoamersHaveNamesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, r := range roamers {
		if names[r.name] || (r.sleeps > 0) == (r.after != "") {
			t.Errorf("%s: twice, or it neither moves nor sleeps, or both", r.name)
		}
		names[r.name] = true
	}
	if h := history([]viewer.Summary{said(1), said(2, "seed/direct"), said(3, "seed/direct"), said(4)}, 1500); strings.Count(h, " s ") != 2 {
		t.Errorf("history is %q", h)
	}
}
