package ledbat

// host is what both sides of the transport share: a controller for all links of a host, and what the links' delays say together.
type host struct {
	controller Controller
	parts      int64
	members    []*delays

	flight    int64 // bytes sent and not acked, or asked for and not come
	next      int64 // pacing: before this moment nothing goes out
	limitedAt int64 // when the window was last hit
	lastAt    int64 // when something was last sent or acked
	yields    int64
	clear     int64 // largest window with which the median saw the line not full
	far       int64 // what takes longer there and back than this is not on the host's line any more

	view    Signal // as of the last ack: queuing, target, base, RTT over the links
	scratch []int64
}

func newHost(l Controller) host {
	return host{controller: l, parts: 1, limitedAt: -never, lastAt: -never, clear: InitialWindow, far: 2 * firstRTT, view: Signal{Target: MaxTarget, Parts: 1}}
}

func (h *host) leave(d *delays, flight int64) {
	for i, m := range h.members {
		if m == d {
			h.members = append(h.members[:i], h.members[i+1:]...)
			h.flight -= flight
			return
		}
	}
}

// alone says whether d is the only link that has been heard of lately.
func (h *host) alone(now int64, d *delays) bool {
	for _, m := range h.members {
		if m != d && m.fresh(now) {
			return false
		}
	}
	return true
}

// restart begins anew after the host's way into the network changed.
func (h *host) restart(l Controller) {
	h.controller, h.next, h.limitedAt, h.clear, h.far, h.view = l, 0, -never, InitialWindow, 2*firstRTT, Signal{Target: MaxTarget, Parts: h.parts}
}

// wake lets the controller hear of an idle time, when there was one.
func (h *host) wake(now int64) {
	if h.flight == 0 && now-h.lastAt > max(idleMin, 4*h.view.RTT) && h.controller.Window() >= Packet {
		h.look(now)
		h.controller.OnIdle(h.view)
	}
	h.lastAt = now
}

func (h *host) stats() Stats {
	return Stats{
		State: h.controller.State(), Window: h.controller.Window(), Flight: h.flight,
		Queuing: h.view.Queuing, Target: h.view.Target, Base: h.view.Base, RTT: h.view.RTT,
		Slowdowns: h.controller.Slowdowns(), Yields: h.yields,
	}
}

// look makes out what the links that were heard of lately say together. The host's own queue shows on all of them, a queue
// farther out, or a lie, on one: the median, and of two the lesser one.
func (h *host) look(now int64) {
	h.view.Now, h.view.Parts = now, h.parts
	h.view.Limited = now-h.limitedAt <= max(h.view.RTT, firstRTT)
	rtt := h.median(now, func(d *delays) int64 { return d.srtt })
	if rtt < 0 {
		return
	}
	h.far = max(4*h.shortest(now), 2*firstRTT)
	h.view.RTT = min(rtt, h.far)
	h.view.Base = min(h.median(now, (*delays).baseDelay), h.far)
	h.view.Target = targetOf(h.view.Base)
	h.weigh(now)
}

// weigh takes the median of the queues. Where it says that the window is too large for one that the line was not full with, a
// link that sees no queue refutes those that claim one, until they take it back.
func (h *host) weigh(now int64) {
	newest := h.newest().queuing()
	said := func(d *delays) int64 {
		if d.current(now) {
			return d.queuing()
		}
		return min(d.queuing(), newest) // it may have gone since; had it come, those that send would see it
	}
	h.view.Queuing = h.median(now, said)
	window := h.controller.Window()
	if h.controller.State() == SlowStart {
		window /= 2 // what is sent shows a round trip and a half later
	}
	if 2*h.view.Queuing < h.view.Target {
		h.clear = max(h.clear, window)
	}
	h.refute(now)
	if window >= h.clear {
		return
	}
	if q := h.median(now, func(d *delays) int64 {
		if d.refuted {
			return none
		}
		return said(d)
	}); q >= 0 {
		h.view.Queuing = min(h.view.Queuing, q)
	}
}

// refute notes whose queue is not the host's: another link sees none now.
func (h *host) refute(now int64) {
	least := h.leastQueue(now)
	for _, d := range h.members {
		q := d.queuing()
		d.refuted = 2*q >= h.view.Target && (d.refuted || 2*least < h.view.Target && 2*(q-least) > h.view.Target)
	}
}

// shortest is the least round trip of the links that speak.
func (h *host) shortest(now int64) int64 {
	rtt := int64(never)
	for _, d := range h.members {
		if d.fresh(now) {
			rtt = min(rtt, d.srtt)
		}
	}
	return rtt
}

// newest is the link sampled last.
func (h *host) newest() *delays {
	d := h.members[0]
	for _, m := range h.members[1:] {
		if m.sampledAt > d.sampledAt {
			d = m
		}
	}
	return d
}

// leastQueue is the least queuing delay of the links whose samples are of now; never if there are none. The host's own queue
// is no longer than that.
func (h *host) leastQueue(now int64) int64 {
	q := int64(never)
	for _, d := range h.members {
		if d.fresh(now) && d.current(now) {
			q = min(q, d.queuing())
		}
	}
	return q
}

// none is what no link says.
const none = -1

// median is of what the links say that were heard of lately; of what is below zero nothing is counted.
func (h *host) median(now int64, of func(*delays) int64) int64 {
	list := h.scratch[:0]
	for _, d := range h.members {
		if !d.fresh(now) {
			continue
		}
		v, i := of(d), len(list)
		if v < 0 {
			continue
		}
		list = append(list, v)
		for ; i > 0 && list[i-1] > v; i-- {
			list[i] = list[i-1]
		}
		list[i] = v
	}
	h.scratch = list
	if len(list) == 0 {
		return none
	}
	return list[(len(list)-1)/2]
}

// act lets the host's controller hear, and counts when it gives way.
func (h *host) act(hear func(Signal), s Signal) {
	before := h.controller.Window()
	hear(s)
	after := h.controller.Window()
	if before > Packet && after <= Packet {
		h.yields++
	}
	if before < Packet && after >= Packet { // the long wait for the next probe is over
		h.next = min(h.next, s.Now)
	}
}
