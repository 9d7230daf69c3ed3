package ledbat

// within is a host's controller that bears no more than a part of the base, within bounds, whatever the target; and next to nothing
// beside a queue that others have made (spec/probe.md, Load that gives way).
type within struct {
	*controller
	least, most int64 // µs
	acked       int64 // bytes
	first       int64 // the base as the load began, µs
	fastest     int64 // bytes/s: the largest window by its round trip
	holds       bool  // others' queue was seen
	since       int64 // when that was
	seenAt      int64 // when it was seen last
}

const (
	withinPart = 5         // the part of the base that is borne: one in so many
	othersPart = 4         // and of that: a longer queue, while the host's own has drained, is others'
	othersMost = 2_000_000 // µs for which it has to be gone at most
)

// HostWithin is a Config's Controller: that of the spec, whose host bears at most a fifth of the base, within these bounds (µs).
func HostWithin(least, most int64) func(host bool) Controller {
	return func(host bool) Controller {
		c := newController(host)
		if host {
			return &within{controller: c, least: least, most: most}
		}
		return c
	}
}

// OnAck implements Controller.
func (w *within) OnAck(s Signal) {
	bears := min(w.most, max(w.least, s.Base/withinPart))
	w.fastest = max(w.fastest, w.window*1e6/max(1, s.RTT))
	// A packet takes its time on the line, which is not a queue.
	others := max(bears/othersPart, Packet*1e6/max(1, w.fastest))
	s.Target = min(s.Target, bears)
	if w.begins(s, others) {
		w.hold(s.Now, s.Now-othersMost)
	}
	if w.holds {
		w.bear(s, others)
		return
	}
	slowed := w.state == Slowdown
	w.controller.OnAck(s)
	if slowed && w.state == Ramp && s.Queuing >= others {
		w.hold(s.Now, s.Now)
	}
}

// begins says whether the base has fallen since the load began: what it began beside was a queue.
func (w *within) begins(s Signal, others int64) bool {
	fell := w.acked >= InitialWindow && s.Base+others <= w.first
	if w.acked < InitialWindow || fell {
		w.first = s.Base
	}
	w.acked += s.Acked
	return fell
}

// hold begins to hold the window down, for a queue that was seen since then.
func (w *within) hold(now, since int64) {
	w.holds, w.since, w.seenAt = true, since, now
	w.state, w.window = Avoidance, min(w.window, slowdownWindow)
}

// bear keeps the window so small that what is seen of a queue stays others', until that has been gone for as long as it was seen.
func (w *within) bear(s Signal, others int64) {
	if s.Queuing >= others {
		w.seenAt = s.Now
	} else if s.Now-w.seenAt > min(w.seenAt-w.since, othersMost) {
		w.holds, w.state, w.beganAt = false, Ramp, s.Now
	}
	s.Target = min(s.Target, others)
	w.controller.OnAck(s)
	if w.holds {
		w.window = min(w.window, slowdownWindow)
	}
}
