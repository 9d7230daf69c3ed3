package turnd

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/pion/turn/v5"
)

const (
	// maxPeers and maxChannels bound what one allocation makes grow: each is an entry and a timer, and channels are
	// searched one after the other. A connection of a browser needs one of each for a candidate of its peer.
	maxPeers, maxChannels = 128, 256
	// portTries are made at random before the range is walked through.
	portTries = 16
)

var (
	errPeer     = errors.New("turnd: nothing is relayed to there")
	errPorts    = errors.New("turnd: no port is left for a relayed address")
	errReserved = errors.New("turnd: ports are not reserved")
	errFamily   = errors.New("turnd: no address of that family to relay from")
	errStream   = errors.New("turnd: TCP is not relayed")
)

// family is where one family's relayed addresses are.
type family struct {
	network  string     // "udp4" or "udp6"
	announce netip.Addr // told to clients
	bind     netip.Addr // sockets are bound to; may be unspecified
	// inner is how one relayed address reaches another: announced addresses are not this machine's own where a cloud
	// translates them, and then packets to them would have to come back in, which not every cloud does.
	inner netip.Addr
}

// relayed is one allocation's socket.
type relayed struct {
	*net.UDPConn
	server *Server
	family *family
	port   uint16
	flow   Flow
	last   addressCache
	once   sync.Once

	mu       sync.Mutex
	peers    map[netip.Addr]struct{}   // guarded by mu: permissions
	channels map[uint16]netip.AddrPort // guarded by mu: peers by the number of their channel
	numbers  map[netip.AddrPort]uint16 // guarded by mu: the same the other way
	client   netip.AddrPort            // guarded by mu; invalid: pion has not told of it yet, or it comes by a stream
	out      *clientSocket             // guarded by mu: for client

	frame [channelHeader + 1600]byte // only the reader
}

// generator gives pion the sockets of allocations.
type generator struct{ server *Server }

// Validate implements turn.RelayAddressGenerator.
func (generator) Validate() error { return nil }

// AllocatePacketConn implements turn.RelayAddressGenerator.
func (g generator) AllocatePacketConn(c turn.AllocateListenerConfig) (net.PacketConn, net.Addr, error) {
	if c.UserID == "" || c.RequestedPort != 0 {
		return nil, nil, errReserved // pion looks for an even port before it asks for a quota
	}
	f := g.server.families[c.Network]
	if f == nil {
		return nil, nil, errFamily
	}
	flow, err := g.server.cfg.Policy.Open(c.UserID)
	if err != nil {
		return nil, nil, err
	}
	r, err := g.server.open(f, flow)
	if err != nil {
		flow.Close()
		return nil, nil, err
	}
	return r, net.UDPAddrFromAddrPort(r.announced()), nil
}

// AllocateListener implements turn.RelayAddressGenerator.
func (generator) AllocateListener(turn.AllocateListenerConfig) (net.Listener, net.Addr, error) {
	return nil, nil, errStream
}

// AllocateConn implements turn.RelayAddressGenerator.
func (generator) AllocateConn(turn.AllocateConnConfig) (net.Conn, error) { return nil, errStream }

// open binds a socket to a free port.
func (s *Server) open(f *family, flow Flow) (*relayed, error) {
	span := int(s.cfg.PortMax) - int(s.cfg.PortMin) + 1
	from := rand.IntN(span)
	for try := range portTries + span {
		offset := rand.IntN(span)
		if try >= portTries {
			offset = (from + try) % span
		}
		port := s.cfg.PortMin + uint16(offset)
		conn, err := net.ListenUDP(f.network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(f.bind, port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("turnd: relayed address: %w", err)
		}
		_, _ = conn.SetReadBuffer(relayBuffer), conn.SetWriteBuffer(relayBuffer) // the kernel gives what it allows
		r := &relayed{UDPConn: conn, server: s, family: f, port: port, flow: flow, peers: map[netip.Addr]struct{}{}, channels: map[uint16]netip.AddrPort{}, numbers: map[netip.AddrPort]uint16{}}
		if !s.enter(r) {
			_ = conn.Close()
			return nil, net.ErrClosed
		}
		return r, nil
	}
	return nil, errPorts
}

func (r *relayed) announced() netip.AddrPort { return netip.AddrPortFrom(r.family.announce, r.port) }

// WriteTo implements net.PacketConn: a packet of the client to a peer.
func (r *relayed) WriteTo(p []byte, to net.Addr) (int, error) {
	at, ok := place(to)
	if !ok {
		return 0, errPeer
	}
	return r.send(p, at)
}

func (r *relayed) send(p []byte, at netip.AddrPort) (int, error) {
	own := r.server.announces(at.Addr())
	open := own && r.server.relayedAt(at) != nil
	if !r.flow.Send(at, own, open, len(p)) {
		return 0, errPeer
	}
	if open {
		at = netip.AddrPortFrom(r.family.inner, at.Port())
	}
	return r.WriteToUDPAddrPort(p, at)
}

// ReadFrom implements net.PacketConn: a packet of a peer to the client. It ends when the socket is closed, and on nothing less.
func (r *relayed) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := r.ReadFromUDPAddrPort(r.frame[channelHeader:])
		switch {
		case errors.Is(err, net.ErrClosed):
			return 0, nil, err
		case err != nil:
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port())
		if from.Addr() == r.family.inner {
			if own := netip.AddrPortFrom(r.family.announce, from.Port()); r.server.relayedAt(own) != nil {
				from = own
			}
		}
		w, heard := r.wayOf(from)
		if !heard || !r.flow.Receive(n) {
			continue // any stranger can send what is not heard: it is not charged to the client
		}
		if !r.back(w, n) {
			return copy(p, r.frame[channelHeader:channelHeader+n]), r.last.of(from), nil
		}
	}
}

// Close implements net.PacketConn.
func (r *relayed) Close() error {
	err := net.ErrClosed
	r.once.Do(func() {
		err = r.UDPConn.Close()
		r.server.exit(r)
		r.flow.Close()
	})
	return err
}

// permits says whether the allocation may have a permission for a peer, which counts once pion has made it.
func (r *relayed) permits(peer netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.peers[peer]
	return (known || len(r.peers) < maxPeers) && len(r.channels) < maxChannels
}
