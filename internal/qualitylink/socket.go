package qualitylink

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// socketBuffer is asked of the kernel for each direction, bytes: its default overflows in bursts, which would count as loss.
const socketBuffer = 4 << 20

// kernel is a socket of the system.
type kernel struct {
	*net.UDPConn
	tells bool // the DSCP of what comes
}

// Listen opens a UDP socket.
func Listen(address string) (Socket, error) {
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("quality link: listen address %q: %w (give ADDRESS:PORT)", address, err)
	}
	network := "udp"
	if at.IP.To4() != nil {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, at)
	if err != nil {
		return nil, fmt.Errorf("quality link: open udp %s: %w", address, err)
	}
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
	return &kernel{conn, readMarks(conn)}, nil
}

// ReadMarked implements Socket.
func (k *kernel) ReadMarked(b []byte) (n, dscp int, from net.Addr, err error) {
	var oob [128]byte
	for {
		n, told, _, at, err := k.ReadMsgUDPAddrPort(b, oob[:])
		if isICMP(err) {
			continue // about one client; the socket goes on
		}
		if err != nil {
			return n, -1, nil, err
		}
		dscp = -1
		if k.tells {
			dscp = markOf(oob[:told])
		}
		return n, dscp, net.UDPAddrFromAddrPort(at), nil
	}
}

// WriteMarked implements Socket.
func (k *kernel) WriteMarked(b []byte, dscp int, to net.Addr) error {
	at := addrPort(to)
	var oob []byte
	if dscp > 0 {
		oob = markFor(dscp, at.Addr().Is6())
	}
	_, _, err := k.WriteMsgUDPAddrPort(b, oob, at)
	return err
}

// isICMP says whether an error of a socket is one that an ICMP message makes.
func isICMP(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && (number == syscall.ECONNREFUSED || number == syscall.EHOSTUNREACH || number == syscall.ENETUNREACH)
}
