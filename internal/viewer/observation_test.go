package viewer

import (
	"testing"
	"time"
)

func TestObservationCountsWholeFiguresAndLosesNothing(t *testing.T) {
	w, l := newWorld(), &ledger{}
	o := observation{loop: w, ledger: l}
	low, high := &rendition{bitrate: 1_000}, &rendition{bitrate: 3_000}
	for range 10_000 {
		o.played(300*time.Microsecond, low)
		o.count()
	}
	o.played(time.Second, high)
	o.count()
	if s := l.total; s.PlayedMs != 4_000 || s.PlayedBits != 6_000 || s.Switches != 1 {
		t.Errorf("%d ms, %d bits, %d switches", s.PlayedMs, s.PlayedBits, s.Switches)
	}
	for range 10_000 {
		o.behind(300*time.Microsecond, 7*time.Second)
		o.count()
	}
	o.behind(time.Second, 9*time.Second)
	o.behind(time.Second, 0) // unknown
	o.behind(time.Second, -time.Second)
	o.count()
	if s := l.total; s.LiveMs != 4_000 || s.LiveLag != 3_000*7+1_000*9 || o.lag.mean().Round(time.Millisecond) != 7_500*time.Millisecond {
		t.Errorf("%d ms, %d s·ms behind; %v on average", s.LiveMs, s.LiveLag, o.lag.mean())
	}
	o.stall()
	w.run(time.Second)
	o.soFar()
	w.run(time.Second)
	o.endStall()
	o.endStall()
	o.soFar()
	if s := l.total; s.Stalls != 1 || s.StallMs != 2_000 || !o.stalled.IsZero() {
		t.Errorf("%d stalls of %d ms", s.Stalls, s.StallMs)
	}
}
