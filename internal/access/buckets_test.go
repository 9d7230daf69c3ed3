package access

import (
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	now := time.Unix(1000, 0)
	b := Buckets[int]{Rate: 10, Burst: 20, Most: 2}
	takes := func(key int) (n int) {
		for b.Take(key, 1, now) {
			n++
		}
		return n
	}
	if n := takes(1); n != 20 {
		t.Errorf("%d at once, want 20", n)
	}
	if n := takes(2); n != 20 {
		t.Errorf("another key has %d, want 20", n)
	}
	now = now.Add(500 * time.Millisecond)
	if n := takes(1); n != 5 {
		t.Errorf("%d after half a second, want 5", n)
	}
	// Two keys are known and neither bucket is full again: all others share one.
	if n, m := takes(3), takes(4); n != 20 || m != 0 || b.Len() != 2 {
		t.Errorf("beyond the keys that are known: %d and %d, want 20 and 0; %d known", n, m, b.Len())
	}
	now = now.Add(3 * time.Second)
	if n := takes(3); n != 20 || b.Len() != 1 {
		t.Errorf("%d and %d known, want 20 and 1: what is full again is forgotten", n, b.Len())
	}
	now = now.Add(-time.Hour)
	if n := takes(3); n != 0 {
		t.Errorf("%d after the clock was put back, want 0", n)
	}
}
