// Package tcpinfo reads what the kernel knows of a TCP connection: tcp(7), TCP_INFO.
package tcpinfo

import (
	"net"
	"syscall"

	"github.com/leeway-video/leeway/internal/netstat"
)

// Look reads TCP_INFO of the connection, or of the one below TLS. ok is false where the system has none, or no longer.
func Look(conn net.Conn) (info netstat.TCPInfo, ok bool) {
	if secure, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = secure.NetConn()
	}
	c, is := conn.(syscall.Conn)
	if !is {
		return info, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return info, false
	}
	return look(raw)
}
