package probebench

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/netstat"
)

// TestMachEndsAsTheDraftHasIt: on what mach has said of a test that it ended by itself, at 413 down and 408 up.
func TestMachEndsAsTheDraftHasIt(t *testing.T) {
	said, err := os.ReadFile("testdata/mach-50m-50ms.log")
	if err != nil {
		t.Fatal(err)
	}
	all, err := machIntervals(said)
	if err != nil {
		t.Fatal(err)
	}
	down, up := all[netstat.Down], all[netstat.Up]
	if len(down) != 9 || len(up) != 12 || down[1] != (machInterval{7.57e6, 644.19702484471}) {
		t.Fatalf("%d and %d intervals, the second %v", len(down), len(up), down[1])
	}
	for _, c := range []struct {
		name string
		got  float64
		want float64
	}{
		{"down, by itself", byMach(down), 413.385},
		{"up, by itself", byMach(up), 407.982},
		{"down, by the draft, at the last", byDraft(down), 413.385}, // two figures since its goodput rests
		{"up, by the draft", byDraft(up), 407.982},
	} {
		if math.Abs(c.got-c.want) > 0.001 {
			t.Errorf("%s: %.3f, want %.3f", c.name, c.got, c.want)
		}
	}
}

// TestMachEndsBeforeItsFiguresRest: figures that fall slowly spread little, so mach ends as soon as the goodput has come to rest. By the draft
// only figures from then on count.
func TestMachEndsBeforeItsFiguresRest(t *testing.T) {
	falling := []machInterval{{0, 0}, {10, 900}, {30, 700}, {45, 520}, {49, 500}, {49, 480}, {50, 465}, {50, 450}, {50, 440}, {50, 430}, {50, 425}, {50, 420}}
	if own, draft := byMach(falling), byDraft(falling); own != 440 || draft != 430 {
		t.Errorf("by itself %v, by the draft %v", own, draft)
	}
	never := []machInterval{{0, 0}, {100, 500}, {10, 900}, {100, 500}, {10, 900}, {100, 700}}
	if own, draft := byMach(never), byDraft(never); own != 800 || draft != 700 {
		t.Errorf("by itself %v, by the draft %v", own, draft)
	}
}

func TestWhatMachDoesNotSay(t *testing.T) {
	for _, said := range []string{"", "running download test\nrunning upload test\n", "running download test\ninterval finished interval=0 loads=1 throughput=\"0 bits\" rpm=0.0\n"} {
		if _, err := machIntervals([]byte(said)); err == nil {
			t.Errorf("%q has figures", said)
		}
	}
}

// TestWhatMachLeavesOut: of its probes in the last four intervals of six tests, as it was published, it leaves out one of each kind, and
// its figure is larger by some percent for that. With one of them that came late, and that is left out, it is larger by a fifth.
func TestWhatMachLeavesOut(t *testing.T) {
	text, err := os.ReadFile("testdata/mach-probes-50m-50ms.json")
	if err != nil {
		t.Fatal(err)
	}
	var tests []struct {
		Way  string
		Said float64
		netstat.Probes
	}
	if err := json.Unmarshal(text, &tests); err != nil {
		t.Fatal(err)
	}
	if len(tests) != 6 {
		t.Fatalf("%d tests", len(tests))
	}
	for i, c := range tests {
		all, ok := c.RPM()
		fewer, also := netstat.Probes{TCP: butLargest(c.TCP), TLS: butLargest(c.TLS), HTTP: butLargest(c.HTTP), Loaded: butLargest(c.Loaded)}.RPM()
		if !ok || !also || math.Abs(fewer/c.Said-1) > 0.002 {
			t.Errorf("test %d: %.1f without the largest, and mach said %.1f", i, fewer, c.Said)
		}
		least, most := 0.025, 0.041
		if i == 0 {
			least, most = 0.2, 0.3
		}
		if more := fewer/all - 1; more < least || more > most {
			t.Errorf("test %d, %s: %.1f %% more than with all of %d", i, c.Way, 100*more, len(c.TCP))
		}
	}
}

func butLargest(values []int64) []int64 {
	ascending := slices.Sorted(slices.Values(values))
	return ascending[:len(ascending)-1]
}
