package rtclink

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"
)

// Of linux/udp.h: a message that carries its packet size is cut by the kernel or the card (generic segmentation
// offload), and packets of one sender come joined (generic receive offload). One system call, one walk through the
// kernel and one wake-up then stand for up to 64 packets.
const (
	udpSegment = 103
	udpGRO     = 104
)

// cutMessage is the control message that tells the kernel the size of the packets in a joined one.
type cutMessage struct {
	header syscall.Cmsghdr
	size   uint16
	_      [6]byte // alignment, part of the message
}

func (m *cutMessage) into(size int) []byte {
	m.header.Level, m.header.Type = syscall.IPPROTO_UDP, udpSegment
	m.header.SetLen(syscall.CmsgLen(2))
	m.size = uint16(size)
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), syscall.CmsgSpace(2))
}

// canCut says whether the kernel cuts joined packets.
func canCut(conn *net.UDPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var known error
	err = raw.Control(func(fd uintptr) { _, known = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_UDP, udpSegment) })
	return err == nil && known == nil
}

// cannotCut says whether an error is about cutting, on this socket: a device that computes no checksums.
func cannotCut(err error) bool { return errors.Is(err, syscall.EIO) }

// inbox reads a socket. The buffer of a read is taken when the socket has something, not before.
type inbox struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool
	oob  joinedMessage
	slab *slab

	// Of the last try.
	n, oobn int
	from    syscall.Sockaddr
	err     error
}

func newInbox(conn *net.UDPConn) (*inbox, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	// Without it packets come one by one.
	_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_UDP, udpGRO, 1) })
	i := &inbox{raw: raw}
	i.try = func(fd uintptr) bool {
		i.slab = slabs.Get().(*slab)
		i.n, i.oobn, _, i.from, i.err = syscall.Recvmsg(int(fd), i.slab.buf[:], i.oob.bytes(), 0)
		if i.err == nil {
			return true
		}
		slabs.Put(i.slab)
		i.slab = nil // or a socket that waits keeps it from the collector, wherever it is used next
		return i.err != syscall.EAGAIN && i.err != syscall.EINTR
	}
	return i, nil
}

// read returns the next arrival, which holds one reference to its slab. net.ErrClosed ends it.
func (i *inbox) read() (arrival, error) {
	if err := i.raw.Read(i.try); err != nil {
		if errors.Is(err, os.ErrClosed) {
			err = net.ErrClosed
		}
		return arrival{}, err
	}
	if i.err != nil {
		return arrival{}, i.err
	}
	a := arrival{slab: i.slab, n: i.n, size: max(i.n, 1)}
	i.slab = nil
	a.slab.refs.Store(1)
	switch from := i.from.(type) {
	case *syscall.SockaddrInet4:
		a.from = netip.AddrPortFrom(netip.AddrFrom4(from.Addr), uint16(from.Port))
	case *syscall.SockaddrInet6:
		a.from = netip.AddrPortFrom(netip.AddrFrom16(from.Addr).Unmap(), uint16(from.Port))
	}
	if size := i.oob.size(i.oobn); size > 0 {
		a.size = size
	}
	return a, nil
}

// joinedMessage is the control message that tells the size of the packets in a joined one.
type joinedMessage struct {
	header syscall.Cmsghdr
	packet int32
	_      [4]byte
}

func (m *joinedMessage) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// size reads a message of n bytes; 0 says that a packet came alone.
func (m *joinedMessage) size(n int) int {
	if n < syscall.CmsgLen(4) || m.header.Level != syscall.IPPROTO_UDP || m.header.Type != udpGRO {
		return 0
	}
	return int(m.packet)
}
