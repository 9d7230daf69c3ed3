//go:build unix

package tcpinfo

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mark sets the DSCP of what is sent on the connection, or on the one below TLS.
func Mark(conn net.Conn, dscp int) error {
	if secure, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = secure.NetConn()
	}
	c, is := conn.(syscall.Conn)
	if !is {
		return errors.New("tcpinfo: no socket below")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("tcpinfo: %w", err)
	}
	var v4, v6 error
	err = raw.Control(func(fd uintptr) {
		v4 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, dscp<<2)
		v6 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, dscp<<2) // fails on a socket of IPv4
	})
	if err == nil && v4 != nil && v6 != nil {
		err = v4
	}
	if err != nil {
		return fmt.Errorf("tcpinfo: mark: %w", err)
	}
	return nil
}
