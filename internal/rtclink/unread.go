package rtclink

import (
	"encoding/binary"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// Of SCTP's chunks (RFC 9260, 3.2 and 3.3.1; RFC 8260, 2.1): types, and the flag of a message's last fragment.
const (
	chunkHeader       = 4
	chunkData         = 0
	chunkSACK         = 3
	chunkHeartbeat    = 4
	chunkHeartbeatAck = 5
	chunkIData        = 64
	flagEnd           = 1 << 0
)

// unread says of SCTP's packets, in the order in which they come, whether there may be more to read after them. To look is a
// goroutine and a turn through all channels; of fifteen packets that carry a piece two bring a message to its end, and the
// acknowledgements, half as many as packets, none.
type unread struct {
	known   bool   // highest is
	highest uint32 // sequence number of the fragments that have come
}

// more is false only where it is certain: of what acknowledges, and of a fragment that is neither the last of its message nor
// sent again. The last one of such a message is still to come, and says so itself.
func (u *unread) more(packet []byte) bool {
	more := len(packet) < webrtcend.CommonHeader+chunkHeader
	for at := webrtcend.CommonHeader; at+chunkHeader <= len(packet); {
		chunk := packet[at:]
		length := int(binary.BigEndian.Uint16(chunk[2:]))
		if length < chunkHeader || length > len(chunk) {
			return true
		}
		switch chunk[0] {
		case chunkSACK, chunkHeartbeat, chunkHeartbeatAck:
		case chunkData, chunkIData:
			more = u.fragment(chunk[:length]) || more
		default:
			more = true
		}
		at += (length + webrtcend.ChunkAlignment - 1) / webrtcend.ChunkAlignment * webrtcend.ChunkAlignment
	}
	return more
}

func (u *unread) fragment(chunk []byte) (more bool) {
	if len(chunk) < chunkHeader+4 {
		return true
	}
	number := binary.BigEndian.Uint32(chunk[chunkHeader:])
	if u.known && int32(number-u.highest) <= 0 {
		return true
	}
	first := !u.known
	u.known, u.highest = true, number
	return first || chunk[1]&flagEnd != 0
}
