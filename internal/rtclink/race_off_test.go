//go:build !race

package rtclink

const raceEnabled = false
