package turnd

import (
	"context"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// several says that sockets can share a port, the kernel spreading clients over them.
const several = true

// listenShared opens a UDP socket that others may share the port with.
func listenShared(addr string) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, set)
	}}
	conn, err := config.ListenPacket(context.Background(), "udp", addr)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// buffers reads what the kernel gave a socket. Linux doubles what was set, for its own bookkeeping, and reports the double:
// socket(7).
func buffers(conn *net.UDPConn) (read, write int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			read = n / 2
		}
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
			write = n / 2
		}
	})
	return read, write
}
