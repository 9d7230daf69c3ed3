package ledbat

// controller is LEDBAT++ with what the spec changes in it.
type controller struct {
	host bool // runs slowdowns; the cap of a path does not

	window, ssthresh int64
	credit           int64 // part of a byte that the window is owed, in bytes × window
	state            State

	lossAt    int64 // when the window was last cut for a loss; -never: not yet
	room      int64 // the queue, µs, to which one packet too many came; 0: none yet
	fullAt    int64 // when that was
	crowdedAt int64 // when the queue last held half the target, or a packet was lost
	slowAt    int64 // when the next slowdown is due; never: none
	beganAt   int64 // when the current slowdown began
	until     int64 // when its hold ends
	slowdowns int64
}

// NewController makes the controller of the spec: the one of a host, or of a path's cap.
func NewController(host bool) Controller { return newController(host) }

func newController(host bool) *controller {
	return &controller{
		host: host, window: InitialWindow, ssthresh: MaxWindow, state: SlowStart,
		lossAt: -never, crowdedAt: -never, slowAt: never,
	}
}

func (c *controller) Window() int64    { return c.window }
func (c *controller) State() State     { return c.state }
func (c *controller) Slowdowns() int64 { return c.slowdowns }

func (c *controller) OnAck(s Signal) {
	if c.room > 0 && s.Now-c.fullAt < roomTime {
		s.Target = min(s.Target, max(c.room*roomPart/100, leastTarget))
	}
	if 2*s.Queuing >= s.Target || c.crowdedAt == -never {
		c.crowdedAt = s.Now
	}
	switch c.state {
	case SlowStart:
		c.start(s)
	case Slowdown:
		if s.Now >= c.until {
			c.state = Ramp
		}
	case Ramp:
		c.ramp(s)
	case Avoidance:
		if s.Now >= c.slowAt && c.window > slowdownWindow {
			c.slow(s)
			return
		}
		c.steer(s)
	}
}

// start makes the window half as large again each round trip until the queue is seen: that is a round trip and a half later,
// and a window that doubles is then three times what the line takes.
func (c *controller) start(s Signal) {
	seen := 4*s.Queuing > 3*s.Target
	if s.Limited && !seen {
		c.grow(s.Acked / max(startPart, gainDivisor(s)))
	}
	if seen || c.window >= c.ssthresh {
		c.avoid(s.Now + 2*s.RTT)
	}
}

func (c *controller) avoid(slowAt int64) {
	c.state, c.credit = Avoidance, 0
	if c.host {
		c.slowAt = slowAt
	}
}

// slow begins a slowdown: the host's own queue drains, so that all flows on the line see the base delay.
func (c *controller) slow(s Signal) {
	c.state, c.beganAt, c.until = Slowdown, s.Now, s.Now+2*s.RTT
	c.ssthresh = c.window
	c.window = max(slowdownWindow, c.window/slowdownDepth)
	c.slowdowns++
}

// ramp leads back to where the slowdown began, or to where the queue is there again.
func (c *controller) ramp(s Signal) {
	if s.Limited {
		c.grow(s.Acked)
	}
	if c.window >= c.ssthresh || s.Queuing > s.Target {
		c.window = min(c.window, c.ssthresh)
		c.avoid(s.Now + c.rest(s))
	}
}

// steer is the control step: up by a packet each round trip below the target, down in proportion above it.
func (c *controller) steer(s Signal) {
	step := Packet / gainDivisor(s) / s.Parts
	if 2*s.Queuing > s.Target {
		step /= 2 // what is sent shows in the delay only after a round trip and a half
	}
	if !s.Limited {
		step = 0
	}
	floor := Packet / s.Parts
	switch {
	case s.Queuing >= s.Target:
		over, most := c.window*(s.Queuing-s.Target)/s.Target, max(c.window, floor)
		change := max(min(step, most-c.window)-over, -c.window/2)
		if change < 0 {
			change = there(change, s.Base+s.Queuing, s.RTT)
		}
		c.move(change, s.Acked)
	case step > 0 && c.window < floor:
		c.window, c.credit = floor, 0
	case step > 0:
		// A packet each round trip would take 13 s to fill 100 Mbit/s again.
		if s.Now-c.crowdedAt >= fastAfter*(s.Base+s.Queuing) {
			step = max(step, there(c.window/fastPart*(s.Target-s.Queuing)/s.Target, s.Base+s.Target, s.RTT))
		}
		c.move(step, s.Acked)
	}
}

// there is the part of a change that falls to the way there. A queue on the way back makes the round trip longer: what is in flight there
// is part of the window, and no part of the queue. Without this a change in proportion to the window would be a multiple of what the queue
// asks for, and its effect would be seen that much later.
func there(change, trip, rtt int64) int64 { return change * min(trip, rtt) / max(1, rtt) }

// move changes the window by so much per round trip, in the part that the acked bytes are of the window.
func (c *controller) move(perRTT, acked int64) {
	c.credit += perRTT * min(acked, c.window)
	step := c.credit / c.window
	c.credit -= step * c.window
	c.grow(step)
}

func (c *controller) grow(n int64) { c.window = min(max(c.window+n, MinWindow), MaxWindow) }

// gainDivisor goes by the path's own target, not by what a host bears of it.
func gainDivisor(s Signal) int64 {
	base := max(1, s.Base)
	return min(16, max(1, (2*targetOf(base)+base-1)/base))
}

// OnLoss cuts the window little where no queue was, for then the loss is the path's nature, and more where there was one. A
// queue above the target that overflows is the doing of other traffic; one below it is as long as it can be.
func (c *controller) OnLoss(s Signal) {
	if s.Now-c.lossAt < s.RTT || c.state == Slowdown {
		return
	}
	c.lossAt, c.crowdedAt = s.Now, s.Now
	half := s.Target / 2
	if 4*s.Queuing >= s.Target {
		c.room, c.fullAt = s.Queuing, s.Now
	}
	if s.Queuing >= s.Target {
		c.grow(-c.window / 2)
	} else {
		c.grow(-c.window * (lossLeast*half + (lossMost-lossLeast)*min(half, s.Queuing)) / (1000 * half))
	}
	c.credit = 0
	switch c.state {
	case SlowStart:
		c.avoid(s.Now + 2*s.RTT)
	case Ramp:
		c.avoid(s.Now + c.rest(s))
	}
}

// rest is the time from a slowdown until the next.
func (c *controller) rest(s Signal) int64 {
	return min(slowdownFactor*max(s.Now-c.beganAt, s.RTT), slowdownMost)
}

func (c *controller) OnTimeout(s Signal) {
	c.ssthresh = max(c.window/2, slowdownWindow)
	c.window, c.credit = min(c.window, max(Packet/s.Parts, MinWindow)), 0
	c.state, c.lossAt, c.crowdedAt, c.beganAt = Ramp, s.Now, s.Now, s.Now
}

// OnIdle starts again from the initial window: what was known of the queue is old.
func (c *controller) OnIdle(s Signal) {
	if c.state == SlowStart || c.window <= InitialWindow {
		return
	}
	c.ssthresh = max(c.window, c.ssthreshOfPause())
	c.window, c.credit = InitialWindow, 0
	c.state, c.beganAt, c.crowdedAt = Ramp, s.Now, s.Now
}

// ssthreshOfPause keeps the goal of a slowdown that the pause came into.
func (c *controller) ssthreshOfPause() int64 {
	if c.state == Slowdown || c.state == Ramp {
		return c.ssthresh
	}
	return 0
}
