//go:build race

package testkit

// RaceDetector says that the race detector is in this program: what runs in one goroutine takes eight times as long and has nothing to
// find, and its own memory is in every figure.
const RaceDetector = true
