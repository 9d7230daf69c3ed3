package ledbat

// What tunes the ceiling; docs/experiments/background-transport.md has the reasons.
const (
	ceilingTime  = 250_000   // µs of a stretch at least, over which rates are taken
	ceilingPause = 1_000_000 // µs: a stretch that lasted longer had a pause in it
	ceilingIdle  = 25_000    // µs, or a round trip, with nothing in flight nor held by pacing: what follows is a stretch of its own
	ceilingQueue = 10_000    // µs of queue on all links, or a packet's time, that say that the line is full
	ceilingDrain = 60_000    // µs of queue that hold back half of the rate; less holds back in proportion
	ceilingKeep  = 95        // percent of the best rate of the last one or two times of ceilingBest
	ceilingBest  = 5_000_000 // µs
	ceilingSlow  = 32        // it grows by this part in a stretch
	ceilingFast  = 16        // and by this one when the line was not full for ceilingLong
	ceilingLong  = 2_000_000 // µs
	besideMost   = 100_000   // µs by which what goes out besides puts off the next message at most, all of it together
)

// ceiling is the rate that a host with foreground does not pass: what its line was seen to carry while full. A window is made
// for the way of the link that filled it; where the next link's way is shorter, or its acks wait for nothing, the same window
// is twice what the line takes. A rate is the line's, whatever the way.
type ceiling struct {
	on   bool  // the host had foreground once
	rate int64 // bytes/s; 0: the line never was full

	sent, acked int64 // bytes, in the current stretch
	beside      int64 // bytes that went out outside the controller in it
	since       int64 // when it began
	asked       int64 // bytes/s that the window asked for when something last went out
	binding     bool  // the ceiling was less
	pressed     bool  // and something went out after that in this stretch

	full   bool  // a queue stands
	queue  int64 // µs of it
	fullAt int64 // when one last stood at the end of a stretch

	best, before int64 // highest rates of the current time and of the one before
	bestAt       int64 // when the current one began
}

// of bounds a rate that the window asks for.
func (c *ceiling) of(rate int64) int64 {
	if !c.on || c.rate == 0 {
		return rate
	}
	most := c.rate
	if c.full {
		most -= most * min(c.queue, ceilingDrain) / (2 * ceilingDrain)
	}
	return min(rate, most)
}

// send notes a message, and gives the rate for the time until the next.
func (c *ceiling) send(size, asked int64) int64 {
	c.pressed = c.pressed || c.binding
	c.sent += size
	rate := c.of(asked)
	c.asked, c.binding = asked, rate < asked
	return rate
}

// anew begins a stretch.
func (c *ceiling) anew(now int64) {
	c.sent, c.acked, c.beside, c.since, c.pressed = 0, 0, 0, now, false
}

// besides notes bytes that went out outside the controller, and gives the time that they take of the line.
func (c *ceiling) besides(size int64) int64 {
	if c.on {
		c.beside += size
	}
	if c.rate == 0 {
		return 0
	}
	return size * 1e6 / c.rate
}

// hear takes in an ack: so many bytes, and the least queue of all links that were sampled in the last round trip.
func (c *ceiling) hear(now, acked, queue, rtt int64) {
	c.acked += acked
	known := queue != never
	if known {
		least := int64(ceilingQueue)
		if c.rate > 0 {
			least = max(least, Packet*1e6/c.rate)
		}
		c.full, c.queue = queue >= least, queue
	}
	span := now - c.since
	if span < max(rtt, ceilingTime) {
		return
	}
	rate, pressed := (min(c.sent, c.acked)+c.beside)*1e6/span, c.pressed
	c.anew(now)
	if span > ceilingPause {
		return
	}
	if now-c.bestAt > ceilingBest {
		c.before, c.best, c.bestAt = c.best, 0, now
	}
	c.best = max(c.best, rate)
	if known {
		c.move(now, rate, pressed)
	}
}

// move takes the ceiling down to what came through a full line, and up where it held something back and no queue came of it.
// Where the window holds back more, a queue says nothing of it: it is another flow's.
func (c *ceiling) move(now, rate int64, pressed bool) {
	if c.full {
		c.fullAt = now
	}
	switch {
	case c.full && c.rate == 0: // in slow start the stretch began with less than the line carries
		c.rate = max(rate, c.asked/2)
	case c.full && pressed:
		keep := max(c.best, c.before) * ceilingKeep / 100
		c.rate = min(c.rate, max(rate, keep))
	case pressed && now-c.fullAt > ceilingLong:
		c.rate += c.rate / ceilingFast
	case pressed:
		c.rate += c.rate / ceilingSlow
	}
}
