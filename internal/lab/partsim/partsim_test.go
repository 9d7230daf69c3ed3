package partsim

import (
	"math"
	"testing"
)

// audience plays a dozen viewers beside the same ones without peers.
func audience(name string) (with, alone Result) {
	o := Chosen
	o.Viewers, o.Segment, o.Trace, o.Lines = 12, 4, 1, Lines["mixed"]
	for _, t := range Troubles() {
		if t.Name == name {
			o.Trouble = t
		}
	}
	with = Play(o)
	o.Way = Alone
	return with, Play(o)
}

// TestADozenViewersShareParts, and none stalls more, or is further behind, than without peers, whatever happens. Bars are those of the
// bench, which plays more of it.
func TestADozenViewersShareParts(t *testing.T) {
	for _, name := range []string{"origin-5s-late", "polluters"} {
		with, alone := audience(name)
		if with.Viewers == 0 || with.Viewers != alone.Viewers || alone.Peers != 0 || alone.Delay50 < 20 {
			t.Fatalf("%q: %+v, without peers %+v", name, with, alone)
		}
		if sum := with.Peers + with.Seed + with.Origin; math.Abs(sum-1) > 1e-9 || with.Peers < 0.55 {
			t.Errorf("%q: %.3f of the bytes from viewers, %.3f of the seed, %.3f of the origin", name, with.Peers, with.Seed, with.Origin)
		}
		if with.Stalls > alone.Stalls || with.Stalled > alone.Stalled+1e-4 || with.Lag > alone.Lag+0.15 || with.Digest99 > 100 || with.WorstBad > 1 {
			t.Errorf("%q: %+v, without peers %+v", name, with, alone)
		}
		if name == "polluters" && with.Bad == 0 || name == "origin-5s-late" && alone.Stalls == 0 {
			t.Errorf("%q: nothing has happened: %+v, without peers %+v", name, with, alone)
		}
	}
}

// TestTheSameOptionsGiveTheSameRun: figures are of the trace, not of the machine.
func TestTheSameOptionsGiveTheSameRun(t *testing.T) {
	o := Chosen
	o.Viewers, o.Segment, o.Trace, o.Lines = 5, 4, 3, Lines["mixed"]
	if a, b := Play(o), Play(o); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
}
