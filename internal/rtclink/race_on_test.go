//go:build race

package rtclink

// raceEnabled says that the race detector's own memory is in every figure.
const raceEnabled = true
