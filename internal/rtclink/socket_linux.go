package rtclink

import (
	"net"
	"syscall"
)

func readBuffers(conn *net.UDPConn) Buffers {
	var b Buffers
	raw, err := conn.SyscallConn()
	if err != nil {
		return b
	}
	// Linux doubles what was set, for its own bookkeeping, and reports the double: socket(7).
	_ = raw.Control(func(fd uintptr) {
		if n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF); err == nil {
			b.Read = n / 2
		}
		if n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF); err == nil {
			b.Write = n / 2
		}
	})
	return b
}
