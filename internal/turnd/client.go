package turnd

import (
	"errors"
	"net"
	"net/netip"
)

// clientBuffer is asked of the kernel for each direction of a socket that clients send to, relayBuffer for that of an
// allocation, in bytes. The kernel's default of 212,992 bytes overflows with a burst of a few viewers.
const (
	clientBuffer = 4 << 20
	relayBuffer  = 1 << 20
)

// clientSocket is a UDP socket that clients send to. It ends when it is closed, and on nothing less: a server that stopped
// reading because one packet could not be delivered would be gone for all.
type clientSocket struct {
	*net.UDPConn
	server *Server
	last   addressCache
	asked  []byte // the latest request, until the next read: of the reader alone
}

// ReadFrom implements net.PacketConn; pion calls it from one goroutine.
func (c *clientSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.ReadFromUDPAddrPort(p)
		if err == nil && n >= channelHeader && p[0]>>6 == 1 && c.server.pass(from, p[:n]) {
			continue
		}
		if err == nil && (incomplete(p[:n]) || overlong(p[:n])) {
			c.server.cfg.Policy.Ignored()
			continue
		}
		if err == nil {
			c.asked = request(p[:n])
			return n, c.last.of(from), nil
		}
		if errors.Is(err, net.ErrClosed) {
			return 0, nil, err
		}
	}
}

// WriteTo implements net.PacketConn.
func (c *clientSocket) WriteTo(p []byte, to net.Addr) (int, error) {
	at, ok := place(to)
	if !ok {
		return 0, net.InvalidAddrError("no UDP address")
	}
	n := len(p)
	if failed(p) {
		p = c.server.refused.answer(p, c.asked, to)
	}
	if !c.server.replies(p, at) {
		return n, nil // lost, as on the way
	}
	if _, err := c.WriteToUDPAddrPort(p, at); err != nil {
		return 0, err
	}
	return n, nil
}

// addressCache makes the *net.UDPAddr that pion wants, and not a new one for each packet: packets come in trains. They are
// never changed, so that pion may keep them.
type addressCache struct {
	key  netip.AddrPort
	addr *net.UDPAddr
}

func (c *addressCache) of(at netip.AddrPort) *net.UDPAddr {
	if c.addr == nil || c.key != at {
		c.key, c.addr = at, net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
	}
	return c.addr
}

// clientKey tells clients apart: one of UDP and one of a stream may have the same address and port.
type clientKey struct {
	udp bool
	at  netip.AddrPort
}

// keyOf is the key of a client of pion's; its address is not valid where pion's is none.
func keyOf(client net.Addr) clientKey {
	_, udp := client.(*net.UDPAddr)
	at, _ := place(client)
	return clientKey{udp, at}
}

// place is where an address of pion's is, IPv4 in its own form. The form matters to a socket of both families: what it
// writes to has to be mapped again, which Go does.
func place(a net.Addr) (netip.AddrPort, bool) {
	switch a := a.(type) {
	case *net.UDPAddr:
		at := a.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), at.IsValid()
	case *net.TCPAddr:
		at := a.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), at.IsValid()
	}
	return netip.AddrPort{}, false
}
