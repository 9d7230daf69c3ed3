package testkit

import "testing"

// InOneGoroutine skips a long play of a virtual world with the race detector, which finds nothing where nothing runs beside anything, and
// takes eight times as long. Shorter plays run with it.
func InOneGoroutine(t *testing.T) {
	t.Helper()
	if RaceDetector {
		t.Skip("one goroutine, and long: `make go-long` plays it without the race detector")
	}
}
