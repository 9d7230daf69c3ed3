package viewer

import (
	"math"
	"time"
)

const (
	leastSample = 65_536 // bytes of a transfer that say something of the line
	// fallen: the short mean below this share of the long one says that the line has become slower.
	fallen = 0.8
	// margin is what the player hears on top while little has been measured: too low an estimate would stay, since peers'
	// segments teach nothing; too high a one meets the origin.
	margin = 1.0 / 16
	// gapShare: a sample stands for the time since the last one too, since a player alone would have measured in it.
	gapShare = 1.0 / 16
	// few: peers that sent less than this share of the bytes took nothing from the line.
	few = 1.0 / 16
	// slack: what came from peers is counted late, by whole pieces.
	slack = 1.25
)

var halfLives = [2]float64{3, 9} // seconds of transfer time

// capacity estimates the downlink from transfers of the origin (spec/schedule.md, "Capacity told to the player").
type capacity struct {
	means [2]mean
	at    time.Time // of the last whole, uncrowded segment; zero before the first
}

type mean struct{ value, weight float64 }

// sample takes a transfer, timed from its first byte to its last; now is zero for what was no whole segment. others are
// bytes from peers meanwhile: if those are many, they may have shared the line or come by a wider one, and the capacity is
// only known not to be below what the origin sent, nor above all that came.
func (c *capacity) sample(bytes int64, took time.Duration, others int64, now time.Time) {
	if bytes < leastSample {
		return
	}
	seconds := max(took, time.Millisecond).Seconds()
	value, weight := float64(bytes)*8/seconds, seconds
	if crowded := float64(others) > float64(bytes)*few; crowded {
		known := c.estimate()
		if known == 0 {
			return // nothing to hold it against
		}
		most := value * slack * (1 + float64(others)/float64(bytes))
		if known >= value && known <= most {
			return
		}
		value = max(value, min(known, most))
	} else if !now.IsZero() {
		if !c.at.IsZero() {
			weight = max(weight, now.Sub(c.at).Seconds()*gapShare)
		}
		c.at = now
	}
	for i := range c.means {
		m := &c.means[i]
		keep := math.Pow(0.5, weight/halfLives[i])
		m.value = keep*m.value + (1-keep)*value
		m.weight = keep*m.weight + 1 - keep
	}
}

// estimate is in bits per second, 0 unknown.
func (c *capacity) estimate() float64 {
	if c.means[0].weight == 0 {
		return 0
	}
	// A weight that has not grown to 1 would pull the mean towards zero.
	short, long := c.means[0].value/c.means[0].weight, c.means[1].value/c.means[1].weight
	if short < fallen*long {
		return short
	}
	return long
}

// told is what the player hears: with a margin, the larger the less has been measured.
func (c *capacity) told() float64 { return c.estimate() * (1 + margin*(1-c.means[0].weight)) }
