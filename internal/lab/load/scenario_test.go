package load

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

func good() Scenario {
	return Scenario{Name: "a", Groups: []Group{{Name: "g", Behavior: Active, Clients: 10, Rate: 8000, RampUp: time.Second, Hold: time.Second}}}
}

func TestScenariosThatCannotBe(t *testing.T) {
	if s := good(); len(s.Check()) > 0 || s.Arms.Local != 1 || s.Groups[0].Chunk != 1000 || s.Groups[0].Stack != "link" {
		t.Fatalf("a good one: %v, %+v", s.Check(), s)
	}
	for path, change := range map[string]func(*Scenario){
		"name":                 func(s *Scenario) { s.Name = "A b" },
		"arms":                 func(s *Scenario) { s.Arms.Local = -1 },
		"arms.sockets":         func(s *Scenario) { s.Arms.Sockets = 1 << 20 },
		"peer.processors":      func(s *Scenario) { s.Peer.Processors = -1 },
		"groups":               func(s *Scenario) { s.Groups = nil },
		"groups[0].name":       func(s *Scenario) { s.Groups[0].Name = "" },
		"groups[1].name":       func(s *Scenario) { s.Groups = append(s.Groups, s.Groups[0]) },
		"groups[0].clients":    func(s *Scenario) { s.Groups[0].Clients = 0 },
		"groups[0].ramp_up":    func(s *Scenario) { s.Groups[0].Clients = 5000 },
		"groups[0].ramp_down":  func(s *Scenario) { s.Groups[0].RampDown = -1 },
		"groups[0].hold":       func(s *Scenario) { s.Groups[0].Hold = 0 },
		"groups[0].life":       func(s *Scenario) { s.Groups[0].Life = time.Hour },
		"groups[0].rate":       func(s *Scenario) { s.Groups[0].Rate = 0 },
		"groups[0].chunk":      func(s *Scenario) { s.Groups[0].Chunk = 1 },
		"groups[0].stack":      func(s *Scenario) { s.Groups[0].Stack = "none" },
		"groups[0].behavior":   func(s *Scenario) { s.Groups[0].Behavior = "attack" },
		"groups[0].publishers": func(s *Scenario) { s.Groups[0].Behavior = Conference },
		"groups[0].manifest":   func(s *Scenario) { s.Groups[0].Behavior = Viewer },
		"groups[0].tracker":    func(s *Scenario) { s.Groups[0].Behavior, s.Groups[0].Tracker = Join, "http://a" },
		"groups[0].swarms":     func(s *Scenario) { s.Groups[0].Behavior, s.Groups[0].Tracker, s.Groups[0].Swarms = Join, "ws://a/", -1 },
		"thresholds[0]":        func(s *Scenario) { s.Thresholds = []string{"join_p99<2"} },
	} {
		s := good()
		change(&s)
		found := s.Check()
		if !slices.ContainsFunc(found, func(p Problem) bool { return p.Path == path && p.Text != "" }) {
			t.Errorf("%s: %v", path, found)
		}
	}
	s := good()
	s.Arms = Arms{Local: math.MaxInt, Remote: 1}
	if found := s.Check(); len(found) == 0 || found[0].Path != "arms" {
		t.Errorf("more arms than an int counts: %v", found)
	}
	s = good()
	s.Groups[0].Behavior, s.Groups[0].Clients = Mesh, 1000
	if found := s.Check(); len(found) == 0 || found[0].Path != "groups[0].clients" {
		t.Errorf("a mesh of 499,500 connections: %v", found)
	}
}

func TestThresholds(t *testing.T) {
	for text, want := range map[string]Threshold{
		"join_p99<2s": {"join_p99", "<", 2, ""}, "chunk_p50 <= 250ms": {"chunk_p50", "<=", 0.25, ""}, "stall_ratio<1%": {"stall_ratio", "<", 0.01, ""},
		"delivered_ratio>=0.99": {"delivered_ratio", ">=", 0.99, ""}, "peak_sessions>100": {"peak_sessions", ">", 100, ""}, "join_p50<900us": {"join_p50", "<", 0.0009, ""},
	} {
		got, err := ParseThreshold(text)
		if want.Text = text; err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "join_p99", "join_p99<", "join_p99=2s", "join_p99<2", "join_p99<2%", "stall_ratio<1s", "speed<1", "join_p99<-1s", "join_p99<1e9s"} {
		if got, err := ParseThreshold(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
	for _, c := range []struct {
		text string
		v    float64
		met  bool
	}{{"nacks<1", 0, true}, {"nacks<1", 1, false}, {"nacks<=1", 1, true}, {"nacks>1", 1, false}, {"nacks>1", 2, true}, {"nacks>=1", 1, true}} {
		if th, err := ParseThreshold(c.text); err != nil || th.Met(c.v) != c.met {
			t.Errorf("%s of %v: %v", c.text, c.v, err)
		}
	}
}

func seconds(n int, change func(i int, s *Sample)) []Sample {
	all := make([]Sample, n)
	for i := range all {
		all[i] = Sample{Second: float64(i), Arms: 2, ArmMost: 0.3}
		change(i, &all[i])
		all[i].judge()
	}
	return all
}

func TestASpoiledRunHasNoVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		change func(int, *Sample)
		reason string
		advice string
	}{
		"busy": {func(i int, s *Sample) { s.ArmMost = 0.95 }, "processors", "4 arms"},
		"late": {func(i int, s *Sample) { s.Lag = 0.2 }, "came late", "more arms would not help"},
		"own":  {func(i int, s *Sample) { s.OwnLag = 0.2 }, "controller", "more arms would not help"},
		"drop": {func(i int, s *Sample) { s.Drops = 3 }, "dropped", "more arms would not help"},
		"gc":   {func(i int, s *Sample) { s.GC = 0.5 }, "garbage", "more arms would not help"},
	} {
		r := &Result{Samples: seconds(20, c.change), Figures: map[string]float64{}, Verdict: Passed}
		r.refuse()
		var refused *RefusedError
		if r.Verdict != Refused || len(r.Reasons) != 1 || !strings.Contains(r.Reasons[0], c.reason) || !strings.Contains(r.Advice, c.advice) || !errors.As(r.Err(), &refused) {
			t.Errorf("%s: %s, %q, %q", name, r.Verdict, r.Reasons, r.Advice)
		}
	}
	r := &Result{Verdict: Passed, Samples: seconds(20, func(i int, s *Sample) {
		if i == 7 {
			s.Lag = 1
		}
	})}
	if r.refuse(); r.Verdict != Passed || r.Err() != nil {
		t.Errorf("one second of twenty: %s, %q", r.Verdict, r.Reasons)
	}
	r = &Result{Verdict: Passed}
	if r.refuse(); r.Verdict != Refused {
		t.Error("a verdict on nothing")
	}
	r = &Result{Verdict: Passed, Lost: []string{"arm-2"}, Samples: seconds(20, func(int, *Sample) {})}
	if r.refuse(); r.Verdict != Refused || len(r.Reasons) != 1 || !strings.Contains(r.Reasons[0], "arm-2") {
		t.Errorf("an arm was lost: %s, %q", r.Verdict, r.Reasons)
	}
}

// TestASpoiledHoldHasNoVerdict: the ten seconds in which all clients were there are a twentieth of the run.
func TestASpoiledHoldHasNoVerdict(t *testing.T) {
	r := &Result{Verdict: Passed, Samples: seconds(215, func(i int, s *Sample) {
		if s.Whole = i > 200 && i <= 210; s.Whole {
			s.ArmMost = 0.95
		}
	})}
	if r.refuse(); r.Verdict != Refused || len(r.Reasons) != 1 || !strings.Contains(r.Reasons[0], "10 of 10 seconds in which all") {
		t.Errorf("%s, %q", r.Verdict, r.Reasons)
	}
}

func TestAMissedThreshold(t *testing.T) {
	r := &Result{
		Scenario: Scenario{Name: "a", Thresholds: []string{"join_p99<2s", "chunk_p99<1s", "nacks<=0"}}, Figures: map[string]float64{"join_p99": 3, "nacks": 0},
		Samples: seconds(3, func(int, *Sample) {}),
	}
	r.check()
	r.refuse()
	var missed *MissedError
	if !errors.As(r.Err(), &missed) || !slices.Equal(missed.Thresholds, []string{"join_p99<2s", "chunk_p99<1s"}) {
		t.Errorf("%v", r.Err())
	}
	var table, page bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "MISSED") || !strings.Contains(table.String(), "not measured") {
		t.Errorf("%v\n%s", err, table.String())
	}
	r.Scenario.About = "<script>"
	if err := r.WritePage(&page); err != nil || strings.Contains(page.String(), "<script>") || strings.Count(page.String(), "<polyline") < 8 || strings.Contains(page.String(), "src=") {
		t.Errorf("%v\n%s", err, page.String())
	}
	for _, r.Verdict = range []Verdict{Refused, Stopped} {
		table.Reset()
		page.Reset()
		if err := errors.Join(r.WriteTable(&table), r.WritePage(&page)); err != nil {
			t.Error(err)
		}
		for _, text := range []string{table.String(), page.String()} {
			if strings.Contains(text, "MISSED") || strings.Contains(text, ">met<") || strings.Count(text, "open") != 3 {
				t.Errorf("%s is no verdict on a threshold\n%s", r.Verdict, text)
			}
		}
	}
}

// TestViewersThatGaveUpAreLost: without the manifest there is neither a startup nor a stall that would tell.
func TestViewersThatGaveUpAreLost(t *testing.T) {
	one := &Arm{statistics: armwire.StatisticsBody{Viewers: &armwire.ViewerCounts{Ended: 7, Errors: 3, Played: 60_000}}}
	r := &Result{Figures: map[string]float64{}, Clients: ClientFigures{Came: 10, Opened: 10}}
	(&run{arms: []*Arm{one}, total: NewDelays()}).figures(r, NewDelays())
	if r.Clients.Lost != 3 || r.Figures["lost_ratio"] != 0.3 || r.Figures["stall_ratio"] != 0 {
		t.Errorf("%+v, %v", r.Clients, r.Figures)
	}
}
