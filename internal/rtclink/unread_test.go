package rtclink

import (
	"encoding/binary"
	"testing"
)

// makeChunk makes one of SCTP's: what follows its header is the sequence number and as many bytes more as asked for.
func makeChunk(kind, flags byte, number uint32, more int) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind, flags}, uint16(8+more))
	b = binary.BigEndian.AppendUint32(b, number)
	b = append(b, make([]byte, more)...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestMoreIsReadWhereAMessageMayHaveEnded(t *testing.T) {
	const begin, middle, end = 2, 0, 1
	sack := makeChunk(chunkSACK, 0, 0, 8)
	var u unread
	for i, c := range []struct {
		chunks [][]byte
		more   bool
	}{
		{[][]byte{sack}, false},
		{[][]byte{makeChunk(chunkIData, begin|end, 1<<32-3, 20)}, true}, // the first, whatever it is
		{[][]byte{makeChunk(chunkIData, begin, 1<<32-2, 21)}, false},
		{[][]byte{makeChunk(chunkIData, middle, 1<<32-1, 20)}, false},
		{[][]byte{makeChunk(chunkIData, end, 0, 20)}, true}, // the numbers wrap
		{[][]byte{makeChunk(chunkData, middle, 2, 20), sack}, false},
		{[][]byte{makeChunk(chunkData, middle, 1, 20)}, true}, // late: it may be what was missing
		{[][]byte{makeChunk(chunkData, middle, 2, 20)}, true}, // again
		{[][]byte{makeChunk(chunkData, middle, 3, 21), makeChunk(chunkData, end, 4, 2)}, true},
		{[][]byte{makeChunk(chunkData, end, 5, 21), makeChunk(chunkData, begin, 6, 2)}, true},
		{[][]byte{makeChunk(chunkData, middle, 7, 20)}, false},
		{[][]byte{makeChunk(chunkHeartbeat, 0, 0, 4)}, false},
		{[][]byte{makeChunk(chunkHeartbeatAck, 0, 0, 4)}, false},
		{[][]byte{sack, makeChunk(192, 0, 0, 4)}, true}, // FORWARD-TSN: what waited behind a message given up goes on
		{[][]byte{makeChunk(6, 0, 0, 0)}, true},         // ABORT
		{[][]byte{{chunkData, 0, 0, 3}}, true},          // malformed: SCTP says what it is
		{[][]byte{{chunkData, 0, 0, 200, 0, 0, 0, 9}}, true},
		{[][]byte{{chunkData, 0, 0, 6, 0, 0, 0, 0}}, true},
		{nil, true},
	} {
		packet := make([]byte, commonHeader)
		for _, chunk := range c.chunks {
			packet = append(packet, chunk...)
		}
		if got := u.more(packet); got != c.more {
			t.Errorf("packet %d: %v, want %v", i, got, c.more)
		}
	}
}

// FuzzUnread holds the judgment of a packet to what a plain reading of it says: where a fragment ends a message there is more.
func FuzzUnread(f *testing.F) {
	f.Add(append(make([]byte, commonHeader), makeChunk(chunkIData, 1, 7, 20)...), uint32(6))
	f.Add(append(make([]byte, commonHeader), makeChunk(chunkData, 0, 7, 20)...), uint32(7))
	f.Fuzz(func(t *testing.T, packet []byte, highest uint32) {
		u := unread{known: true, highest: highest}
		if u.more(packet) || len(packet) < commonHeader+chunkHeader {
			return
		}
		switch kind := packet[commonHeader]; kind {
		case chunkSACK, chunkHeartbeat, chunkHeartbeatAck:
		case chunkData, chunkIData:
			number := binary.BigEndian.Uint32(packet[commonHeader+chunkHeader:])
			if packet[commonHeader+1]&flagEnd != 0 || int32(number-highest) <= 0 {
				t.Errorf("fragment %d after %d with flags %x: nothing to read", number, highest, packet[commonHeader+1])
			}
		default:
			t.Errorf("chunk of type %d: nothing to read", kind)
		}
	})
}
