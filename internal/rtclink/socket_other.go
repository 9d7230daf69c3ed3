//go:build !linux

package rtclink

import "net"

func readBuffers(*net.UDPConn) Buffers { return Buffers{} }
