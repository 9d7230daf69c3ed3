package transportbench

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

func TestSlowScenesPlayAtTheSameTime(t *testing.T) {
	for _, c := range []struct {
		lines []netlab.Link
		pages *pages
		want  int
	}{
		{[]netlab.Link{reale, reale, reale, reale, reale}, nil, 5}, {[]netlab.Link{ten, ten, ten}, nil, 2}, {[]netlab.Link{reale, ten, ten}, nil, 2},
		{[]netlab.Link{hundred, hundred}, nil, 1}, {[]netlab.Link{reale, reale}, senders, 1},
	} {
		var scenes []scene
		for _, line := range c.lines {
			scenes = append(scenes, scene{line: line})
		}
		if got := (&session{pages: c.pages}).atOnce(scenes); got != c.want {
			t.Errorf("%v: %d at once, want %d", c.lines, got, c.want)
		}
	}
}

func TestACaseSaysHowLongItTakes(t *testing.T) {
	long := map[string]time.Duration{}
	for _, c := range Bench.Cases {
		long[c.Name] = c.Takes(1)
		if c.Takes(0) < long[c.Name] || long[c.Name] < 10*time.Second || long[c.Name] > 31*time.Minute {
			t.Errorf("case %s takes %s, and %s with yardsticks", c.Name, long[c.Name], c.Takes(0))
		}
	}
	// Three scenes of 1 Mbit/s at once; four of 10, two at a time.
	if long["1"] != 3*time.Minute+around || long["2"] != 100*time.Second+2*around {
		t.Errorf("case 1 takes %s, case 2 %s", long["1"], long["2"])
	}
	for name, set := range sets {
		total := time.Duration(0)
		for _, c := range set {
			if long[c] == 0 {
				t.Errorf("the set %s has a case %s", name, c)
			}
			total += 5 * long[c]
		}
		if total > time.Hour {
			t.Errorf("five runs of %s take %s", name, total)
		}
	}
}

func TestYardsticksAreMeasuredUntilARunCounts(t *testing.T) {
	for claimed, want := range []bool{true, false} {
		if got := (&session{run: &bench.Run{Number: 3, Claimed: claimed}}).yardsticks(); got != want {
			t.Errorf("with %d runs that count: %v", claimed, got)
		}
	}
}

func TestBrowsersTakeOurEndsAndNoYardstick(t *testing.T) {
	sc := scene{flows: []flow{{kind: rfcLane}, {kind: ledbatLane}, {kind: cubic}, {kind: ledbatLane}}}
	bothKinds.in(&sc)
	want := []flow{{kind: rfcLane}, {kind: ledbatLane, near: hiddenPage}, {kind: cubic}, {kind: ledbatLane, near: visiblePage, far: visiblePage}}
	for i, f := range sc.flows {
		if f.near != want[i].near || f.far != want[i].far {
			t.Errorf("flow %d: %+v", i, f)
		}
	}
}

func TestScenesThatPlayTogetherKeepTheirLinesApart(t *testing.T) {
	if err := netlab.Available(); err != nil {
		t.Skip(err)
	}
	log := &strings.Builder{}
	s := &session{ctx: t.Context(), run: &bench.Run{Log: log}, values: map[string]float64{}}
	line := netlab.Link{Rate: 4_000_000, Delay: 5 * time.Millisecond, Queue: 30_000}
	all, err := s.play(solo(line, cubic, time.Second), solo(line, reno, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if r.scene.flows[0].kind != []kind{cubic, reno}[i] || r.rate(0, time.Second, 0) < 1e6 {
			t.Errorf("scene %d: %s, %.0f bit/s", i, r.scene.name, r.rate(0, time.Second, 0))
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 4 || strings.Contains(lines[0], "cubic") != strings.Contains(lines[1], "cubic") {
		t.Errorf("%q", lines)
	}
}
