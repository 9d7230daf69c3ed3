package turnd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// locate finds which addresses relayed ones are told as, and which sockets are bound to.
func (s *Server) locate() error {
	host, _, err := net.SplitHostPort(s.cfg.Listen)
	if err != nil {
		return err
	}
	bind, _ := netip.ParseAddr(host) // invalid: all addresses
	bind = bind.Unmap().WithZone("")
	announce := s.cfg.Announce
	if len(announce) == 0 {
		if announce = outward(); bind.IsValid() && !bind.IsUnspecified() {
			announce = []netip.Addr{bind}
		}
	}
	s.families = map[string]*family{}
	for _, a := range announce {
		a = a.Unmap().WithZone("")
		f := &family{network: "udp4", announce: a, bind: netip.IPv4Unspecified(), inner: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
		if a.Is6() {
			f.network, f.bind, f.inner = "udp6", netip.IPv6Unspecified(), netip.IPv6Loopback()
		}
		if bind.IsValid() && !bind.IsUnspecified() && bind.Is4() == a.Is4() {
			f.bind, f.inner = bind, bind
		}
		if s.families[f.network] != nil {
			return fmt.Errorf("turnd: %s and %s are announced, two of one family", s.families[f.network].announce, a)
		}
		s.families[f.network] = f
	}
	if len(s.families) == 0 {
		return errors.New("turnd: no address to relay from was found (has this machine a default route?); announce the one that viewers reach (turn.announce)")
	}
	return nil
}

// outward is which addresses this machine reaches others from. Nothing is sent: the kernel looks the way up.
func outward() (all []netip.Addr) {
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		conn, err := net.Dial("udp", to)
		if err != nil {
			continue
		}
		if at, ok := place(conn.LocalAddr()); ok && !at.Addr().IsUnspecified() {
			all = append(all, at.Addr().WithZone(""))
		}
		_ = conn.Close()
	}
	return all
}

// announces says whether relayed addresses are told as this one.
func (s *Server) announces(a netip.Addr) bool {
	for _, f := range s.families {
		if f.announce == a {
			return true
		}
	}
	return false
}

// relayedAt is the open relayed address of this name, or nil.
func (s *Server) relayedAt(at netip.AddrPort) *relayed {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.relayed[at]
}

// enter notes a relayed address; false when the server is closing.
func (s *Server) enter(r *relayed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.relayed[r.announced()] = r
	s.gone.Add(1) // until deleted
	return true
}

// exit forgets a relayed address. Its port is free already, so another allocation may have it.
func (s *Server) exit(r *relayed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := r.announced(); s.relayed[at] == r {
		delete(s.relayed, at)
	}
}

// created and deleted follow pion's allocations.
func (s *Server) created(client net.Addr, r *relayed) {
	from := keyOf(client)
	if !from.at.IsValid() {
		return
	}
	s.mu.Lock()
	if r != nil {
		s.byClient[from] = r
		if from.udp {
			r.mu.Lock() // after Server.mu, never before
			r.client, r.out = from.at, s.clients[int(from.at.Port())%len(s.clients)]
			r.mu.Unlock()
		}
	}
	s.mu.Unlock()
	s.cfg.Policy.Holds(from.at.Addr(), 1)
}

func (s *Server) deleted(client net.Addr) {
	from := keyOf(client)
	if !from.at.IsValid() {
		return
	}
	s.mu.Lock()
	delete(s.byClient, from)
	s.mu.Unlock()
	s.cfg.Policy.Holds(from.at.Addr(), -1)
	s.gone.Done()
}
