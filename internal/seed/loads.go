package seed

import (
	"sync"

	"github.com/leeway-video/leeway/internal/segment"
)

// maxLoads is how many segments of one session wait to be read from disk: those of a lane of each of its links, and those whose
// certificates it waits for.
const maxLoads = 64

// loads reads segments from disk for sessions: one of a session at a time, the sessions in turn. A request is for 16 KiB, but what
// is read and hashed for it is a file of up to 8 MiB. So this is not done where pieces are sent from.
type loads struct {
	read  func(segment.ID) *held
	start func(func()) bool // runs it beside the caller; false: the seed is about to end
	most  int               // at a time

	mu      sync.Mutex
	running int                            // guarded by mu
	turns   []*reader                      // guarded by mu: sessions that wait and have none under way
	under   map[segment.ID][]func(h *held) // guarded by mu: what is called with each segment that is being read
}

// reader is what one session wants read. Guarded by loads.mu.
type reader struct {
	waiting []load
	busy    bool // one is being read
}

// load is a segment that is wanted, and what is called with it, or with nil where it cannot be had.
type load struct {
	id   segment.ID
	done func(*held)
}

func newLoads(read func(segment.ID) *held, start func(func()) bool, most int) *loads {
	return &loads{read: read, start: start, most: most, under: map[segment.ID][]func(*held){}}
}

// join waits for a segment that is being read for another session, if it is.
func (l *loads) join(id segment.ID, done func(*held)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, is := l.under[id]; !is {
		return false
	}
	l.under[id] = append(l.under[id], done)
	return true
}

// want puts a segment into a session's queue; false says that the queue is full. done is called once, never under locks.
func (l *loads) want(r *reader, id segment.ID, done func(*held)) bool {
	l.mu.Lock()
	if len(r.waiting) >= maxLoads {
		l.mu.Unlock()
		return false
	}
	r.waiting = append(r.waiting, load{id, done})
	if len(r.waiting) == 1 && !r.busy {
		l.turns = append(l.turns, r)
	}
	lost := l.next()
	l.mu.Unlock()
	for _, done := range lost {
		done(nil)
	}
	return true
}

// next begins what may be read now, and returns those that wait in vain, because the seed ends. Under mu.
func (l *loads) next() (lost []func(*held)) {
	for l.running < l.most && len(l.turns) > 0 {
		r := l.turns[0]
		l.turns = l.turns[1:]
		w := r.waiting[0]
		r.waiting = r.waiting[1:]
		if _, is := l.under[w.id]; is {
			l.under[w.id] = append(l.under[w.id], w.done)
		} else if l.start(func() { l.run(r, w.id) }) {
			l.running++
			r.busy = true
			l.under[w.id] = []func(*held){w.done}
		} else {
			lost = append(lost, w.done)
		}
		if len(r.waiting) > 0 && !r.busy {
			l.turns = append(l.turns, r)
		}
	}
	return lost
}

func (l *loads) run(r *reader, id segment.ID) {
	h := l.read(id)
	l.mu.Lock()
	waited := l.under[id]
	delete(l.under, id)
	l.running--
	if r.busy = false; len(r.waiting) > 0 {
		l.turns = append(l.turns, r)
	}
	lost := l.next()
	l.mu.Unlock()
	for _, done := range waited {
		done(h)
	}
	for _, done := range lost {
		done(nil)
	}
}

// now reads a segment beside the turns, or waits for the one that reads it: for siblings, and for what no session wants.
func (l *loads) now(id segment.ID) *held {
	l.mu.Lock()
	if _, is := l.under[id]; is {
		came := make(chan *held, 1)
		l.under[id] = append(l.under[id], func(h *held) { came <- h })
		l.mu.Unlock()
		return <-came
	}
	l.under[id] = nil
	l.mu.Unlock()
	h := l.read(id)
	l.mu.Lock()
	waited := l.under[id]
	delete(l.under, id)
	l.mu.Unlock()
	for _, done := range waited {
		done(h)
	}
	return h
}
