package swarmbench

import (
	"reflect"
	"testing"
	"time"
)

func TestTraceHasItsShares(t *testing.T) {
	const n, film = 30, 5 * time.Minute
	for seed := range uint64(50) {
		plans := Trace(seed, n, film, film, 3)
		count := map[string]int{}
		var last time.Duration
		for _, p := range plans {
			count[p.Line.Name]++
			if p.Arrive < last || p.Arrive > film {
				t.Fatalf("seed %d: arrives at %v after %v", seed, p.Arrive, last)
			}
			last = p.Arrive
			if p.SeekAfter > 0 {
				count["seek"]++
			}
			if p.LeaveAfter > 0 {
				count["leave"]++
			}
			if p.Browser {
				count["browser"]++
			}
			if p.SeekTo > film || p.LeaveAfter > film || p.SeekAfter > film {
				t.Fatalf("seed %d: outside the film: %+v", seed, p)
			}
		}
		want := map[string]int{"5/1": 9, "20/5": 12, "100/40": 9, "seek": 9, "leave": 6, "browser": 3}
		if !reflect.DeepEqual(count, want) {
			t.Fatalf("seed %d: %v, want %v", seed, count, want)
		}
	}
}

func TestTraceIsItsSeed(t *testing.T) {
	a, b := Trace(7, 30, time.Minute, time.Minute, 3), Trace(7, 30, time.Minute, time.Minute, 3)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave two traces")
	}
	if reflect.DeepEqual(a, Trace(8, 30, time.Minute, time.Minute, 3)) {
		t.Error("two seeds gave the same trace")
	}
}

// TestArrivalsArePoisson: given their number, arrivals of a Poisson process are uniform; the mean gap and the share of
// short gaps are those of the exponential distribution.
func TestArrivalsArePoisson(t *testing.T) {
	const n = 2000
	plans := Trace(1, n, time.Hour, time.Hour, 0)
	mean := time.Hour / n
	short := 0
	for i := 1; i < n; i++ {
		if plans[i].Arrive-plans[i-1].Arrive < mean {
			short++
		}
	}
	// 1 − 1/e, with three standard deviations of a binomial count of 2000.
	if got := float64(short) / n; got < 0.632-0.033 || got > 0.632+0.033 {
		t.Errorf("%.3f of the gaps are below the mean, want 0.632", got)
	}
}
