package webrtcend

import "github.com/pion/sctp"

// What SCTP puts around user data in a packet, bytes: the common header, and the header of a chunk, which is longer where both sides
// interleave messages (RFC 8260). Chunks are padded to a multiple of ChunkAlignment.
const (
	CommonHeader    = 12
	dataHeader      = 16
	interleavedData = 20
	ChunkAlignment  = 4
)

// LeastPayload is how many bytes of a message a packet of so many bytes carries at least.
func LeastPayload(mtu int) int { return payload(mtu, interleavedData) }

// Payload is how many bytes of a message one packet of an association carries.
func Payload(a *sctp.Association) int {
	header := dataHeader
	if m, ok := a.Metadata(); ok && m.MessageInterleavingEnabled {
		header = interleavedData
	}
	return payload(int(a.MTU()), header)
}

func payload(mtu, header int) int {
	n := mtu - CommonHeader - header
	return n - n%ChunkAlignment
}
