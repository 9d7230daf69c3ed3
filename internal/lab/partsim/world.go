package partsim

import "container/heap"

// world is virtual time, µs. Everything happens in an order that only the inputs decide.
type world struct {
	now   int64
	queue events
	seq   int
}

type event struct {
	at  int64
	seq int
	f   func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) at(t int64, f func()) {
	w.seq++
	heap.Push(&w.queue, event{max(t, w.now), w.seq, f})
}

func (w *world) after(d int64, f func()) { w.at(w.now+d, f) }

func (w *world) run(until int64) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.f()
	}
	w.now = until
}

// line is one direction of an access line. It sends in order.
type line struct {
	rate float64 // bytes/s
	free int64   // when all that was sent has left
}

func (l *line) pass(now int64, size int) int64 {
	l.free = max(l.free, now) + int64(float64(size)/l.rate*second)
	return l.free
}

// routerQueue is what the buffer of a line holds, bytes: more waits in the queue of its own flow.
const routerQueue = 32 << 10

// behind is how long a small packet waits at a line.
func (l *line) behind(now int64) int64 {
	return max(0, min(l.free-now, int64(routerQueue/l.rate*second)))
}

// access is an access line: bytes/s, and µs between it and the core.
type access struct {
	up, down line
	delay    int64
}

// flow carries messages in order from one access line to another, with as much in flight as the path and its queue hold.
type flow struct {
	w        *world
	from, to *access
	waiting  []message
	queued   int // bytes that wait
	inFlight int
	closed   bool
}

type message struct {
	size    int
	part    int
	left    func() // its uplink has sent it, or it was taken back as too late; may be nil
	arrived func()
}

func (f *flow) bound() int {
	path := min(f.from.up.rate, f.to.down.rate) * 2.8 * float64(f.from.delay+f.to.delay) / second
	return max(32<<10, min(int(path), 768<<10))
}

func (f *flow) send(m message) {
	f.waiting = append(f.waiting, m)
	f.queued += m.size
	f.pump()
}

// forget takes back what has not left and is of such parts.
func (f *flow) forget(of func(part int) bool) (gone []message) {
	kept := f.waiting[:0]
	for _, m := range f.waiting {
		if of(m.part) {
			gone = append(gone, m)
			f.queued -= m.size
		} else {
			kept = append(kept, m)
		}
	}
	f.waiting = kept
	return gone
}

func (f *flow) pump() {
	for len(f.waiting) > 0 && !f.closed && (f.inFlight == 0 || f.inFlight+f.waiting[0].size <= f.bound()) {
		m := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.queued -= m.size
		f.inFlight += m.size
		away := f.from.delay + f.to.delay
		f.w.at(f.from.up.pass(f.w.now, m.size), func() {
			if m.left != nil {
				m.left()
			}
			f.w.after(away, func() {
				f.w.at(f.to.down.pass(f.w.now, m.size), func() {
					if !f.closed {
						m.arrived()
					}
					f.w.after(away, func() {
						f.inFlight -= m.size
						f.pump()
					})
				})
			})
		})
	}
}

// signal carries a small message, behind what the lines have to send.
func (w *world) signal(from, to *access, f func()) {
	w.after(from.up.behind(w.now)+from.delay+to.delay, func() {
		w.after(to.down.behind(w.now), f)
	})
}
