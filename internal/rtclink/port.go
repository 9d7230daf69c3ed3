package rtclink

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// portBound is how many packets wait for an agent; more are dropped, as a full socket would.
	portBound = 8192
	// keptQueue is the longest queue whose memory a port keeps when it is empty, packets.
	keptQueue = 128
)

// port is one agent's share of a socket.
type port struct {
	mux    *mux
	key    portKey
	notify chan struct{} // something is in the queue
	gone   chan struct{} // closed with the port

	mu      sync.Mutex
	queue   []packet         // guarded by mu; from head on
	head    int              // guarded by mu
	owned   []netip.AddrPort // guarded by mu; one once a link is open, mostly
	handles int              // guarded by mu
	closed  bool             // guarded by mu
}

func newPort(m *mux, key portKey) *port {
	return &port{mux: m, key: key, notify: make(chan struct{}, 1), gone: make(chan struct{})}
}

func (p *port) owns(addr netip.AddrPort) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.owned, addr)
}

func (p *port) own(addr netip.AddrPort, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owned = slices.DeleteFunc(p.owned, func(a netip.AddrPort) bool { return a == addr })
	if yes {
		p.owned = append(p.owned, addr)
	}
}

// push queues the packets of a between two offsets. A nil port takes none: nobody is there.
func (p *port) push(a arrival, from, to int) {
	if p == nil || from >= to {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if p.head > keptQueue && 2*p.head > len(p.queue) {
		n := copy(p.queue, p.queue[p.head:])
		clear(p.queue[n:])
		p.queue, p.head = p.queue[:n], 0
	}
	for at := from; at < to && len(p.queue)-p.head < portBound; at += a.size {
		a.slab.refs.Add(1)
		p.queue = append(p.queue, packet{a.slab, a.slab.buf[at:min(at+a.size, to)], a.from})
	}
	p.wake()
}

func (p *port) wake() {
	select {
	case p.notify <- struct{}{}:
	default:
	}
}

// pop takes the first packet.
func (p *port) pop() (q packet, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head == len(p.queue) {
		return packet{}, false
	}
	q, p.queue[p.head] = p.queue[p.head], packet{}
	if p.head++; p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
		if cap(p.queue) > keptQueue {
			p.queue = nil
		}
	}
	return q, true
}

// close ends the reading of every handle.
func (p *port) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	for _, q := range p.queue[p.head:] {
		q.slab.release()
	}
	p.queue, p.head = nil, 0
	close(p.gone)
}

// handle is one candidate's hold on its agent's port: candidates of several addresses share it.
type handle struct {
	*port
	done     chan struct{}
	once     sync.Once
	answered func() // a check has been answered, and the agent has seen it
	answer   bool   // what was read last is such an answer; of the reader
}

var (
	_ net.PacketConn = (*handle)(nil)

	errNotUDP = errors.New("rtclink: mux: not a UDP address")
)

func (p *port) handle(answered func()) *handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handles++
	return &handle{port: p, done: make(chan struct{}), answered: answered}
}

// ReadFromAddrPort reads a packet; pion prefers it, since it makes no address on the heap.
func (h *handle) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	if h.answer { // the agent deals with a packet before it reads the next
		h.answer = false
		h.answered()
	}
	for {
		if q, ok := h.pop(); ok {
			h.answer = isSuccess(q.data)
			n := copy(b, q.data)
			q.slab.release()
			return n, q.from, nil
		}
		select {
		case <-h.notify:
		case <-h.gone:
			return 0, netip.AddrPort{}, io.EOF
		case <-h.done:
			h.wake() // the word may have been for another handle
			return 0, netip.AddrPort{}, io.EOF
		}
	}
}

// WriteToAddrPort sends a packet, as soon as the socket takes it.
func (h *handle) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	select {
	case <-h.gone:
		return 0, io.ErrClosedPipe
	case <-h.done:
		return 0, io.ErrClosedPipe
	default:
	}
	h.mux.write(h.port, b, to)
	return len(b), nil
}

// ReadFrom implements net.PacketConn.
func (h *handle) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := h.ReadFromAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteTo implements net.PacketConn.
func (h *handle) WriteTo(b []byte, to net.Addr) (int, error) {
	udp, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, errNotUDP
	}
	return h.WriteToAddrPort(b, udp.AddrPort())
}

// Close implements net.PacketConn.
func (h *handle) Close() error {
	h.once.Do(func() {
		close(h.done)
		h.mux.leave(h.port)
	})
	return nil
}

// LocalAddr implements net.PacketConn.
func (h *handle) LocalAddr() net.Addr { return h.mux.conn.LocalAddr() }

// SetDeadline implements net.PacketConn; nothing here waits longer than until Close.
func (h *handle) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.PacketConn.
func (h *handle) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.PacketConn.
func (h *handle) SetWriteDeadline(time.Time) error { return nil }
