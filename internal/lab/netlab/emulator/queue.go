package emulator

// queue is where packets wait for a link. A bound in bytes holds at every moment between two calls.
type queue interface {
	// push adds a packet; drop is called for every packet that has no room, which need not be p.
	push(p *Packet, drop func(*Packet))
	// pop takes the packet to be sent next, nil when there is none.
	pop() *Packet
	// size returns what waits.
	size() (bytes, packets int)
}

func newQueue(cfg Link) queue {
	if cfg.Fair {
		return &fair{bound: cfg.Queue, flows: map[flowKey]*flow{}}
	}
	return &single{bound: cfg.Queue}
}

// fifo is a list of packets in order of arrival.
type fifo struct {
	head, tail     *Packet
	bytes, packets int
}

func (f *fifo) push(p *Packet) {
	p.next = nil
	if f.tail == nil {
		f.head = p
	} else {
		f.tail.next = p
	}
	f.tail = p
	f.bytes += p.Size
	f.packets++
}

func (f *fifo) pop() *Packet {
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

// single is one queue for all flows.
type single struct {
	fifo
	bound int
}

func (s *single) push(p *Packet, drop func(*Packet)) {
	if s.bytes+p.Size > s.bound {
		drop(p)
		return
	}
	s.fifo.push(p)
}

func (s *single) size() (bytes, packets int) { return s.bytes, s.packets }

// quantum is what each flow may send in one round, in bytes.
const quantum = 1500

// fair gives each flow a queue of its own and serves them in turn (deficit round robin, Shreedhar and Varghese 1995).
// A full queue makes room at the head of the longest flow, so that a flow which keeps to its share loses nothing.
type fair struct {
	bound          int
	flows          map[flowKey]*flow
	turn           []*flow // flows with packets, the next one to be served first
	bytes, packets int
}

type flow struct {
	fifo
	key     flowKey
	deficit int
}

func (q *fair) push(p *Packet, drop func(*Packet)) {
	if p.Size > q.bound {
		drop(p)
		return
	}
	f := q.flows[p.flow]
	if f == nil {
		f = &flow{key: p.flow, deficit: quantum}
		q.flows[p.flow] = f
		q.turn = append(q.turn, f)
	}
	f.push(p)
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
	p := longest.pop()
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

func (q *fair) pop() *Packet {
	for len(q.turn) > 0 {
		f := q.turn[0]
		if f.deficit <= 0 {
			f.deficit += quantum
			copy(q.turn, q.turn[1:])
			q.turn[len(q.turn)-1] = f
			continue
		}
		p := f.pop()
		q.bytes -= p.Size
		q.packets--
		f.deficit -= p.Size
		if f.packets == 0 {
			q.forget(f)
		}
		return p
	}
	return nil
}

func (q *fair) size() (bytes, packets int) { return q.bytes, q.packets }
