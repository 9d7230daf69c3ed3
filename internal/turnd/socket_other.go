//go:build !linux

package turnd

import (
	"context"
	"net"
)

// several says that sockets can share a port, the kernel spreading clients over them.
const several = false

func listenShared(addr string) (*net.UDPConn, error) {
	conn, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", addr)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

func buffers(*net.UDPConn) (read, write int) { return 0, 0 }
