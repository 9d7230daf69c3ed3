package testkit

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Air carries datagrams between its ends, with what a test plants. It satisfies what qualitylink takes for a socket.
type Air struct {
	// Fate says how long a packet is on its way, and whether it arrives. nil: at once.
	Fate func(from, to netip.AddrPort, b []byte) (delay time.Duration, arrives bool)

	mu   sync.Mutex
	ends map[netip.AddrPort]*AirEnd // guarded by mu
}

// AirEnd is a socket in the air.
type AirEnd struct {
	air *Air
	at  netip.AddrPort

	mu     sync.Mutex
	queue  []airPacket // guarded by mu: by time of arrival
	stir   chan struct{}
	closed bool // guarded by mu
}

type airPacket struct {
	data []byte
	dscp int
	from netip.AddrPort
	due  time.Time
}

// Listen makes an end.
func (a *Air) Listen(at string) *AirEnd {
	e := &AirEnd{air: a, at: netip.MustParseAddrPort(at), stir: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ends == nil {
		a.ends = map[netip.AddrPort]*AirEnd{}
	}
	a.ends[e.at] = e
	return e
}

// ReadMarked waits for a packet.
func (e *AirEnd) ReadMarked(b []byte) (n, dscp int, from net.Addr, err error) {
	for {
		e.mu.Lock()
		closed, wait := e.closed, time.Hour
		if len(e.queue) > 0 {
			wait = time.Until(e.queue[0].due)
		}
		if !closed && wait <= 0 {
			p := e.queue[0]
			e.queue = e.queue[1:]
			e.mu.Unlock()
			return copy(b, p.data), p.dscp, net.UDPAddrFromAddrPort(p.from), nil
		}
		e.mu.Unlock()
		if closed {
			return 0, -1, nil, net.ErrClosed
		}
		t := time.NewTimer(wait)
		select {
		case <-e.stir:
		case <-t.C:
		}
		t.Stop()
	}
}

// WriteMarked sends a packet.
func (e *AirEnd) WriteMarked(b []byte, dscp int, to net.Addr) error {
	target := to.(*net.UDPAddr).AddrPort()
	delay, arrives := time.Duration(0), true
	if e.air.Fate != nil {
		delay, arrives = e.air.Fate(e.at, target, b)
	}
	e.air.mu.Lock()
	other := e.air.ends[target]
	e.air.mu.Unlock()
	if !arrives || other == nil {
		return nil
	}
	p := airPacket{slices.Clone(b), dscp, e.at, time.Now().Add(delay)}
	other.mu.Lock()
	i := len(other.queue)
	for i > 0 && other.queue[i-1].due.After(p.due) {
		i--
	}
	other.queue = slices.Insert(other.queue, i, p)
	other.mu.Unlock()
	other.wake()
	return nil
}

func (e *AirEnd) wake() {
	select {
	case e.stir <- struct{}{}:
	default:
	}
}

// ReadFrom implements net.PacketConn.
func (e *AirEnd) ReadFrom(b []byte) (int, net.Addr, error) {
	n, _, from, err := e.ReadMarked(b)
	return n, from, err
}

// WriteTo implements net.PacketConn.
func (e *AirEnd) WriteTo(b []byte, to net.Addr) (int, error) { return len(b), e.WriteMarked(b, 0, to) }

// Close implements net.PacketConn.
func (e *AirEnd) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.wake()
	return nil
}

// LocalAddr implements net.PacketConn.
func (e *AirEnd) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(e.at) }

// SetDeadline implements net.PacketConn; nothing waits here for a time.
func (e *AirEnd) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.PacketConn.
func (e *AirEnd) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.PacketConn.
func (e *AirEnd) SetWriteDeadline(time.Time) error { return nil }
