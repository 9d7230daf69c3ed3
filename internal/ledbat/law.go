package ledbat

// law is LEDBAT++ with what the spec changes in it.
type law struct {
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

// NewLaw makes the law of the spec: the one of a host, or of a path's cap.
func NewLaw(host bool) Law {
	return &law{
		host: host, window: InitialWindow, ssthresh: MaxWindow, state: SlowStart,
		lossAt: -never, crowdedAt: -never, slowAt: never,
	}
}

func (l *law) Window() int64    { return l.window }
func (l *law) State() State     { return l.state }
func (l *law) Slowdowns() int64 { return l.slowdowns }

func (l *law) OnAck(s Signal) {
	if l.room > 0 && s.Now-l.fullAt < roomTime {
		s.Target = min(s.Target, max(l.room*roomPart/100, leastTarget))
	}
	if 2*s.Queuing >= s.Target || l.crowdedAt == -never {
		l.crowdedAt = s.Now
	}
	switch l.state {
	case SlowStart:
		l.start(s)
	case Slowdown:
		if s.Now >= l.until {
			l.state = Ramp
		}
	case Ramp:
		l.ramp(s)
	case Avoidance:
		if s.Now >= l.slowAt && l.window > slowdownWindow {
			l.slow(s)
			return
		}
		l.steer(s)
	}
}

// start makes the window half as large again each round trip until the queue is seen: that is a round trip and a half later,
// and a window that doubles is then three times what the line takes.
func (l *law) start(s Signal) {
	seen := 4*s.Queuing > 3*s.Target
	if s.Limited && !seen {
		l.grow(s.Acked / max(startPart, gainDivisor(s)))
	}
	if seen || l.window >= l.ssthresh {
		l.avoid(s.Now + 2*s.RTT)
	}
}

func (l *law) avoid(slowAt int64) {
	l.state, l.credit = Avoidance, 0
	if l.host {
		l.slowAt = slowAt
	}
}

// slow begins a slowdown: the host's own queue drains, so that everybody on the line sees the base delay.
func (l *law) slow(s Signal) {
	l.state, l.beganAt, l.until = Slowdown, s.Now, s.Now+2*s.RTT
	l.ssthresh = l.window
	l.window = max(slowdownWindow, l.window/slowdownDepth)
	l.slowdowns++
}

// ramp leads back to where the slowdown began, or to where the queue is there again.
func (l *law) ramp(s Signal) {
	if s.Limited {
		l.grow(s.Acked)
	}
	if l.window >= l.ssthresh || s.Queuing > s.Target {
		l.window = min(l.window, l.ssthresh)
		l.avoid(s.Now + l.rest(s))
	}
}

// steer is the law proper: up by a packet each round trip below the target, down in proportion above it.
func (l *law) steer(s Signal) {
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
		if l.window <= Packet { // given way: there is no queue of our own to drain
			l.slowAt = max(l.slowAt, s.Now+slowdownFloor*s.RTT)
		}
		over, most := l.window*(s.Queuing-s.Target)/s.Target, max(l.window, floor)
		change := max(min(step, most-l.window)-over, -l.window/2)
		if change < 0 {
			change = there(change, s.Base+s.Queuing, s.RTT)
		}
		l.move(change, s.Acked)
	case step > 0 && l.window < floor:
		l.window, l.credit = floor, 0
	case step > 0:
		// A packet each round trip would take 13 s to fill 100 Mbit/s again.
		if s.Now-l.crowdedAt >= fastAfter*(s.Base+s.Queuing) {
			step = max(step, there(l.window/fastPart*(s.Target-s.Queuing)/s.Target, s.Base+s.Target, s.RTT))
		}
		l.move(step, s.Acked)
	}
}

// there is the part of a change that falls to the way there, of a round trip that a queue on the way back makes longer. All
// that is in flight on the way back is window too, but no queue: a change in proportion to the window is a multiple of
// what the queue asks for, and what it does is seen a multiple of the time later.
func there(change, trip, rtt int64) int64 { return change * min(trip, rtt) / max(1, rtt) }

// move changes the window by so much per round trip, in the part that the acked bytes are of the window.
func (l *law) move(perRTT, acked int64) {
	l.credit += perRTT * min(acked, l.window)
	step := l.credit / l.window
	l.credit -= step * l.window
	l.grow(step)
}

func (l *law) grow(n int64) { l.window = min(max(l.window+n, MinWindow), MaxWindow) }

// gainDivisor goes by the path's own target, not by what a host bears of it.
func gainDivisor(s Signal) int64 {
	base := max(1, s.Base)
	return min(16, max(1, (2*targetOf(base)+base-1)/base))
}

// OnLoss cuts the window little where no queue was, for then the loss is the path's nature, and more where there was one. A
// queue above the target that overflows is somebody else's doing; one below it is as long as it can be.
func (l *law) OnLoss(s Signal) {
	if s.Now-l.lossAt < s.RTT || l.state == Slowdown {
		return
	}
	l.lossAt, l.crowdedAt = s.Now, s.Now
	half := s.Target / 2
	if 4*s.Queuing >= s.Target {
		l.room, l.fullAt = s.Queuing, s.Now
	}
	if s.Queuing >= s.Target {
		l.grow(-l.window / 2)
	} else {
		l.grow(-l.window * (lossLeast*half + (lossMost-lossLeast)*min(half, s.Queuing)) / (1000 * half))
	}
	l.credit = 0
	switch l.state {
	case SlowStart:
		l.avoid(s.Now + 2*s.RTT)
	case Ramp:
		l.avoid(s.Now + l.rest(s))
	}
}

// rest is the time from a slowdown until the next.
func (l *law) rest(s Signal) int64 {
	return max(min(slowdownFactor*(s.Now-l.beganAt), slowdownMost), slowdownFloor*s.RTT)
}

func (l *law) OnTimeout(s Signal) {
	l.ssthresh = max(l.window/2, slowdownWindow)
	l.window, l.credit = min(l.window, max(Packet/s.Parts, MinWindow)), 0
	l.state, l.lossAt, l.crowdedAt, l.beganAt = Ramp, s.Now, s.Now, s.Now
}

// OnIdle starts again from the initial window: what was known of the queue is old.
func (l *law) OnIdle(s Signal) {
	if l.state == SlowStart || l.window <= InitialWindow {
		return
	}
	l.ssthresh = max(l.window, l.ssthreshOfPause())
	l.window, l.credit = InitialWindow, 0
	l.state, l.beganAt, l.crowdedAt = Ramp, s.Now, s.Now
}

// ssthreshOfPause keeps the goal of a slowdown that the pause came into.
func (l *law) ssthreshOfPause() int64 {
	if l.state == Slowdown || l.state == Ramp {
		return l.ssthresh
	}
	return 0
}
