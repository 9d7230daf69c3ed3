package viewer

import (
	"sync"
	"time"
)

// NewLoop starts a loop in a goroutine of its own. stop ends it: what is posted afterwards is not run, and stop returns
// when nothing of the loop runs any more.
func NewLoop() (loop Loop, stop func()) {
	l := &realLoop{wake: make(chan struct{}, 1), quit: make(chan struct{})}
	l.busy.Go(l.run)
	return l, func() {
		l.mu.Lock()
		if !l.closed {
			l.closed = true
			close(l.quit)
		}
		l.mu.Unlock()
		l.busy.Wait()
	}
}

type realLoop struct {
	wake chan struct{}
	quit chan struct{}
	busy sync.WaitGroup

	mu     sync.Mutex
	queue  []func() // guarded by mu
	closed bool     // guarded by mu
}

func (l *realLoop) Now() time.Time { return time.Now() }

func (l *realLoop) Post(f func()) {
	l.mu.Lock()
	if !l.closed {
		l.queue = append(l.queue, f)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *realLoop) After(d time.Duration, f func()) (stop func()) {
	stopped := false // touched on the loop alone
	t := time.AfterFunc(d, func() {
		l.Post(func() {
			if !stopped {
				f()
			}
		})
	})
	return func() { stopped = true; t.Stop() }
}

func (l *realLoop) Go(work, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.busy.Go(func() { work(); l.Post(done) })
}

func (l *realLoop) run() {
	for {
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, f := range batch {
			f()
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-l.wake:
		case <-l.quit:
			return
		}
	}
}
