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
	r := s.byClient[clientKey{true, from}]
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

// way is how what a peer sends goes to the client: by a channel of this number, or else as pion sends it.
type way struct {
	number uint16
	out    *clientSocket // nil: pion sends it
	client netip.AddrPort
}

// wayOf says whether the client hears of a peer, by a channel or by a permission, and how.
func (r *relayed) wayOf(from netip.AddrPort) (w way, heard bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number, ok := r.numbers[from]; ok {
		return way{number, r.out, r.client}, true
	}
	_, heard = r.peers[from.Addr()]
	return way{}, heard
}

// back sends n bytes in r.frame to the client; false: pion has to.
func (r *relayed) back(w way, n int) bool {
	if w.out == nil {
		return false
	}
	binary.BigEndian.PutUint16(r.frame[:], w.number)
	binary.BigEndian.PutUint16(r.frame[2:], uint16(n))
	_, _ = w.out.WriteToUDPAddrPort(r.frame[:channelHeader+n], w.client) // lost, as datagrams are
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
