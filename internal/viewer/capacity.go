package viewer

import (
	"math"
	"time"
)

// leastSample is the least bytes of a transfer that says something of the line.
const leastSample = 65_536

// capacity estimates the downlink from transfers of the origin (spec/schedule.md, "Capacity told to the player").
type capacity struct {
	means [2]mean
	at    time.Time // of the last sample
	known bool
}

type mean struct{ value, weight float64 }

var halfLives = [2]float64{3, 9} // seconds of transfer time

// sample takes one transfer, timed from its first byte to its last.
func (c *capacity) sample(bytes int, took time.Duration, now time.Time) {
	if bytes < leastSample {
		return
	}
	c.at, c.known = now, true
	seconds := max(took, time.Millisecond).Seconds()
	for i := range c.means {
		m := &c.means[i]
		keep := math.Pow(0.5, seconds/halfLives[i])
		m.value = keep*m.value + (1-keep)*float64(bytes)*8/seconds
		m.weight = keep*m.weight + 1 - keep
	}
}

// estimate is in bits per second, 0 unknown.
func (c *capacity) estimate() float64 {
	if !c.known {
		return 0
	}
	// A weight that has not grown to 1 would pull the mean towards zero.
	return min(c.means[0].value/c.means[0].weight, c.means[1].value/c.means[1].weight)
}
