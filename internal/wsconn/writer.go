package wsconn

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// writer queues frames and takes them to the socket. One goroutine at a time does, so that whole frames follow each other; what is
// queued meanwhile goes out in one piece, which is one record where there is TLS.
type writer struct {
	cfg    *Config
	net    net.Conn
	pulse  *pulse
	masked bool // as a client's frames are
	owner  owner

	closed atomic.Bool // for those that need not be exact

	mu       sync.Mutex
	out      *[]byte  // guarded by mu: frames to be written; nil: none
	messages int      // guarded by mu: of them
	writing  bool     // guarded by mu: write runs, and looks at out once more
	done     bool     // guarded by mu: write will not run any more
	pong     []byte   // guarded by mu: of a ping to be answered, if there is one
	end      farewell // guarded by mu
}

// owner is what a writer needs of its connection.
type owner interface {
	wake()              // has write called
	written(whole bool) // the last words are out, or will never be
}

// farewell is how a connection ends.
type farewell struct {
	begun  bool
	code   int
	reason string
	cut    *time.Timer // ends a farewell that takes too long
}

// Write queues a message, whose bytes stay the caller's. ErrSlow says that the queue was full: the connection is ended, because
// a client that reads more slowly than the tracker writes would make the tracker hold messages without bound.
func (w *writer) Write(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.begun {
		return ErrClosed
	}
	if w.messages < w.cfg.WriteQueue && (w.messages == 0 || len(*w.out)+len(message) <= w.cfg.WriteBytes) {
		w.messages++
		w.queue(websocket.TextMessage, message)
		w.rouse()
		return nil
	}
	// A reader that is stuck would hold the writer for the timeout of a write.
	w.close(CloseOverloaded, "reader is too slow", lingerTime)
	return ErrSlow
}

// ping asks whether the other side is there.
func (w *writer) ping(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.end.begun {
		w.queue(websocket.PingMessage, w.pulse.asks(now))
		w.rouse()
	}
}

// answer answers a ping. One that is not answered yet gives way.
func (w *writer) answer(data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pong = data
	w.rouse()
}

// queue adds a frame. Under mu.
func (w *writer) queue(opcode byte, payload []byte) {
	if w.out == nil {
		w.out = buffers.Get().(*[]byte)
	}
	*w.out = appendFrame(*w.out, opcode, payload, w.masked)
}

// rouse has write run. Under mu.
func (w *writer) rouse() {
	if !w.writing && !w.done {
		w.writing = true
		w.owner.wake()
	}
}

// Close sends what is queued and a close message, and ends the connection. The first call counts.
func (w *writer) Close(code int, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close(code, reason, w.cfg.Farewell)
}

// close cuts the connection when the farewell takes longer than within. Under mu.
func (w *writer) close(code int, reason string, within time.Duration) {
	if w.end.begun {
		return
	}
	w.end.begun, w.end.code, w.end.reason = true, code, reason
	w.closed.Store(true)
	w.end.cut = time.AfterFunc(within, func() { _ = w.net.Close() })
	w.rouse()
}

// write takes to the socket what is queued, until nothing is.
func (w *writer) write() {
	for {
		b, last, any := w.take()
		if !any {
			return
		}
		err := w.put(b)
		if err != nil && !last {
			w.Close(CloseDone, "")
			_ = w.net.Close()
		}
		if err != nil || last {
			w.owner.written(err == nil)
			return
		}
	}
}

// take takes what is queued, with the close message if it is the last; any is false when there is nothing to do.
func (w *writer) take() (b *[]byte, last, any bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pong != nil {
		w.queue(websocket.PongMessage, w.pong)
		w.pong = nil
	}
	b, last = w.out, w.end.begun
	w.out, w.messages = nil, 0
	if b == nil && !last {
		w.writing = false
		return nil, false, false
	}
	if last {
		if b == nil {
			b = buffers.Get().(*[]byte)
		}
		*b = appendClose(*b, w.end.code, w.end.reason, w.masked)
	}
	return b, last, true
}

// put writes a buffer and gives it back.
func (w *writer) put(b *[]byte) (err error) {
	if b == nil {
		return nil
	}
	for rest := *b; len(rest) > 0 && err == nil; {
		n := min(len(rest), writeBytes)
		w.pulse.since.Store(steady())
		_, err = w.net.Write(rest[:n])
		rest = rest[n:]
	}
	w.pulse.since.Store(0)
	release(b)
	return err
}

// stop has write run no more.
func (w *writer) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
}

// forget gives back what is left of a connection that has been closed.
func (w *writer) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end.cut.Stop()
	if w.out != nil {
		release(w.out)
		w.out = nil
	}
}
