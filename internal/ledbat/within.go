package ledbat

// within is a controller that bears no more than a part of the base, within bounds, whatever the target, and half of a queue that other
// traffic overflows before it reaches that.
type within struct {
	*controller
	least, most int64 // µs

	short   int64 // the queue, µs, that overflowed below what is borne; 0: none yet
	shortAt int64 // when that was
	ownAt   int64 // when the queue was last one of its own making, or something was lost
}

const (
	withinPart = 5 // that part of the base: one in so many
	shortPart  = 2 // and of a short queue
	ownTrips   = 4 // round trips for which losses are of one overflow, or of the end of slow start: they are told while the queue falls
)

// HostWithin is a Config's Controller: that of the spec, whose host bears at most a fifth of the base, within these bounds (µs), and less
// of a short queue.
func HostWithin(least, most int64) func(host bool) Controller {
	return func(host bool) Controller {
		c := NewController(host)
		if host {
			return &within{controller: c.(*controller), least: least, most: most, ownAt: -never}
		}
		return c
	}
}

// bears is what a fifth of the base allows.
func (w *within) bears(s Signal) int64 { return min(s.Target, w.most, max(w.least, s.Base/withinPart)) }

// OnAck implements Controller.
func (w *within) OnAck(s Signal) {
	s.Target = w.bears(s)
	if w.short > 0 && s.Now-w.shortAt < roomTime {
		s.Target = min(s.Target, max(w.short/shortPart, leastTarget))
	}
	if w.state == SlowStart {
		w.ownAt = s.Now
	}
	w.controller.OnAck(s)
}

// OnLoss implements Controller. On a line of its own the host is turned back by the delay before the queue is full, and where it is full
// all the same, more than what is borne was seen. A loss beside less of a queue says that others fill it, whose least queue is part of the
// base: what is borne would never be seen.
func (w *within) OnLoss(s Signal) {
	bears := w.bears(s)
	short := s.Now-w.ownAt >= ownTrips*s.RTT && 4*s.Queuing >= bears && s.Queuing < bears
	w.ownAt = s.Now
	w.controller.OnLoss(s)
	if short {
		w.short, w.shortAt = s.Queuing, s.Now
		w.window = min(w.window, slowdownWindow) // it was larger than others can bear
	}
}
