package arm

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// sockets are the UDP sockets of one stack, which sessions share. Packets are told apart by the address of the peer, so a socket has at
// most one session for each.
type sockets[S any] struct {
	limit int
	open  func() (S, error)

	mu   sync.Mutex
	list []*socket[S] // guarded by mu
	next int          // guarded by mu: where the search begins
}

// socket is one of them.
type socket[S any] struct {
	of    S
	peers map[netip.AddrPort]struct{} // guarded by sockets.mu
}

// seat is the place of a session on a socket.
type seat[S any] struct {
	all    *sockets[S]
	socket *socket[S]
	peers  []netip.AddrPort // guarded by sockets.mu
}

// take finds a socket on which none of the peer's addresses is in use; none are known of an offer's peer. As long as there are fewer
// sockets than the limit, one is opened.
func (s *sockets[S]) take(peers []netip.AddrPort) (*seat[S], *armwire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) < s.limit {
		of, err := s.open()
		if err != nil {
			return nil, armwire.Fail(armwire.Failed, "%v", err)
		}
		s.list = append(s.list, &socket[S]{of: of, peers: map[netip.AddrPort]struct{}{}})
		s.next = len(s.list) - 1
	}
	for range s.list {
		one := s.list[s.next%len(s.list)]
		s.next = (s.next + 1) % len(s.list)
		if at := (&seat[S]{all: s, socket: one}); at.claim(peers) {
			return at, nil
		}
	}
	return nil, armwire.Fail(armwire.PortInUse, "each of the %d sockets has a session with that peer address", len(s.list))
}

// claim is under mu.
func (p *seat[S]) claim(peers []netip.AddrPort) bool {
	for _, a := range peers {
		if _, used := p.socket.peers[a]; used && !p.has(a) {
			return false
		}
	}
	for _, a := range peers {
		if !p.has(a) {
			p.socket.peers[a] = struct{}{}
			p.peers = append(p.peers, a)
		}
	}
	return true
}

func (p *seat[S]) has(a netip.AddrPort) bool {
	for _, b := range p.peers {
		if a == b {
			return true
		}
	}
	return false
}

// meet notes addresses of the peer.
func (p *seat[S]) meet(peers []netip.AddrPort) *armwire.Error {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	if !p.claim(peers) {
		return armwire.Fail(armwire.PortInUse, "another session of this socket has that peer address")
	}
	return nil
}

// leave gives the place back.
func (p *seat[S]) leave() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	for _, a := range p.peers {
		delete(p.socket.peers, a)
	}
	p.peers = nil
}

// each calls f for every socket, at the end.
func (s *sockets[S]) each(f func(S)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		f(one.of)
	}
}

// mostCandidates bounds how many addresses of a peer are noted.
const mostCandidates = 32

// addressesOf are those of the UDP candidates in a description, or in one candidate.
func addressesOf(text string) (all []netip.AddrPort) {
	for line := range strings.Lines(text) {
		_, candidate, found := strings.Cut(line, "candidate:")
		fields := strings.Fields(candidate)
		if !found || len(fields) < 8 || !strings.EqualFold(fields[2], "udp") || len(all) == mostCandidates {
			continue
		}
		if a, err := netip.ParseAddrPort(strings.Join([]string{bracket(fields[4]), fields[5]}, ":")); err == nil {
			all = append(all, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
		}
	}
	return all
}

func bracket(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}
