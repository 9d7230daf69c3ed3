package emulator

import "time"

// queue is where packets wait for a link. A bound in bytes holds at every moment between two calls.
type queue interface {
	// push adds a packet; drop is called for every packet that has no room, which need not be p.
	push(p *Packet, now time.Duration, drop func(*Packet))
	// pop takes the packet to be sent next, nil when there is none; drop is called for what active queue management
	// throws away on the way.
	pop(now time.Duration, drop func(*Packet)) *Packet
	// size returns what waits.
	size() (bytes, packets int)
}

func newQueue(cfg Link) queue {
	switch cfg.Discipline {
	case CoDel:
		return &single{bound: cfg.Queue, fifo: fifo{codel: &codel{}}}
	case Fair, FairCoDel:
		return &fair{bound: cfg.Queue, flows: map[flowKey]*flow{}, short: cfg.Discipline == FairCoDel}
	default:
		return &single{bound: cfg.Queue}
	}
}

// fifo is a list of packets in order of arrival, with CoDel at its exit where codel is set.
type fifo struct {
	head, tail     *Packet
	bytes, packets int
	codel          *codel
}

func (f *fifo) push(p *Packet, now time.Duration) {
	p.queued, p.next = now, nil
	if f.tail == nil {
		f.head = p
	} else {
		f.tail.next = p
	}
	f.tail = p
	f.bytes += p.Size
	f.packets++
}

// take removes the first packet, whatever its age.
func (f *fifo) take() *Packet {
	p := f.head
	if p == nil {
		return nil
	}
	f.head = p.next
	if f.head == nil {
		f.tail = nil
	}
	p.next = nil
	f.bytes -= p.Size
	f.packets--
	return p
}

func (f *fifo) pop(now time.Duration, drop func(*Packet)) *Packet {
	if f.codel != nil {
		return f.codel.pop(f, now, drop)
	}
	return f.take()
}

// single is one queue for all flows.
type single struct {
	fifo
	bound int
}

func (s *single) push(p *Packet, now time.Duration, drop func(*Packet)) {
	if s.bytes+p.Size > s.bound {
		drop(p)
		return
	}
	s.fifo.push(p, now)
}

func (s *single) size() (bytes, packets int) { return s.bytes, s.packets }

// quantum is what each flow may send in one round, in bytes.
const quantum = 1500

// fair gives each flow a queue of its own and serves them in turn (deficit round robin, Shreedhar and Varghese 1995).
// A full queue makes room at the head of the longest flow, so that a flow which keeps to its share loses nothing.
type fair struct {
	bound          int
	short          bool // CoDel in every flow
	flows          map[flowKey]*flow
	turn           []*flow // flows with packets, the next one to be served first
	bytes, packets int
}

type flow struct {
	fifo
	key     flowKey
	deficit int
}

func (q *fair) push(p *Packet, now time.Duration, drop func(*Packet)) {
	if p.Size > q.bound {
		drop(p)
		return
	}
	f := q.flows[p.flow]
	if f == nil {
		f = &flow{key: p.flow, deficit: quantum}
		if q.short {
			f.codel = &codel{}
		}
		q.flows[p.flow] = f
		q.turn = append(q.turn, f)
	}
	f.push(p, now)
	q.bytes += p.Size
	q.packets++
	for q.bytes > q.bound {
		q.shed(drop)
	}
}

// shed drops the oldest packet of the longest flow.
func (q *fair) shed(drop func(*Packet)) {
	longest := q.turn[0]
	for _, f := range q.turn {
		if f.bytes > longest.bytes {
			longest = f
		}
	}
	p := longest.take()
	q.bytes -= p.Size
	q.packets--
	drop(p)
	if longest.packets == 0 {
		q.forget(longest)
	}
}

func (q *fair) forget(f *flow) {
	delete(q.flows, f.key)
	for i, other := range q.turn {
		if other == f {
			q.turn = append(q.turn[:i], q.turn[i+1:]...)
			return
		}
	}
}

func (q *fair) pop(now time.Duration, drop func(*Packet)) *Packet {
	for len(q.turn) > 0 {
		f := q.turn[0]
		if f.deficit <= 0 {
			f.deficit += quantum
			copy(q.turn, q.turn[1:])
			q.turn[len(q.turn)-1] = f
			continue
		}
		bytes, packets := f.bytes, f.packets
		p := f.pop(now, drop)
		q.bytes -= bytes - f.bytes
		q.packets -= packets - f.packets
		if p != nil {
			f.deficit -= p.Size
		}
		if f.packets == 0 {
			q.forget(f)
		}
		if p != nil {
			return p
		}
	}
	return nil
}

func (q *fair) size() (bytes, packets int) { return q.bytes, q.packets }
