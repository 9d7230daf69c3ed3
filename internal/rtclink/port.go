package rtclink

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// tellEvery is how often an agent hears that its link's path lives, while data arrive that it does not see.
const tellEvery = quietAfter / 4

// mostOwned is how many addresses a port owns at most: four times those of the other side that are checked.
const mostOwned = 4 * maxCandidates

// alive is what it hears: a binding indication (RFC 8489), which is for nothing else.
var alive = append(binary.BigEndian.AppendUint32([]byte{0x00, 0x11, 0, 0}, stunCookie), make([]byte, stunHeader-8)...)

// port is one agent's share of a socket.
type port struct {
	mux    *mux
	key    portKey
	in     *intake       // takes what is not STUN; nil: the agent does
	notify chan struct{} // something is in the queue
	gone   chan struct{} // closed with the port

	mu      sync.Mutex
	queue   waiting          // guarded by mu
	told    time.Time        // guarded by mu: when the agent last heard that the path lives
	owned   []netip.AddrPort // guarded by mu, the latest last; one once a link is open, mostly
	handles int              // guarded by mu
	consent *consent         // guarded by mu: answers in the agent's place; nil before the link is settled
	closed  bool             // guarded by mu
	ledger  ledger           // guarded by mu: of a guarded host
	askers  []netip.AddrPort // guarded by mu: whose requests the agent hears; nil once the link is settled
}

func newPort(m *mux, key portKey, in *intake) *port {
	return &port{mux: m, key: key, in: in, notify: make(chan struct{}, 1), gone: make(chan struct{})}
}

func (p *port) owns(addr netip.AddrPort) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.owned, addr)
}

// own gives the port an address, and says which one it gives up for it, if any: the other side of a link is answered from wherever it asks,
// and each packet that goes out looks through all of them. One that is still in use comes back with the next packet to it.
func (p *port) own(addr netip.AddrPort) (old netip.AddrPort, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owned = append(p.owned, addr)
	if over = len(p.owned) > mostOwned; over {
		old = p.owned[0]
		p.owned = slices.Delete(p.owned, 0, 1)
	}
	return old, over
}

// disown takes an address from the port.
func (p *port) disown(addr netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owned = slices.DeleteFunc(p.owned, func(a netip.AddrPort) bool { return a == addr })
}

// receive notes a request, and says whether the port's agent is to hear it. Whether it is one of the other side's only the agent can tell; it
// pays by its bytes. The agent keeps each address that asks with the link's password as a candidate, and looks through all of them
// for each request: so it hears of as many as the port may own.
func (p *port) receive(from netip.AddrPort, n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.consent != nil {
		return true
	}
	if !slices.Contains(p.askers, from) {
		if len(p.askers) >= mostOwned {
			return false
		}
		p.askers = append(p.askers, from)
	}
	if p.mux.guard != nil {
		p.ledger.receive(from, n)
	}
	return true
}

// checks says why a check of n bytes may not go to an address; empty: it may. A settled port asks where the other side has been, or
// once where a request with the link's password came from.
func (p *port) checks(to netip.AddrPort, n int) (reason string) {
	p.mu.Lock()
	settled, paid, sent := p.consent != nil, p.ledger.pays(to, n), p.ledger.unpaid
	p.mu.Unlock()
	switch {
	case settled || paid:
		return ""
	case sent >= linkChecks:
		return DroppedLink
	}
	if reason = p.mux.guard.takes(to.Addr(), time.Now()); reason == "" {
		p.mu.Lock()
		p.ledger.unpaid++
		p.mu.Unlock()
	}
	return reason
}

// push queues the packets of a between two offsets. A nil port takes none.
func (p *port) push(a arrival, from, to int) {
	if p == nil || from >= to {
		return
	}
	if c := p.hand(a, from, to); c != nil {
		a.each(from, to, func(q packet) {
			if isSTUN(q.data) {
				c.take(p, q.data, q.from)
			}
		})
	}
}

// hand gives packets to the agent that waits for them. If it returns one, that one is still to be given the checks.
func (p *port) hand(a arrival, from, to int) *consent {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if p.in == nil {
		a.each(from, to, p.queue.push)
		p.wake()
		return nil
	}
	data, now := false, time.Now()
	p.in.put(func(push func(packet)) {
		a.each(from, to, func(q packet) {
			if isSTUN(q.data) {
				// An agent whose other side has not answered reads nothing, and each packet may hold a slab of 64 KiB (intake.push).
				if p.consent == nil && p.queue.len() < earlyRecords {
					p.queue.push(q)
				}
				return
			}
			if !data && p.consent != nil {
				p.consent.heard.Store(steady(now)) // before another goroutine can act on it
			}
			data = true
			push(q)
		})
	})
	switch {
	case p.consent != nil:
		return p.consent
	case data && now.Sub(p.told) >= tellEvery:
		p.told = now
		p.queue.push(packet{data: alive, from: a.from})
	}
	if !p.queue.empty() {
		p.wake()
	}
	return nil
}

// settle has c answer in the agent's place. The agent's own closing leaves the port alone from now on.
func (p *port) settle(c *consent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.consent, p.askers = c, nil
	p.queue.drop()
}

func (p *port) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.consent != nil
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
	return p.queue.pop()
}

// close ends the reading of every handle, and gives back the addresses that the port owned.
func (p *port) close() (owned []netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.queue.drop()
	close(p.gone)
	owned, p.owned = p.owned, nil
	return owned
}

// handle is one candidate's hold on its agent's port: candidates of several addresses share it.
type handle struct {
	*port
	done     chan struct{}
	once     sync.Once
	answered func() // a check has been answered, and the agent has seen it
	answer   bool   // what was read last is such an answer; of the reader
	began    bool   // of the reader
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
	if !h.began {
		h.began = true
		giveBack(b[min(maxDatagram, len(b)):]) // the agent reads to the same 8 KiB as long as it lives
	}
	if h.answer { // the agent deals with a packet before it reads the next
		h.answer = false
		h.answered()
	}
	for {
		if q, ok := h.pop(); ok {
			h.answer = isSuccess(q.data)
			n := copy(b, q.data)
			q.release()
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
