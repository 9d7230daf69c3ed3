//go:build unix

package procstat

import "testing"

// TestCPUGrows: what is used is counted, and nothing of it is ever taken back.
func TestCPUGrows(t *testing.T) {
	before := CPU()
	if before == 0 {
		t.Fatal("nothing was used to get here")
	}
	last := before
	for last < before+20e6 {
		now := CPU()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
}
