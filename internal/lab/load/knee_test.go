package load

import (
	"slices"
	"testing"
	"time"
)

// ramp is a run to which two clients come each second for a hundred seconds, and which is held for fifty.
func ramp(of func(up int64, s *Sample)) *Result {
	r := &Result{Scenario: Scenario{Groups: []Group{{RampUp: 100 * time.Second, Hold: 50 * time.Second, RampDown: 10 * time.Second}}}}
	for second := 1; second <= 160; second++ {
		s := Sample{Second: float64(second), Up: min(2*int64(second), 200), Join: 0.02, Chunk: 0.002}
		if second > 150 {
			s.Up = max(0, 200-20*int64(second-150))
		}
		s.Received, s.Packets = 1e5*float64(s.Up), 50*float64(s.Up) // of 250 bytes
		of(s.Up, &s)
		r.Samples = append(r.Samples, s)
	}
	return r
}

func TestTheKneeIsWhereClientsHaveLess(t *testing.T) {
	for name, c := range map[string]struct {
		of          func(up int64, s *Sample)
		least, most int64 // clients at the knee; 0: none
		measure     string
	}{
		"none": {func(int64, *Sample) {}, 0, 0, ""},
		"bytes": {func(up int64, s *Sample) {
			s.Received = min(s.Received, 1e5*120)
		}, 120, 140, "received bit/s of a client"},
		"delays": {func(up int64, s *Sample) {
			if up > 150 {
				s.Chunk = 0.2
			}
		}, 140, 152, "delay of chunks (99th percentile, s)"},
		"repairs": {func(up int64, s *Sample) {
			if up > 80 {
				s.NACKs = up
			}
		}, 70, 82, "packets asked for again"},
		"few repairs": {func(up int64, s *Sample) {
			if up > 80 {
				s.NACKs = up / 4
			}
		}, 0, 0, ""},
		"one slow second": {func(up int64, s *Sample) {
			if up == 100 {
				s.Join, s.Received = 5, 0
			}
		}, 0, 0, ""},
		"a delay that is not noticed": {func(up int64, s *Sample) {
			if up > 80 {
				s.Chunk = 0.04
			}
		}, 0, 0, ""},
		"connecting": {func(up int64, s *Sample) {
			switch {
			case up == 200:
				s.Join = 0 // none comes any more
			case up > 150:
				s.Join = 2
			}
		}, 140, 154, "time to connect (99th percentile, s)"},
		"chunks that come later, and are always so late": {func(up int64, s *Sample) {
			if s.Chunk = 0; up > 100 {
				s.Chunk = 0.06
			}
		}, 0, 0, ""},
		"clients that come later, from far": {func(up int64, s *Sample) {
			if s.Join = 0; up > 60 {
				s.Join = 0.3
			}
		}, 0, 0, ""},
		"few clients": {func(up int64, s *Sample) {
			if s.Up /= 25; up > 100 {
				s.Received /= 2
			}
		}, 0, 0, ""},
		"the arms' own": {func(up int64, s *Sample) {
			if up > 100 {
				s.Received, s.Spoiled = 0, []string{"an arm's processors were busy"}
			}
		}, 0, 0, ""},
	} {
		k := ramp(c.of).knee()
		if k == nil {
			if c.most > 0 {
				t.Errorf("%s: no knee", name)
			}
			continue
		}
		if k.Clients < c.least || k.Clients > c.most || k.Measure != c.measure {
			t.Errorf("%s: %+v", name, k)
		}
	}
	if k := (&Result{}).knee(); k != nil {
		t.Errorf("a run without samples has %+v", k)
	}
	short := ramp(func(int64, *Sample) {})
	short.Samples = slices.Clip(short.Samples[:kneeWindow-1])
	if k := short.knee(); k != nil {
		t.Errorf("a run of %d seconds has %+v", kneeWindow-1, k)
	}
}
