//go:build race

package ledbat_test

const raceDetector = true
