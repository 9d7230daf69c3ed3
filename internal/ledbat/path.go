package ledbat

import (
	"cmp"
	"slices"
)

// Path is the sending side of one link of a host.
type Path struct {
	host    *Sender
	cap     Controller // nil: the link has none of its own
	delays  delays
	pending pending

	payload, maxMessage int64
	limitedAt           int64
	late                bool  // what it has in flight is not on the host's line any more, and is not in the host's flight
	backoff             int64 // timeouts in a row

	ackSentAt, ackCameAt int64 // of the newest ack: in the receiver's clock (32 bits), in ours
	acked                bool
}

// Open adds a link to the host.
func (h *Sender) Open(now int64, cfg PathConfig) *Path {
	p := &Path{
		host: h, cap: h.cfg.Controller(false), delays: newDelays(now, cfg.Base), limitedAt: -never,
		payload: cmp.Or(cfg.Payload, Packet), maxMessage: cmp.Or(cfg.MaxMessage, MaxMessage),
	}
	p.payload = min(p.payload, p.maxMessage)
	h.members, h.paths = append(h.members, &p.delays), append(h.paths, p)
	return p
}

// Close takes the link from the host; what it had in flight no longer counts.
func (p *Path) Close() {
	p.settle(false)
	p.host.leave(&p.delays, p.pending.flight)
	p.host.paths = slices.DeleteFunc(p.host.paths, func(o *Path) bool { return o == p })
	p.pending = pending{}
}

// Reset forgets what was measured of the link: its packets take another way now (another candidate pair, a VPN).
// Where it is the only link that sends, the host starts anew too. What was in flight counts no more: its acks would open the new
// window by what the old path carried.
func (p *Path) Reset(now int64) {
	h := p.host
	p.delays = newDelays(now, 0)
	p.giveUp()
	p.cap = h.cfg.Controller(false)
	p.acked, p.backoff, p.limitedAt = false, 0, -never
	if h.alone(now, &p.delays) {
		h.restart(h.cfg.Controller(true))
		h.bears, h.ceiling = tolerance{}, ceiling{}
	}
}

// MessageSize is the size of the next message in bytes, header included: what the host sends in MessageTime or in a
// quarter of the target, in whole packets, an even number of them from two on (a browser acknowledges every second packet
// at once), at most a quarter of the window. A message is a burst: it is queue that the host makes for itself.
func (p *Path) MessageSize() int64 {
	n := max(1, p.packets(min(MessageTime, p.host.view.Target/4), 4), p.few())
	if n > 1 {
		n -= n % 2
	}
	return n * p.payload
}

// packets is how many the host sends in a time, as far as they are no more than a part of the window.
func (p *Path) packets(time, part int64) int64 {
	rate := p.Window() * 1e6 / max(p.host.view.RTT, leastRTT)
	return min(rate*time/1e6, p.Window()/part, p.maxMessage) / p.payload
}

// few is how many packets of a message may take half as long again as the queue that stands: each message wakes both ends, and where
// there is a queue the burst is a part of it. A load that waits needs its acks, which come with every so many messages.
func (p *Path) few() int64 {
	if p.host.eager {
		return 0
	}
	return min(fewPackets, p.packets(min(fewTime, 3*p.host.view.Queuing/2), fewPart))
}

// Window is what may be in flight on this link alone: the host's window or the link's own cap, whichever is less.
func (p *Path) Window() int64 {
	w := p.host.controller.Window()
	if p.cap != nil {
		w = min(w, p.cap.Window())
	}
	return w
}

// MaySend says whether a message of size bytes may be sent on this link now. If not, at is the moment at which pacing
// allows it, or 0 when the window is full: then an ack or a timeout says.
func (p *Path) MaySend(now, size int64) (ok bool, at int64) {
	h := p.host
	switch {
	case p.late:
		return false, 0
	case h.flight > 0 && h.flight+size > h.controller.Window():
		h.limitedAt, h.held = now, true
		if p.pending.flight > 0 {
			return false, 0
		}
		return now >= h.lastAt+h.far, h.lastAt + h.far // others may hold acks back: one message tells
	case p.pending.flight > 0 && p.pending.flight+size > p.Window():
		p.limitedAt = now
		return false, 0
	case p.pending.len() >= maxPending:
		return false, 0
	case now < h.next:
		return false, h.next
	}
	return true, 0
}

// OnSent notes a message that was handed to the data channel, and gives what its header says. waiting is how many bytes
// of earlier messages still waited in the local buffer: behind more than a message of them the delay would be our own.
func (p *Path) OnSent(now, size, waiting int64) Stamp {
	h := p.host
	if h.flight == 0 && now-max(h.lastAt, h.next) > max(h.view.RTT, ceilingIdle) {
		h.ceiling.anew(now) // there was nothing to send: that says nothing of the line
	}
	h.wake(now)
	seq := p.pending.add(now, size, waiting > size)
	h.flight += size
	h.pace(now, size, p.rtt())
	full := h.flight+size > h.controller.Window()
	if full {
		h.limitedAt, h.held = now, true
	}
	if p.pending.flight+size > p.Window() {
		full, p.limitedAt = true, now
	}
	stamp := Stamp{
		Sequence: seq, SentAt: uint32(now),
		AckNow: full && (p.Window() < 8*p.payload || 4*h.view.Queuing < h.view.Target),
	}
	if p.acked && waiting <= size {
		stamp.Echo, stamp.Echoes = uint32(p.ackSentAt+now-p.ackCameAt), true
	}
	return stamp
}

// pace sets the earliest moment of the next message, at most MaxInterval away: a round trip of many seconds may be
// one late ack, and the next message tells. It makes up for late timers, up to burstTime. A message that waited for the
// window was not late: making up for that wait would be a burst with each ack.
func (h *Sender) pace(now, size, rtt int64) {
	late := int64(burstTime)
	if h.held {
		late = 0
	}
	h.held = false
	h.ceiling.on = h.ceiling.on || h.eager
	rate := h.ceiling.send(size, pacing(h.controller, rtt))
	h.next = min(max(h.next, now-late)+size*1e6/max(1, rate), now+MaxInterval)
	h.paced = h.next
}

// OnAck takes in an ack that came over the link.
func (p *Path) OnAck(now int64, a Ack) Outcome {
	h := p.host
	out, newest := p.pending.ack(a)
	if out.Problem != "" {
		return out
	}
	if !p.late {
		h.flight -= out.Acked + out.Lost
	}
	if newest != nil {
		p.ackSentAt, p.ackCameAt, p.acked = int64(a.ReceivedAt+a.Hold), now, true
		if rtt := now - newest.sentAt - int64(a.Hold); !newest.blind && rtt > 0 && rtt <= mostRTT {
			p.delays.sample(now, rtt, a.ReceivedAt-uint32(newest.sentAt))
			out.Sampled, out.RTT = true, rtt
		}
	}
	if out.Acked+out.Lost == 0 && !out.Sampled {
		return out
	}
	h.lastAt = now
	h.look(now)
	for _, o := range h.paths {
		o.settle((o != p || p.late) && o.pending.olderThan(h.far, now))
	}
	if h.ceiling.on {
		h.ceiling.hear(now, out.Acked, h.leastQueue(now), h.view.RTT)
	}
	host, own := h.view, p.signal(now)
	host.Acked, own.Acked = out.Acked, out.Acked
	if out.Lost > 0 {
		p.lose(host, own, out)
	}
	if out.Acked > 0 {
		p.backoff, p.pending.lastAt = 0, now
		if h.eager {
			host.Target = min(host.Target, eagerTarget)
		} else if h.controller.State() == Avoidance {
			host.Target = h.bears.of(host, h.controller.Window())
		}
		h.act(h.controller.OnAck, host)
		if p.cap != nil {
			p.cap.OnAck(own)
		}
	}
	return out
}

func (p *Path) lose(host, own Signal, out Outcome) {
	p.host.losses += out.Lost
	p.host.controller.OnLoss(host)
	if p.cap != nil && own.Queuing > 0 {
		p.cap.OnLoss(own)
	}
}

// settle takes what is in flight out of the host's flight while it is late, and back.
func (p *Path) settle(late bool) {
	if late == p.late {
		return
	}
	if p.late = late; late {
		p.host.flight -= p.pending.flight
	} else {
		p.host.flight += p.pending.flight
	}
}

// giveUp takes all that is in flight for lost.
func (p *Path) giveUp() {
	p.settle(false)
	p.host.flight -= p.pending.flight
	p.pending.giveUp()
}

// rtt is the round trip that what goes out on the link is paced by: its own, while no other link's is shorter by far.
func (p *Path) rtt() int64 {
	if p.delays.srtt == 0 {
		return p.host.view.RTT
	}
	return min(p.delays.srtt, p.host.view.RTT)
}

// signal is what the link's own cap hears: the delay by which the link is slower than the host's line. What all links share
// is the host's business; a cap that heard it too would regrow only while its link is served.
func (p *Path) signal(now int64) Signal {
	d := &p.delays
	return Signal{
		Now: now, Queuing: max(0, d.queuing()-p.host.view.Queuing), Target: d.target(), Base: d.baseDelay(), RTT: d.srtt,
		Limited: now-p.limitedAt <= max(d.srtt, firstRTT), Parts: 1,
	}
}

// Refuted says whether the link claims a queue that another link did not see.
func (p *Path) Refuted() bool { return p.delays.refuted }

// Deadline is the moment at which OnTimeout is due if no ack comes before; 0: nothing is in flight.
func (p *Path) Deadline() int64 {
	if p.pending.flight == 0 {
		return 0
	}
	wait := max(timeoutMin, p.delays.srtt*2+4*p.delays.rttvar) << min(p.backoff, 3)
	return p.pending.lastAt + min(wait, timeoutMax)
}

// OnTimeout is called when Deadline has passed. What was in flight counts as lost; SCTP below still brings it.
func (p *Path) OnTimeout(now int64) {
	d := p.Deadline()
	if d == 0 || now < d {
		return
	}
	h := p.host
	p.giveUp()
	p.backoff++
	h.timeouts++
	h.look(now)
	if h.flight == 0 {
		h.controller.OnTimeout(h.view)
	} else {
		h.controller.OnLoss(h.view)
	}
	if p.cap != nil {
		p.cap.OnTimeout(p.signal(now))
	}
}

// Flight is the number of bytes that were sent and not heard of.
func (p *Path) Flight() int64 { return p.pending.flight }

// Base is the least round trip of the link, µs; 0 while unknown.
func (p *Path) Base() int64 { return p.delays.baseDelay() }
