package emulator

import (
	"math"
	"time"
)

// The two parameters of CoDel, as RFC 8289 recommends them.
const (
	codelTarget   = 5 * time.Millisecond
	codelInterval = 100 * time.Millisecond
)

// codel is the control law of RFC 8289 at the exit of a queue: when packets have waited longer than the target for
// a whole interval, it drops one, and the next ones ever sooner, until the wait is short again.
type codel struct {
	above    time.Duration // when the wait will have been too long for an interval; 0 while it is short
	next     time.Duration // when the next packet is to be dropped
	count    int           // drops since dropping began
	last     int           // count when dropping began
	dropping bool
}

func (c *codel) pop(f *fifo, now time.Duration, drop func(*Packet)) *Packet {
	p, late := c.look(f, now)
	if c.dropping {
		if !late {
			c.dropping = false
		}
		for c.dropping && now >= c.next {
			drop(p)
			c.count++
			if p, late = c.look(f, now); late {
				c.next = law(c.next, c.count)
			} else {
				c.dropping = false
			}
		}
		return p
	}
	if !late {
		return p
	}
	drop(p)
	p, _ = c.look(f, now)
	c.dropping = true
	// Soon after the last time, go on near the rate of drops that held then.
	if delta := c.count - c.last; delta > 1 && now-c.next < 16*codelInterval {
		c.count = delta
	} else {
		c.count = 1
	}
	c.next = law(now, c.count)
	c.last = c.count
	return p
}

// look takes the first packet and says whether packets have waited too long for a whole interval.
func (c *codel) look(f *fifo, now time.Duration) (p *Packet, late bool) {
	p = f.take()
	if p == nil {
		c.above = 0
		return nil, false
	}
	if now-p.queued < codelTarget || f.bytes <= quantum {
		c.above = 0
		return p, false
	}
	if c.above == 0 {
		c.above = now + codelInterval
		return p, false
	}
	return p, now >= c.above
}

func law(from time.Duration, count int) time.Duration {
	return from + time.Duration(float64(codelInterval)/math.Sqrt(float64(count)))
}
