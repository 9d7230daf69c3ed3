package qualitylink

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// kernel is a socket of the system.
type kernel struct {
	*net.UDPConn
	tells bool // the DSCP of what comes
}

// Listen opens a UDP socket.
func Listen(address string) (Socket, error) {
	conn, err := webrtcend.ListenUDP(address)
	if err != nil {
		return nil, fmt.Errorf("quality link: %w", err)
	}
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
