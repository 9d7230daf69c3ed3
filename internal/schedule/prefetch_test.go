package schedule

import (
	"math/rand/v2"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

func TestPrefetchVectors(t *testing.T) {
	v := spec.Vectors[struct {
		Cases []struct {
			Name, Why string
			Input     Ahead
			Segments  int
		}
	}](t, "prefetch.json")
	for _, c := range v.Cases {
		if got := Prefetch(c.Input); got != c.Segments {
			t.Errorf("%s: %d segments, want %d (%s)", c.Name, got, c.Segments, c.Why)
		}
	}
}

// TestNoMoreIsLostThanTheBudget has viewers that lose all that they fetch ahead, again and again: nearly all that they may, and no more.
func TestNoMoreIsLostThanTheBudget(t *testing.T) {
	var lost, allowed int64
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		in := Ahead{Allowed: true, Role: "full", WasteBytes: r.Int64N(20 << 20), Battery: r.IntN(4) == 0}
		most := in.WasteBytes
		if most == 0 {
			most = defaultWaste
		}
		for range 50 {
			in.Received += r.Int64N(4 << 20)
			in.BufferedUs, in.Segments = r.Int64N(30_000_000), nil
			for range r.IntN(12) {
				in.Segments = append(in.Segments, AheadSegment{DurationUs: 1 + r.Int64N(8_000_000), Bytes: r.Int64N(2 << 20)})
			}
			for _, s := range in.Segments[:Prefetch(in)] {
				in.Wasted += s.Bytes
				in.Received += s.Bytes
			}
		}
		most = min(most, firstWaste+in.Received/10)
		if in.Battery {
			most /= 4
		}
		if in.Wasted > most {
			t.Fatalf("seed %d: %d bytes of %d were lost, %d were allowed", seed, in.Wasted, in.Received, most)
		}
		lost, allowed = lost+in.Wasted, allowed+most
	}
	if lost < allowed/2 {
		t.Errorf("%d bytes of %d that may be lost were fetched ahead", lost, allowed)
	}
}
