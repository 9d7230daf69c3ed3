package webrtcend

import (
	"fmt"
	"net"
)

// MTU is the size of SCTP's packets, bytes: what Chromium takes for safe on any path.
const MTU = 1191

// SocketBuffer is asked of the kernel for each direction of a socket, in bytes. Pion leaves the kernel's default of 212,992 bytes, which a
// burst overflows: SCTP then waits out a retransmission timeout of a second or more, and the network check counts it as loss.
const SocketBuffer = 4 << 20

// ListenUDP opens a UDP socket with such buffers at ADDRESS:PORT. Stock kernels give less, and no error.
func ListenUDP(address string) (*net.UDPConn, error) {
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: %w (give ADDRESS:PORT)", address, err)
	}
	network := "udp"
	if at.IP.To4() != nil {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, at)
	if err != nil {
		return nil, fmt.Errorf("open udp %s: %w", address, err)
	}
	_ = conn.SetReadBuffer(SocketBuffer)
	_ = conn.SetWriteBuffer(SocketBuffer)
	return conn, nil
}
