package qualitylink

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"
)

// readMarks has the kernel tell the DSCP of what comes.
func readMarks(conn *net.UDPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	_ = raw.Control(func(fd uintptr) {
		v4 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
		v6 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1) // fails on a socket of IPv4
		ok = v4 == nil || v6 == nil
	})
	return ok
}

// markOf reads what the kernel told of a packet; below 0: nothing.
func markOf(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return -1
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_TOS && len(m.Data) > 0:
			return int(m.Data[0] >> 2)
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_TCLASS && len(m.Data) >= 4:
			return int(binary.NativeEndian.Uint32(m.Data)>>2) & 63
		}
	}
	return -1
}

// markFor is what tells the kernel the DSCP of a packet.
func markFor(dscp int, v6 bool) []byte {
	b := make([]byte, unix.CmsgSpace(4))
	level, kind := int32(unix.IPPROTO_IP), int32(unix.IP_TOS)
	if v6 {
		level, kind = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	header := unix.CmsgLen(4)
	if unix.SizeofCmsghdr == 16 {
		binary.NativeEndian.PutUint64(b, uint64(header))
		binary.NativeEndian.PutUint32(b[8:], uint32(level))
		binary.NativeEndian.PutUint32(b[12:], uint32(kind))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(header))
		binary.NativeEndian.PutUint32(b[4:], uint32(level))
		binary.NativeEndian.PutUint32(b[8:], uint32(kind))
	}
	binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], uint32(dscp<<2))
	return b
}
