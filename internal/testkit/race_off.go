//go:build !race

package testkit

// RaceDetector says that the race detector is in this program.
const RaceDetector = false
