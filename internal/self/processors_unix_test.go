//go:build unix

package self

import "testing"

// TestProcessorsGrow: what is used is counted, and nothing of it is ever taken back.
func TestProcessorsGrow(t *testing.T) {
	before := Processors()
	if before == 0 {
		t.Fatal("nothing was used to get here")
	}
	last := before
	for last < before+20e6 {
		now := Processors()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
}
