//go:build !race

package ledbat_test

const raceDetector = false
