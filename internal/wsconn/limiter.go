package wsconn

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// mostCourtesy is how long messages of open connections go first without a pause. Where there is no end of them, a handshake goes
	// on after that.
	mostCourtesy = 2 * time.Millisecond
	// mostWait is how long a place is waited for. A handshake computes and does not wait while it has one, so it gives it back sooner.
	mostWait = 50 * time.Millisecond
)

// handshakeLimiter bounds how many TLS handshakes compute at a time. They are expensive and come in crowds: without a bound, a message
// of an open connection waits until all handshakes that began before it are done. A place ends where its connection next reads or
// writes, and before each one everything that was ready has gone. So messages wait for one step of one handshake.
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

// newHandshakeLimiter leaves half of the processors to open connections.
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

// acquire waits for a place; false says that none came.
func (l *handshakeLimiter) acquire() bool {
	select {
	case l.places <- struct{}{}:
	default:
		late := time.NewTimer(mostWait)
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

// yield lets everything go first that is ready. The runtime looks at its sockets when nothing else is to be done, so a goroutine that
// only calls Gosched still goes before messages that have come and were not looked at. A byte through a pipe comes back once they
// were.
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
