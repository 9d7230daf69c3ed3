package rtclink

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/pion/ice/v4"
)

// mux shares one UDP socket among the ICE agents of many links. With share it satisfies ice.UDPMux and replaces pion's, which
// routes every packet by its sender's address: there, a viewer that comes back from the same port, or another one that
// a NAT gave the port to, feeds the link of its predecessor until that times out.
//
// A STUN request goes to the agent that its user name names, whatever is known of the address. Everything else goes by
// address: to the agent that owns it. An agent gets an address that none owns by writing to it, and takes it from another
// by answering a STUN request from there with success, for then the agent has checked that the sender knows the link's
// password.
//
// Lock order: mux.mu, then port.mu.
type mux struct {
	conn  *net.UDPConn
	addrs []net.Addr
	out   *outbox
	done  chan struct{} // closed when the reader has ended

	guard    *Guard // nil: none
	received counter
	expected atomic.Pointer[expected] // nil: nothing

	mu     sync.Mutex
	ports  map[portKey]*port
	owners map[netip.AddrPort]*port
	closed bool
}

// portKey names the agent of one address family.
type portKey struct {
	ufrag string
	v6    bool
}

var _ ice.UDPMux = share{}

func newMux(conn *net.UDPConn, addrs []net.Addr, guard *Guard) (*mux, error) {
	in, err := newInbox(conn)
	if err != nil {
		return nil, err
	}
	m := &mux{
		conn: conn, addrs: addrs, out: newOutbox(conn), done: make(chan struct{}), guard: guard,
		ports: map[portKey]*port{}, owners: map[netip.AddrPort]*port{},
	}
	go m.run(in)
	return m, nil
}

// GetListenAddresses implements ice.UDPMux.
func (m *mux) GetListenAddresses() []net.Addr { return m.addrs }

// handle is what share's GetConn gives out: a handle on the port of an agent, whose data go to in. The port goes with its
// last handle.
func (m *mux) handle(ufrag string, addr net.Addr, answered func(), in *intake) (net.PacketConn, error) {
	udp, ok := addr.(*net.UDPAddr)
	if !ok {
		return nil, errNotUDP
	}
	key := portKey{ufrag, udp.IP.To4() == nil}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, net.ErrClosed
	}
	p := m.ports[key]
	if p == nil {
		p = newPort(m, key, in)
		m.ports[key] = p
	}
	return p.handle(answered), nil
}

// RemoveConnByUfrag implements ice.UDPMux: the agent has closed.
func (m *mux) RemoveConnByUfrag(ufrag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.portsOf(ufrag) {
		if !p.settled() {
			m.remove(p)
		}
	}
}

// portsOf are the ports of an agent, one for each address family that it has. Under mu.
func (m *mux) portsOf(ufrag string) (all []*port) {
	for _, v6 := range []bool{false, true} {
		if p := m.ports[portKey{ufrag, v6}]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// settle gives the ports of an agent to what answers in its place, and that the one that its packets go out by; false
// says that this is not there.
func (m *mux) settle(c *consent) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.ports[portKey{c.ufrag, c.to.Load().Addr().Is6()}]
	if out == nil {
		return false
	}
	c.port.Store(out)
	for _, p := range m.portsOf(c.ufrag) {
		p.settle(c)
	}
	return true
}

// end takes the ports of a settled link back.
func (m *mux) end(c *consent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.portsOf(c.ufrag) {
		m.remove(p)
	}
}

// remove is under mu.
func (m *mux) remove(p *port) {
	delete(m.ports, p.key)
	for _, addr := range p.close() {
		delete(m.owners, addr)
	}
}

// leave takes back a handle; the port goes with its last one.
func (m *mux) leave(p *port) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.mu.Lock()
	p.handles--
	last := p.handles == 0 && p.consent == nil
	p.mu.Unlock()
	if last && m.ports[p.key] == p {
		m.remove(p)
	}
}

// Close implements ice.UDPMux and closes the socket; it returns when nothing of it runs any more.
func (m *mux) Close() error {
	m.mu.Lock()
	closed := m.closed
	m.closed = true
	for _, p := range m.ports {
		m.remove(p)
	}
	m.mu.Unlock()
	var err error
	if !closed {
		m.out.flush() // the last packets are the links' farewells
		err = m.conn.Close()
		m.out.close()
	}
	<-m.done
	return err
}

// run reads the socket until it is closed.
func (m *mux) run(in *inbox) {
	defer close(m.done)
	for {
		a, err := in.read()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // an ICMP error for one peer; the socket goes on
		}
		m.received.add((a.n+a.size-1)/a.size, a.n)
		m.deliver(a)
		a.slab.release()
	}
}

// deliver hands the packets of an arrival to their ports.
func (m *mux) deliver(a arrival) {
	m.mu.Lock()
	owner := m.owners[a.from]
	m.mu.Unlock()
	from := 0 // begin of the run that goes to owner
	for at := 0; at < a.n; at += a.size {
		end := min(at+a.size, a.n)
		ufrag, is := requestFor(a.slab.buf[at:end])
		if !is {
			continue
		}
		owner.push(a, from, at)
		from = end
		m.mu.Lock()
		p := m.ports[portKey{string(ufrag), a.from.Addr().Is6()}]
		m.mu.Unlock()
		if p == nil {
			m.unclaimed(ufrag)
		} else if p.receive(a.from, end-at) {
			p.push(a, at, end)
		}
	}
	owner.push(a, from, a.n)
}

// write sends a packet of p and settles whose the address is.
func (m *mux) write(p *port, b []byte, to netip.AddrPort) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if m.guard != nil && isRequest(b) {
		if reason := p.checks(to, len(b)); reason != "" {
			m.guard.Dropped(reason)
			return // lost, as on the way
		}
	}
	if !p.owns(to) || isSuccess(b) {
		m.claim(p, to, isSuccess(b))
	}
	m.out.write(b, to)
}

func (m *mux) claim(p *port, addr netip.AddrPort, proven bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ports[p.key] != p {
		return
	}
	old := m.owners[addr]
	if old == p || old != nil && !proven {
		return
	}
	if old != nil {
		old.disown(addr)
	}
	m.owners[addr] = p
	if gone, over := p.own(addr); over {
		delete(m.owners, gone)
	}
}
