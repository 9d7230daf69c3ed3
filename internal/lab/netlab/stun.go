package netlab

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
)

// STUN, RFC 8489, as far as a lab needs it.
const (
	stunHeader        = 20
	stunCookie        = 0x2112A442
	stunRequest       = 0x0001 // Binding
	stunSuccess       = 0x0101
	stunMappedAddress = 0x0020 // XOR-MAPPED-ADDRESS
	stunIPv4          = 0x01
)

// ServeSTUN answers Binding requests on a host's socket until it is closed: browsers that hide their addresses behind
// mDNS names need a server to tell them what they look like from outside, and a lab has no names.
func ServeSTUN(conn *net.UDPConn) error {
	packet := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(packet)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if answer := bindingAnswer(packet[:n], from); answer != nil {
			// The client that asked may be gone. If it is there, it asks again.
			_, _ = conn.WriteToUDPAddrPort(answer, from)
		}
	}
}

// bindingAnswer is the answer to a Binding request, nil to anything else.
func bindingAnswer(request []byte, from netip.AddrPort) []byte {
	ip := from.Addr().Unmap()
	if len(request) < stunHeader || binary.BigEndian.Uint16(request) != stunRequest ||
		binary.BigEndian.Uint32(request[4:]) != stunCookie || !ip.Is4() {
		return nil
	}
	b := binary.BigEndian.AppendUint16(nil, stunSuccess)
	b = binary.BigEndian.AppendUint16(b, 12) // what follows the header
	b = append(b, request[4:stunHeader]...)  // cookie and transaction
	b = binary.BigEndian.AppendUint16(b, stunMappedAddress)
	b = binary.BigEndian.AppendUint16(b, 8)
	b = append(b, 0, stunIPv4)
	b = binary.BigEndian.AppendUint16(b, from.Port()^(stunCookie>>16))
	four := ip.As4()
	return binary.BigEndian.AppendUint32(b, binary.BigEndian.Uint32(four[:])^stunCookie)
}
