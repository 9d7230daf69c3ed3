package arm

import (
	"encoding/binary"
	"time"
)

// Layout of a chunk (spec/arm-protocol.md): mark, number, the Unix time in µs at which it was due; then zeros.
const (
	chunkMark   = "lwck"
	chunkHeader = 20
)

// putChunk writes a chunk's header.
func putChunk(b []byte, number uint64, due time.Time) {
	copy(b, chunkMark)
	binary.BigEndian.PutUint64(b[4:], number)
	binary.BigEndian.PutUint64(b[12:], uint64(due.UnixMicro()))
}

// chunkDue reads when a chunk was due; false for what is no chunk.
func chunkDue(b []byte) (due time.Time, ok bool) {
	if len(b) < chunkHeader || string(b[:4]) != chunkMark {
		return time.Time{}, false
	}
	us := binary.BigEndian.Uint64(b[12:])
	if us > 1<<62 {
		return time.Time{}, false
	}
	return time.UnixMicro(int64(us)), true
}
