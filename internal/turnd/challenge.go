package turnd

import (
	"encoding/binary"
	"net/netip"
)

// What is read of STUN (RFC 8489) before pion does: a datagram's source may be forged, so that a reply goes to one that has asked
// for nothing. A reply that no password stands behind is charged to the network that it goes to, and requests that no client sends get
// none.
const (
	stunCookie             = 0x2112A442
	stunAttributeHeader    = 4
	classMask              = 0x0110
	classRequest           = 0x0000
	classSuccess           = 0x0100
	classError             = 0x0110
	methodBinding          = 0x0001
	methodAllocate         = 0x0003
	attrMessageIntegrity   = 0x0008
	attrNonce              = 0x0015
	attrRequestedTransport = 0x0019

	longestNonce = 127 // bytes (RFC 8489, 14.10)
)

// stunKind is the type of a STUN message; false: it is none.
func stunKind(p []byte) (kind uint16, ok bool) {
	if len(p) < stunHeader || p[0] > 0x3f || binary.BigEndian.Uint32(p[4:]) != stunCookie {
		return 0, false
	}
	return binary.BigEndian.Uint16(p), true
}

// carries says whether a STUN message has an attribute.
func carries(p []byte, attribute uint16) bool { return lengthOf(p, attribute) >= 0 }

// lengthOf is what a STUN message says of the length of its first attribute of a type; below 0: it has none.
func lengthOf(p []byte, attribute uint16) int {
	for p = p[stunHeader:]; len(p) >= stunAttributeHeader; {
		length := int(binary.BigEndian.Uint16(p[2:]))
		if binary.BigEndian.Uint16(p) == attribute {
			return length
		}
		n := stunAttributeHeader + (length+3)&^3
		p = p[min(n, len(p)):]
	}
	return -1
}

// overlong says of a packet that it has a longer nonce than there is. pion reads it as one number, in a time that grows with the square of its
// length, before it looks at the password.
func overlong(p []byte) bool {
	_, ok := stunKind(p)
	return ok && lengthOf(p, attrNonce) > longestNonce
}

// incomplete says of a datagram that it is a request which a client never begins with: without a password only what asks for an
// allocation in full is answered, and a binding request. It keeps the answer from being much longer than what asks for it.
func incomplete(p []byte) bool {
	if len(p) > 0 && p[0] > 0x7f {
		return true // neither STUN nor a channel's data (RFC 8656), but pion reads it as STUN
	}
	kind, ok := stunKind(p)
	if !ok || kind&classMask != classRequest || kind == methodBinding || carries(p, attrMessageIntegrity) {
		return false
	}
	return kind != methodAllocate || !carries(p, attrRequestedTransport)
}

// unproven says of a datagram that it is a reply to a request that no password stands behind.
func unproven(p []byte) bool {
	kind, ok := stunKind(p)
	if class := kind & classMask; !ok || class != classSuccess && class != classError {
		return false
	}
	return !carries(p, attrMessageIntegrity)
}

// replies says whether a datagram may go to a client.
func (s *Server) replies(p []byte, to netip.AddrPort) bool {
	return !unproven(p) || s.cfg.Policy.Answers(to.Addr())
}
