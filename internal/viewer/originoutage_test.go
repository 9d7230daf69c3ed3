package viewer

import (
	"testing"
	"time"
)

// TestNewcomersInAnOutage has a viewer come while every segment of the origin is an error: what the others play, it can
// begin with, for they share what they had got before they joined. It plays on in the rendition that they have.
func TestNewcomersInAnOutage(t *testing.T) {
	s := newScene(t, fourSeconds(40, 150_000, 750_000))
	for range 3 {
		s.viewer(fast, nil)
		s.w.run(5 * time.Second)
	}
	s.w.run(30 * time.Second)
	s.tracker.seed = nil // it has what it has, and would get no more
	s.film.outage = true
	came := s.viewer(fast, nil)
	s.w.run(40 * time.Second)
	sum := came.now()
	if sum.Stats.StartupMs == 0 || sum.Stats.StartupMs > 5000 || sum.Stats.Stalls > 0 || came.wrong > 0 {
		t.Errorf("%d wrong segments: %+v", came.wrong, sum.Stats)
	}
	if first := came.results[0]; first.Start != 0 || first.Bytes[FromOrigin] > 0 {
		t.Errorf("the first segment, at %v, came from %v", first.Start, first.Bytes)
	}
}

// TestOutageAlone has no peer to help: the player hears of the error and goes on once the origin is back.
func TestOutageAlone(t *testing.T) {
	s := newScene(t, fourSeconds(10, 750_000))
	s.tracker.seed = nil
	s.film.outage = true
	alone := s.viewer(fast, nil)
	s.w.run(20 * time.Second)
	if sum := alone.now(); sum.Stats.StartupMs != 0 || alone.isDone() {
		t.Errorf("done %v: %+v", alone.isDone(), sum.Stats)
	}
	s.film.outage = false
	s.w.run(60 * time.Second)
	s.check()
}
