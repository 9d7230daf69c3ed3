package ledbat_test

import (
	"math"

	"github.com/leeway-video/leeway/internal/ledbat"
)

const (
	payload  = 1156 // of 1253 bytes of IP: SCTP with I-DATA, DTLS and UDP around it
	overhead = 97
)

// sender is a host with a sender. Its links take turns; each has all the bytes in the world to send while on is true.
type sender struct {
	s       *sim
	c       *ledbat.Sender
	links   []*bglink
	turn    int
	on      bool
	timer   int64
	ticking bool
	tape    *tape // records what is done; nil: nothing
	runs    *processor
}

// bglink is a background link: a Path, the line that its messages take, and an Acker at the other end.
type bglink struct {
	host    *sender
	p       *ledbat.Path
	acker   *ledbat.Acker
	flow    int
	line    *line
	extra   int64 // µs beside the line, there
	back    int64 // µs that acks take
	reverse *line // or the line that acks take
	skew    int64 // ppm that the receiver's clock runs fast
	offset  int64
	ackAt   int64
	got     int64
	source  *ledbat.Source // the receiver's view, where one asks; nil: there is always something to send
	viewer  *viewer
	asked   int64        // bytes that were asked for and not sent, where source is set
	lie     *lie         // how its acks lie; nil: they do not
	newest  ledbat.Stamp // of the highest that came
	runs    *processor   // of the receiver
}

func (s *sim) sender(cfg ledbat.Config) *sender {
	return &sender{s: s, c: ledbat.NewSender(cfg), on: true}
}

func (h *sender) link(flow int, l *line, back int64) *bglink {
	b := &bglink{host: h, acker: ledbat.NewAcker(), flow: flow, line: l, back: back, offset: 3e9}
	if h.tape != nil {
		h.tape.do(h.s.now, "open", flow, max(payload, h.tape.payload), 0, 0)
		b.p = h.tape.bench.paths[flow]
	} else {
		b.p = h.c.Open(h.s.now, ledbat.PathConfig{Payload: payload})
	}
	h.links = append(h.links, b)
	h.pump()
	return b
}

// pump sends what may be sent and sets the timer for what may be sent later.
func (h *sender) pump() {
	var at int64
	for idle := 0; h.on && idle < len(h.links); {
		h.turn = (h.turn + 1) % len(h.links)
		b := h.links[h.turn]
		size := b.p.MessageSize()
		if b.source != nil {
			if size = min(size, b.asked); size == 0 {
				idle++
				continue
			}
		}
		ok, later := b.p.MaySend(h.s.now, size)
		if !ok {
			st := h.c.Stats()
			full := st.Flight > 0 && st.Flight+size > st.Window
			if h.tape != nil && (h.ticking || !h.tape.tells(b.flow)) && (later == 0 || full) { // a refusal is remembered, and no event tells of this one
				h.tape.do(h.s.now, "may", b.flow, size)
			}
			idle++
			if later > 0 && (at == 0 || later < at) {
				at = later
			}
			continue
		}
		idle = 0
		b.send(size)
	}
	for _, b := range h.links {
		if d := b.p.Deadline(); d > 0 && (at == 0 || d < at) {
			at = d
		}
	}
	if at > 0 && (at < h.timer || h.timer <= h.s.now) {
		h.timer = at
		h.s.at(at, func() { h.runs.do(h.tick) })
	}
}

func (h *sender) tick() {
	if h.s.now >= h.timer {
		h.timer = 0
	}
	for _, b := range h.links {
		if d := b.p.Deadline(); d > 0 && h.s.now >= d {
			if h.tape != nil {
				h.tape.do(h.s.now, "timeout", b.flow)
			} else {
				b.p.OnTimeout(h.s.now)
			}
		}
	}
	h.ticking = true
	h.pump()
	h.ticking = false
}

func (b *bglink) sent(size int64) ledbat.Stamp {
	h := b.host
	if h.tape == nil {
		return b.p.OnSent(h.s.now, size, 0)
	}
	seen := h.tape.do(h.s.now, "send", b.flow, size, 0)
	t := seen[len(seen)-5:] // the stamp
	return ledbat.Stamp{Sequence: uint32(t[0]), SentAt: uint32(t[1]), Echo: uint32(t[2]), Echoes: t[3] == 1, AckNow: t[4] == 1}
}

func (b *bglink) hear(a ledbat.Ack) {
	h := b.host
	if h.tape == nil {
		b.p.OnAck(h.s.now, a)
		return
	}
	h.tape.ack(h.s.now, b.flow, a)
}

// send puts a message on the wire in packets. What is dropped is sent again a round trip later, as SCTP does.
func (b *bglink) send(size int64) {
	s := b.host.s
	stamp := b.sent(size)
	if b.source != nil {
		b.asked -= size
	}
	missing := (size + payload - 1) / payload
	var put func(n int64)
	put = func(n int64) {
		b.line.send(packet{
			wire: n + overhead, flow: b.flow,
			arrived: func() {
				if missing--; missing == 0 {
					s.at(s.now+b.extra, func() { b.runs.do(func() { b.arrive(size, stamp) }) })
				}
			},
			dropped: func() { s.at(s.now+2*b.back+b.line.standing(), func() { put(n) }) },
		})
	}
	for left := size; left > 0; left -= payload {
		put(min(left, payload))
	}
}

func (b *bglink) clock() int64 {
	now := b.host.s.now
	return now + now*b.skew/1_000_000 + b.offset
}

func (b *bglink) arrive(size int64, stamp ledbat.Stamp) {
	if b.acker.OnData(b.clock(), size, stamp) {
		b.got += size
	}
	if stamp.Sequence >= b.newest.Sequence {
		b.newest = stamp
	}
	if b.source != nil {
		b.source.OnData(b.clock(), size, stamp)
		b.viewer.ask()
	}
	b.tell()
}

// tell sends the ack when it is due, and asks again then when it is not yet.
func (b *bglink) tell() {
	due := b.acker.Due()
	if due == 0 {
		return
	}
	s := b.host.s
	if wait := due - b.clock(); wait > 0 {
		if b.ackAt <= s.now || s.now+wait < b.ackAt {
			b.ackAt = s.now + wait
			s.at(b.ackAt, b.tell)
		}
		return
	}
	ack, ok := b.acker.Make(b.clock())
	if !ok {
		return
	}
	hear := func() {
		b.host.runs.do(func() {
			b.hear(ack)
			b.host.pump()
		})
	}
	if b.lie != nil {
		b.lie.tell(b, ack)
		return
	}
	if b.reverse == nil {
		s.at(s.now+b.back, hear)
		return
	}
	var put func()
	put = func() {
		b.reverse.send(packet{wire: 140, flow: b.flow, arrived: hear, dropped: func() { s.at(s.now+100_000, put) }})
	}
	put()
}

// rival is a loss-based TCP: CUBIC as Linux has it (HyStart, β 0.7, C 0.4), or Reno; every packet is acked.
type rival struct {
	s                  *sim
	line               *line
	flow               int
	back               int64
	reno, on           bool
	cwnd, ssthresh     float64 // packets
	flight             float64
	wmax, k            float64
	epoch, cutAt, base int64
	got                int64
	roundEnd           int64 // HyStart: the round ends with the packet sent then
	roundMin, roundN   int64
}

const segment = 1500 // wire bytes of a full TCP packet

func (s *sim) rival(flow int, l *line, back int64) *rival {
	return &rival{s: s, line: l, flow: flow, back: back, cwnd: 10, ssthresh: 1e9, on: true, base: 1 << 50, epoch: -1, cutAt: -1}
}

func (r *rival) pump() {
	for r.on && r.flight < r.cwnd {
		r.flight++
		sent := r.s.now
		r.line.send(packet{
			wire: segment, flow: r.flow,
			arrived: func() { r.got += segment; r.s.at(r.s.now+r.back, func() { r.acked(sent) }) },
			dropped: func() { r.s.at(r.s.now+r.line.delay+r.back, func() { r.lost(sent) }) },
		})
	}
}

func (r *rival) acked(sent int64) {
	r.flight--
	rtt := r.s.now - sent
	r.base = min(r.base, rtt)
	switch {
	case r.cwnd < r.ssthresh:
		r.cwnd++
		if !r.reno {
			r.hystart(sent, rtt)
		}
	case r.reno:
		r.cwnd += 1 / r.cwnd
	default:
		r.cubic(rtt)
	}
	r.pump()
}

// hystart ends slow start when the least of a round's first eight round trips shows a queue.
func (r *rival) hystart(sent, rtt int64) {
	if sent >= r.roundEnd {
		r.roundEnd, r.roundMin, r.roundN = r.s.now, 1<<50, 0
	}
	if r.roundN++; r.roundN > 8 {
		return
	}
	r.roundMin = min(r.roundMin, rtt)
	if r.roundN == 8 && r.cwnd > 16 && r.roundMin >= r.base+min(max(r.base/8, 4000), 16000) {
		r.ssthresh = r.cwnd
	}
}

func (r *rival) cubic(rtt int64) {
	if r.epoch < 0 {
		r.epoch = r.s.now
		if r.wmax < r.cwnd {
			r.wmax, r.k = r.cwnd, 0
		} else {
			r.k = math.Cbrt((r.wmax - r.cwnd) / 0.4)
		}
	}
	t := float64(r.s.now-r.epoch)/1e6 + float64(r.base)/1e6
	want := r.wmax + 0.4*math.Pow(t-r.k, 3)
	friendly := r.wmax*0.7 + 0.53*t/(float64(rtt)/1e6)
	r.cwnd += max(0.01, min(0.5*r.cwnd, max(want, friendly)-r.cwnd)) / r.cwnd
}

func (r *rival) lost(sent int64) {
	r.flight--
	if sent > r.cutAt {
		r.cutAt, r.epoch = r.s.now, -1
		beta := 0.7
		if r.reno {
			beta = 0.5
		}
		r.wmax = r.cwnd
		r.cwnd = max(2, r.cwnd*beta)
		r.ssthresh = r.cwnd
	}
	r.pump()
}
