package ledbat

// within is a controller that bears no more than a part of the base, within bounds, whatever the target.
type within struct {
	Controller
	least, most int64 // µs
}

// withinPart is that part of the base: one in so many.
const withinPart = 5

// HostWithin is a Config's Controller: that of the spec, whose host bears at most a fifth of the base, within these bounds (µs).
func HostWithin(least, most int64) func(host bool) Controller {
	return func(host bool) Controller {
		c := NewController(host)
		if host {
			return within{c, least, most}
		}
		return c
	}
}

// OnAck implements Controller.
func (w within) OnAck(s Signal) {
	s.Target = min(s.Target, w.most, max(w.least, s.Base/withinPart))
	w.Controller.OnAck(s)
}
