package rtclink

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// Buffers are the sizes of a socket's kernel buffers, in bytes, as read back; 0 where they cannot be read.
type Buffers struct{ Read, Write int }

// socket is a UDP socket with its mux.
type socket struct {
	conn    *net.UDPConn
	mux     *mux
	addr    *net.UDPAddr
	buffers Buffers
}

// openSocket opens a socket whose mux offers loopback addresses if loopback says so or listen is one, and is bounded by guard if there
// is one.
func openSocket(listen string, loopback bool, guard *Guard) (*socket, error) {
	conn, err := webrtcend.ListenUDP(listen)
	if err != nil {
		return nil, fmt.Errorf("rtclink: %w", err)
	}
	s := &socket{conn: conn, addr: conn.LocalAddr().(*net.UDPAddr), buffers: readBuffers(conn)}
	addrs, err := offered(s.addr, loopback)
	if err == nil {
		s.mux, err = newMux(conn, addrs, guard)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rtclink: udp %s: %w", listen, err), conn.Close())
	}
	return s, nil
}

// offered lists the addresses that a socket on addr can be reached at.
func offered(addr *net.UDPAddr, loopback bool) ([]net.Addr, error) {
	if !addr.IP.IsUnspecified() {
		return []net.Addr{addr}, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var out []net.Addr
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok, n.IP.IsLoopback() && !loopback, n.IP.IsLinkLocalUnicast(), n.IP.IsMulticast():
		case n.IP.To4() == nil && addr.IP.To4() != nil:
		default:
			out = append(out, &net.UDPAddr{IP: n.IP, Port: addr.Port})
		}
	}
	return out, nil
}

// close ends the socket and returns when nothing of it runs any more.
func (s *socket) close() {
	_ = s.mux.Close()
}

// warnBuffers says once what to set when the kernel gave less than was asked.
func warnBuffers(log *slog.Logger, b Buffers) {
	if b.Read > 0 && (b.Read < webrtcend.SocketBuffer || b.Write < webrtcend.SocketBuffer) {
		log.Warn("udp socket buffers are smaller than asked: bursts will be lost",
			"read_bytes", b.Read, "write_bytes", b.Write, "asked_bytes", webrtcend.SocketBuffer,
			"hint", fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d", webrtcend.SocketBuffer, webrtcend.SocketBuffer))
	}
}
