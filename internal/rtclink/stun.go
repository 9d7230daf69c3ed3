package rtclink

import (
	"bytes"
	"encoding/binary"
)

// What the mux reads of STUN (RFC 8489): enough to know which link a request is for. Checking it is the agent's business.
const (
	stunHeader       = 20
	stunCookie       = 0x2112A442
	bindingRequest   = 0x0001
	bindingSuccess   = 0x0101
	stunUsername     = 0x0006
	attributeHeader  = 4
	attributePadding = 4
)

func isSTUN(b []byte) bool {
	return len(b) >= stunHeader && b[0] < 4 && binary.BigEndian.Uint32(b[4:]) == stunCookie
}

// isSuccess says whether b is the answer to a binding request that passed the agent's check of its password.
func isSuccess(b []byte) bool {
	return isSTUN(b) && binary.BigEndian.Uint16(b) == bindingSuccess
}

// isRequest says whether b is a check.
func isRequest(b []byte) bool {
	return isSTUN(b) && binary.BigEndian.Uint16(b) == bindingRequest
}

// requestFor returns the user name fragment of the agent that a binding request is for; false for all other packets.
func requestFor(b []byte) (ufrag []byte, ok bool) {
	if !isRequest(b) {
		return nil, false
	}
	end := stunHeader + int(binary.BigEndian.Uint16(b[2:]))
	if end > len(b) {
		return nil, false
	}
	for b = b[stunHeader:end]; len(b) >= attributeHeader; {
		kind, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		b = b[attributeHeader:]
		if n > len(b) {
			return nil, false
		}
		if kind == stunUsername {
			ufrag, _, ok = bytes.Cut(b[:n], []byte{':'})
			return ufrag, ok
		}
		b = b[min((n+attributePadding-1)&^(attributePadding-1), len(b)):]
	}
	return nil, false
}
