package rtclink

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"
)

const (
	// queueBound is how many packets wait for an agent or a link; more are dropped, as a full socket would.
	queueBound = 8192
	// keptQueue is the longest queue whose memory is kept when it is empty, packets.
	keptQueue = 128
)

// packet is one packet of an arrival, or one that has memory of its own and no slab.
type packet struct {
	slab *slab
	data []byte
	from netip.AddrPort
}

func (q packet) release() {
	if q.slab != nil {
		q.slab.release()
	}
}

// waiting is packets in the order in which they came.
type waiting struct {
	list []packet // from head on
	head int
}

func (w *waiting) len() int    { return len(w.list) - w.head }
func (w *waiting) empty() bool { return w.len() == 0 }

// push adds a packet, and holds on to its slab; a full queue drops it.
func (w *waiting) push(q packet) {
	if w.len() >= queueBound {
		return
	}
	if w.head > keptQueue && 2*w.head > len(w.list) {
		n := copy(w.list, w.list[w.head:])
		clear(w.list[n:])
		w.list, w.head = w.list[:n], 0
	}
	if q.slab != nil {
		q.slab.refs.Add(1)
	}
	w.list = append(w.list, q)
}

// pop takes the first packet.
func (w *waiting) pop() (q packet, ok bool) {
	if w.empty() {
		return packet{}, false
	}
	q, w.list[w.head] = w.list[w.head], packet{}
	if w.head++; w.empty() {
		w.list, w.head = w.list[:0], 0
		if cap(w.list) > keptQueue {
			w.list = nil
		}
	}
	return q, true
}

// drop forgets all.
func (w *waiting) drop() {
	for _, q := range w.list[w.head:] {
		q.release()
	}
	w.list, w.head = nil, 0
}

// intake is where a link's packets wait that are not ICE's. They come from the socket's mux without the way through the
// agent, which would copy each twice and have a goroutine wake up for it.
type intake struct {
	wake chan struct{} // there is something to look at

	mu     sync.Mutex
	queue  waiting   // guarded by mu
	until  time.Time // guarded by mu: of reading
	read   bool      // guarded by mu: there is a reader
	closed bool      // guarded by mu
}

func newIntake() *intake { return &intake{wake: make(chan struct{}, 1)} }

// put adds packets: those that add hands to its argument.
func (in *intake) put(add func(push func(packet))) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	add(in.push)
	in.stir()
}

// push adds a packet. A link that is still looking for its way reads nothing. An honest other side has no more to say then than to begin a
// handshake, and a packet that came alone holds a slab of 64 KiB. Under mu.
func (in *intake) push(q packet) {
	if in.read || in.queue.len() < earlyRecords {
		in.queue.push(q)
	}
}

func (in *intake) stir() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// Read returns the next packet.
func (in *intake) Read(p []byte) (int, error) {
	for {
		q, ok, err := in.next()
		switch {
		case err != nil:
			return 0, err
		case !ok:
			<-in.wake
			continue
		}
		n := copy(p, q.data)
		short := n < len(q.data)
		q.release()
		if short {
			return n, io.ErrShortBuffer
		}
		return n, nil
	}
}

func (in *intake) next() (q packet, ok bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.read = true
	if !in.until.IsZero() {
		return packet{}, false, os.ErrDeadlineExceeded
	}
	if q, ok = in.queue.pop(); !ok && in.closed {
		err = io.EOF
	}
	return q, ok, err
}

// SetReadDeadline interrupts reading, or with the zero time lets it go on: no caller here sets a time that is to come.
func (in *intake) SetReadDeadline(t time.Time) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.until = t
	in.stir()
	return nil
}

func (in *intake) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.queue.drop()
	in.stir()
}

// way is what a link's records travel over: in by the intake, and out by the agent's best pair of addresses, or where the
// settled link's other side is.
type way struct {
	in      *intake
	agent   atomic.Pointer[ice.Conn] // nil once the link is settled
	settled atomic.Pointer[consent]  // nil before
}

var _ datagrams = (*way)(nil)

// Read implements datagrams.
func (w *way) Read(p []byte) (int, error) { return w.in.Read(p) }

// Write implements datagrams.
func (w *way) Write(p []byte) (int, error) {
	if conn := w.agent.Load(); conn != nil {
		if n, err := conn.Write(p); err == nil || w.settled.Load() == nil {
			return n, err
		}
	}
	return w.settled.Load().Write(p) // the agent went just now, or long ago
}

// SetReadDeadline implements datagrams.
func (w *way) SetReadDeadline(t time.Time) error { return w.in.SetReadDeadline(t) }

// LocalAddr implements datagrams.
func (w *way) LocalAddr() net.Addr { return path }

// RemoteAddr implements datagrams.
func (w *way) RemoteAddr() net.Addr { return path }
