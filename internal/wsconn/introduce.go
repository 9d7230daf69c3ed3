package wsconn

import (
	"errors"
	"net"
	"net/netip"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/proxy"
)

// counts says under what a socket counts: a proxy's under nothing, for many stand behind it.
func (s *stay) counts(trusted bool) {
	s.trusted, s.network = trusted, netip.Prefix{}
	if trusted {
		return
	}
	// Who has a /48 has as many networks as he wants; the door is wide enough for all who are honest in one.
	if s.network = access.Wide(s.from); !s.network.IsValid() {
		s.network = access.Network(s.from)
	}
}

// introduce has a socket count as its client's from now on; false says that there are too many of that one's.
func (d *Door) introduce(s *Socket, client netip.AddrPort) bool {
	trusted := d.cfg.Trusted(client.Addr())
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.state != silent {
		return true // it has lost its place, and hears of it
	}
	d.discount(s)
	s.from, s.client, s.introduced = client.Addr(), client, true
	s.counts(trusted)
	d.from[s.network]++
	return trusted || d.from[s.network] <= d.cfg.MaxPendingPerAddress
}

// misled ends a connection whose balancer did not say whose it is: in time, or in a way that is understood.
func (s *Socket) misled(err error) {
	if errors.Is(err, proxy.ErrHeader) {
		s.refuse("proxy")
		return
	}
	_ = s.Close()
}

// RemoteAddr implements net.Conn: the client, where a balancer has said who it is.
func (s *Socket) RemoteAddr() net.Addr {
	if s.client.IsValid() {
		return net.TCPAddrFromAddrPort(s.client)
	}
	return s.TCPConn.RemoteAddr()
}
