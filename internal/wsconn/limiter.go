package wsconn

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// mostCourtesy is how long who is in goes first without a pause: where there is no end of them, who comes gets on, too.
	mostCourtesy = 2 * time.Millisecond
	// mostTurn is how long one turn is waited for. Turns are work and no waiting, so nobody has one for so long.
	mostTurn = 50 * time.Millisecond
)

// turns are what shaking hands is done in. It is expensive and comes in crowds: without turns, a message of somebody who is in
// waits until the hands of all who came before it are shaken. So there are few at a time, each ends where its connection next
// reads or writes, and before each everything has gone that was ready: messages wait for one piece of a handshake, not for many.
type handshakeLimiter struct {
	places chan struct{} // as many as go on at a time

	mu    sync.Mutex // one round trip at a time
	near  *os.File   // of a pipe; nil where there is none
	far   *os.File
	raw   syscall.RawConn // of near
	most  time.Duration   // mostCourtesy, but in a test
	asked bool            // guarded by mu
	late  bool            // guarded by mu: a byte is still on its way
	wake  func(uintptr) bool
}

// newHandshakeLimiter leaves half of the processors to who is in.
func newHandshakeLimiter() *handshakeLimiter {
	l := &handshakeLimiter{places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), most: mostCourtesy}
	near, far, err := os.Pipe()
	if err != nil {
		return l // without a file to spare there is less courtesy
	}
	raw, err := near.SyscallConn()
	if err != nil || !canWait {
		_, _ = near.Close(), far.Close()
		return l
	}
	l.near, l.far, l.raw, l.wake = near, far, raw, l.back
	return l
}

// take waits for a turn; false says that none came.
func (l *handshakeLimiter) acquire() bool {
	select {
	case l.places <- struct{}{}:
	default:
		late := time.NewTimer(mostTurn)
		defer late.Stop()
		select {
		case l.places <- struct{}{}:
		case <-late.C:
			return false
		}
	}
	l.yield()
	return true
}

func (l *handshakeLimiter) release() { <-l.places }

// pass lets everything go first that is ready. The runtime looks at its sockets when nothing else is to be done, so who steps
// aside for other goroutines alone still goes before messages that have come and were not looked at. A byte through a
// pipe comes back once they were.
func (l *handshakeLimiter) yield() {
	if l.raw == nil {
		runtime.Gosched()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = false
	_ = l.near.SetReadDeadline(time.Now().Add(l.most))
	l.late = l.raw.Read(l.wake) != nil
	runtime.Gosched() // the last to be ready is the first to go
}

// back asks once, and is then called when there is an answer.
func (l *handshakeLimiter) back(fd uintptr) bool {
	if !l.asked {
		l.asked = true
		if l.late {
			swallow(fd)
		}
		_, err := l.far.Write([]byte{0})
		return err != nil
	}
	return swallow(fd)
}

func (l *handshakeLimiter) close() {
	if l.near != nil {
		_, _ = l.near.Close(), l.far.Close()
	}
}
