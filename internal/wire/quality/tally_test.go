package quality

import (
	"testing"
	"time"
)

func TestATallyIsWholeWhenEachNumberHasCome(t *testing.T) {
	y := NewTally(Run{Messages: 2, Interval: 1000})
	for i, n := range []uint32{1, 0, 0, 4, 3, 2, 9} {
		if whole := y.Arrived(Probe{Sequence: n, Sent: int64(n)}, int64(10+i)); whole != (n == 2) {
			t.Errorf("number %d: whole %v", n, whole)
		}
	}
	if len(y.Arrivals) != 3 || y.Arrivals[0].Sequence != 1 || y.Arrivals[2].Sequence != 0 || y.Arrivals[2].Received != 12 {
		t.Errorf("%+v: the last three numbers count for nothing, and a duplicate is an arrival", y.Arrivals)
	}
	y.Closed = true
	if y.Arrived(Probe{Sequence: 1}, 99); len(y.Arrivals) != 3 {
		t.Error("a message that came too late was counted")
	}
}

func TestATallyLeavesOutDuplicatesWithoutEnd(t *testing.T) {
	y := NewTally(Run{Messages: 5, Interval: 1000})
	for range 1000 {
		y.Arrived(Probe{Sequence: 1}, 1)
	}
	if len(y.Arrivals) != 5+spare {
		t.Errorf("%d arrivals", len(y.Arrivals))
	}
}

func TestASenderWaitsForItsNextMessage(t *testing.T) {
	r := Run{Messages: 7, Interval: 2000}
	if r.Length() != 20*time.Millisecond {
		t.Errorf("%v", r.Length())
	}
	if r.Wait(3, 4*time.Millisecond) != 2*time.Millisecond || r.Wait(3, time.Second) != time.Millisecond/2 {
		t.Errorf("%v, %v", r.Wait(3, 4*time.Millisecond), r.Wait(3, time.Second))
	}
}
