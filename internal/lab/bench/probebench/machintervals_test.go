package probebench

import (
	"math"
	"os"
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
