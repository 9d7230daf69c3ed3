package turnd

import (
	"encoding/binary"
	"net/netip"
)

// Data on channels of clients that come by UDP pass pion by: they are nearly all that a relay does, and pion makes an address
// and a text of it for each packet. What is not known here pion gets, and refuses.

// pass sends a client's channel data to the channel's peer; false: there is no such channel.
func (s *Server) pass(from netip.AddrPort, p []byte) bool {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	s.mu.RLock()
	r := s.byClient[from]
	s.mu.RUnlock()
	end := channelHeader + int(binary.BigEndian.Uint16(p[2:4]))
	if r == nil || end > len(p) {
		return false
	}
	r.mu.Lock()
	peer, ok := r.channels[binary.BigEndian.Uint16(p)]
	ok = ok && r.out != nil
	r.mu.Unlock()
	if ok {
		_, _ = r.send(p[channelHeader:end], peer) // refused or lost: both are counted, by us or by the kernel
	}
	return ok
}

// back sends a peer's n bytes in r.frame to the client; false: the peer has no channel.
func (r *relayed) back(from netip.AddrPort, n int) bool {
	r.mu.Lock()
	number, ok := r.numbers[from]
	out, client := r.out, r.client
	r.mu.Unlock()
	if !ok || out == nil {
		return false
	}
	binary.BigEndian.PutUint16(r.frame[:], number)
	binary.BigEndian.PutUint16(r.frame[2:], uint16(n))
	_, _ = out.WriteToUDPAddrPort(r.frame[:channelHeader+n], client) // lost, as datagrams are
	return true
}

// bound notes a channel that pion made, and unbound one that ended.
func (r *relayed) bound(number uint16, peer netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.channels[number], r.numbers[peer] = peer, number
}

func (r *relayed) unbound(number uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.numbers, r.channels[number])
	delete(r.channels, number)
}
