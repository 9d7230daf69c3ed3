package rtclink

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// life is how far a link has come, and its end. Whatever runs for the link is counted in running, for which the end waits.
type life struct {
	opened  atomic.Bool
	closing atomic.Bool
	ctx     context.Context // ends when the link's machinery is to stop
	cancel  context.CancelFunc
	running sync.WaitGroup
	done    chan struct{}
	bury    func(reason peer.CloseReason, farewell []byte, tell bool) // ends the link; called once

	mu    sync.Mutex
	timer *time.Timer // guarded by mu: the one that is set; nil: none
}

// begin makes a life that bury ends.
func (l *life) begin(bury func(reason peer.CloseReason, farewell []byte, tell bool)) {
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.done, l.bury = make(chan struct{}), bury
}

// Done implements transfer.Link.
func (l *life) Done() <-chan struct{} { return l.done }

// Close implements transfer.Link.
func (l *life) Close(reason peer.CloseReason, farewell []byte) {
	if !l.closing.Swap(true) {
		go l.bury(reason, farewell, true)
	}
}

// abandon ends a link whose making failed: its owner never had it, so it hears nothing of it.
func (l *life) abandon() {
	if !l.closing.Swap(true) {
		go l.bury(peer.CloseFailed, nil, false)
	}
}

func (l *life) usable() bool { return l.opened.Load() && !l.closing.Load() }

// enter counts a goroutine that is to run; false says that the link is closing. The end takes mu after closing is set and before
// it waits, so it waits for every goroutine that was let in.
func (l *life) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Load() {
		return false
	}
	l.running.Add(1)
	return true
}

// open notes that the link is open, stops the timer and counts a goroutine; false says that the link is closing.
func (l *life) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Load() {
		return false
	}
	l.opened.Store(true)
	l.stopTimer()
	l.running.Add(1)
	return true
}

// after has the timer call f, unless the link is closing. What it was set for before has been called, or is called off.
func (l *life) after(d time.Duration, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closing.Load() {
		l.stopTimer()
		l.timer = time.AfterFunc(d, f)
	}
}

// stopTimer is under mu.
func (l *life) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// close stops the timer of a link that is closing. From here on nothing enters.
func (l *life) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopTimer()
}
