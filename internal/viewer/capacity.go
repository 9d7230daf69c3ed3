package viewer

import (
	"math"
	"time"
)

const (
	leastSample = 65_536 // bytes of a transfer that say something of the line
	// fallen: the short mean below this share of the long one says that the line has become slower.
	fallen = 0.8
	// margin is what is added while little has been measured.
	margin = 1.0 / 16
	// gapShare: a sample stands for the time since the last one too, since a player alone would have measured in it.
	gapShare = 1.0 / 16
	// slack: what came from peers is counted late, by whole pieces.
	slack = 1.25
)

var halfLives = [2]float64{3, 9} // seconds of transfer time

// capacity estimates the downlink from transfers of the origin (spec/schedule.md, "Capacity told to the player").
type capacity struct {
	means [2]mean
	at    time.Time // of the last segment's sample; zero before the first
}

type mean struct{ value, weight float64 }

func (c *capacity) put(bps, seconds float64) {
	for i := range c.means {
		m := &c.means[i]
		keep := math.Pow(0.5, seconds/halfLives[i])
		m.value = keep*m.value + (1-keep)*bps
		m.weight = keep*m.weight + 1 - keep
	}
}

// sample takes a transfer that had the line to itself, timed from its first byte to its last. now is zero for what was
// broken off.
func (c *capacity) sample(bytes int64, took time.Duration, now time.Time) {
	if bytes < leastSample {
		return
	}
	seconds := max(took, time.Millisecond).Seconds()
	weight := seconds
	if !now.IsZero() {
		if !c.at.IsZero() {
			weight = max(weight, now.Sub(c.at).Seconds()*gapShare)
		}
		c.at = now
	}
	c.put(float64(bytes)*8/seconds, weight)
}

// bound takes a transfer beside which others bytes came from peers. They may have shared the line, or come by a wider one:
// the capacity is not below what the origin sent, nor above all that came.
func (c *capacity) bound(bytes int64, took time.Duration, others int64) {
	known := c.estimate()
	if known == 0 || bytes+others < leastSample || took < time.Millisecond {
		return
	}
	least, most := float64(bytes)*8/took.Seconds(), slack*float64(bytes+others)*8/took.Seconds()
	if known < least {
		c.put(least, took.Seconds())
	} else if known > most {
		c.put(most, took.Seconds())
	}
}

// estimate is in bits per second, 0 unknown.
func (c *capacity) estimate() float64 {
	weight := c.means[0].weight
	if weight == 0 {
		return 0
	}
	// A weight that has not grown to 1 would pull the mean towards zero.
	short, long := c.means[0].value/weight, c.means[1].value/c.means[1].weight
	if short >= fallen*long {
		short = long
	}
	return short * (1 + margin*(1-weight))
}
