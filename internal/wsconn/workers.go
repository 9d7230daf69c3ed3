package wsconn

import "sync"

// job is a connection to be read from or written to.
type job struct {
	c     *Conn
	write bool
}

// workers are goroutines that read and write for all connections of an endpoint: few, and each with a stack that has grown
// already. There are as many as are blocked or busy at a time, and as many idle ones as the last moments needed.
type workers struct {
	mu     sync.Mutex
	idle   []chan job // guarded by mu: the last to come is the next to go
	fewest int        // guarded by mu: idle since the last look
	off    bool       // guarded by mu: no worker waits for another job
}

// hand gives a job to an idle worker, or to a new one.
func (w *workers) hand(j job) {
	w.mu.Lock()
	n := len(w.idle) - 1
	if n < 0 {
		w.fewest = 0
		w.mu.Unlock()
		go w.work(j)
		return
	}
	jobs := w.idle[n]
	w.idle = w.idle[:n]
	w.fewest = min(w.fewest, n)
	w.mu.Unlock()
	jobs <- j
}

// work does jobs until it receives one without a connection.
func (w *workers) work(j job) {
	jobs := make(chan job, 1)
	for j.c != nil {
		if j.write {
			j.c.write()
		} else {
			j.c.read()
		}
		w.mu.Lock()
		if w.off {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, jobs)
		w.mu.Unlock()
		j = <-jobs
	}
}

// trim ends the workers that had nothing to do since the last look.
func (w *workers) trim() {
	w.mu.Lock()
	ended := append([]chan job(nil), w.idle[:min(w.fewest, len(w.idle))]...)
	w.idle = append(w.idle[:0], w.idle[len(ended):]...)
	w.fewest = len(w.idle)
	w.mu.Unlock()
	for _, jobs := range ended {
		jobs <- job{}
	}
}

// open and shut say whether there are connections.
func (w *workers) open() {
	w.mu.Lock()
	w.off = false
	w.mu.Unlock()
}

func (w *workers) shut() {
	w.mu.Lock()
	w.off = true
	ended := w.idle
	w.idle = nil
	w.mu.Unlock()
	for _, jobs := range ended {
		jobs <- job{}
	}
}
