package ledbat_test

import (
	"math/rand/v2"
	"slices"
)

// sim is a network in virtual time: events in the order of their moments (µs), ties in the order of their making.
type sim struct {
	now    int64
	serial int64
	events []event
	rng    *rand.Rand
}

type event struct {
	at, serial int64
	run        func()
}

func newSim(seed uint64) *sim { return &sim{rng: rand.New(rand.NewPCG(seed, 7))} }

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.serial < o.serial }

func (s *sim) at(at int64, run func()) {
	s.serial++
	s.events = append(s.events, event{max(at, s.now), s.serial, run})
	h := s.events
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (s *sim) pop() event {
	h := s.events
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	s.events = h
	for i := 0; ; {
		low := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child].before(h[low]) {
				low = child
			}
		}
		if low == i {
			return top
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
}

func (s *sim) run(until int64) {
	for len(s.events) > 0 && s.events[0].at <= until {
		e := s.pop()
		s.now = e.at
		e.run()
	}
	s.now = until
}

// every calls f each interval from now on.
func (s *sim) every(interval int64, f func()) {
	var tick func()
	tick = func() {
		f()
		s.at(s.now+interval, tick)
	}
	s.at(s.now+interval, tick)
}

// processor is what a program of the simulation runs on: others have it now and then, and what is to be done waits. nil: none ever.
type processor struct {
	s    *sim
	free int64 // when the program has it again
}

// processor is had by others about once in each time of a length, for a time of another length in the mean (both exponential).
func (s *sim) processor(each, taken float64) *processor {
	p := &processor{s: s}
	var take func()
	take = func() {
		p.free = s.now + int64(s.rng.ExpFloat64()*taken)
		s.at(p.free+int64(s.rng.ExpFloat64()*each), take)
	}
	s.at(s.now+int64(s.rng.ExpFloat64()*each), take)
	return p
}

// do has something done as soon as the program runs, in the order in which it came.
func (p *processor) do(f func()) {
	if p == nil || p.free <= p.s.now {
		f()
		return
	}
	p.s.at(p.free, f)
}

// packet is something on the wire. arrived and dropped run when its fate is known at the far end, or at the queue.
type packet struct {
	wire             int64
	flow             int
	arrived, dropped func()
}

// line is a bottleneck: a rate, a drop-tail queue in bytes, then a delay.
type line struct {
	s      *sim
	rate   int64 // bytes/s of the wire
	queue  int64 // bytes
	delay  int64 // µs one way
	loss   float64
	jitter func(now int64) int64 // added delay; nil: none
	fair   bool                  // a queue of its own for each flow, served round robin, instead of one for all

	waiting, inLine int64
	fifo            []packet
	flows           map[int][]packet
	order           []int
	busy            bool
	since           int64         // when the packet on the wire began
	sent            map[int]int64 // wire bytes that left, by flow
	offered, drops  int64         // packets
}

func (s *sim) line(mbit float64, queue, delay int64) *line {
	return &line{s: s, rate: int64(mbit * 125_000), queue: queue, delay: delay, sent: map[int]int64{}, flows: map[int][]packet{}}
}

// standing is the queuing delay that a ping through the bottleneck would see.
func (l *line) standing() int64 {
	if !l.busy {
		return 0
	}
	return l.waiting*1e6/l.rate - (l.s.now - l.since)
}

func (l *line) send(p packet) {
	l.offered++
	room := l.waiting+p.wire <= l.queue
	if l.fair {
		room = l.bytes(p.flow)+p.wire <= l.queue
	}
	if !room {
		l.drops++
		l.s.at(l.s.now+l.standing(), p.dropped)
		return
	}
	l.waiting += p.wire
	if l.fair {
		if len(l.flows[p.flow]) == 0 {
			l.order = append(l.order, p.flow)
		}
		l.flows[p.flow] = append(l.flows[p.flow], p)
	} else {
		l.fifo = append(l.fifo, p)
	}
	if !l.busy {
		l.serve()
	}
}

func (l *line) bytes(flow int) (n int64) {
	for _, p := range l.flows[flow] {
		n += p.wire
	}
	return n
}

func (l *line) take() (p packet, ok bool) {
	switch {
	case l.fair && len(l.order) > 0:
		f := l.order[0]
		p = l.flows[f][0]
		l.flows[f] = l.flows[f][1:]
		if l.order = l.order[1:]; len(l.flows[f]) > 0 {
			l.order = append(l.order, f)
		}
		return p, true
	case !l.fair && len(l.fifo) > 0:
		p = l.fifo[0]
		l.fifo = l.fifo[1:]
		return p, true
	}
	return p, false
}

func (l *line) serve() {
	p, ok := l.take()
	l.busy, l.since = ok, l.s.now
	if !ok {
		return
	}
	l.s.at(l.s.now+p.wire*1e6/l.rate, func() {
		l.waiting -= p.wire
		l.sent[p.flow] += p.wire
		after := l.delay
		if l.jitter != nil {
			after += l.jitter(l.s.now)
		}
		fate := p.arrived
		if l.loss > 0 && l.s.rng.Float64() < l.loss {
			fate = p.dropped
		}
		// a spike delays what comes behind it too: packets do not overtake
		l.inLine = max(l.inLine, l.s.now+after)
		l.s.at(l.inLine, fate)
		l.serve()
	})
}

// probe samples the standing queue every 5 ms from start on.
type probe struct{ list []int64 }

func (l *line) probe(start int64) *probe {
	p := &probe{}
	l.s.at(start, func() {
		l.s.every(5_000, func() { p.list = append(p.list, l.standing()) })
	})
	return p
}

func (p *probe) percentile(n int) int64 {
	if len(p.list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(p.list))
	return sorted[min(len(sorted)-1, len(sorted)*n/100)]
}
