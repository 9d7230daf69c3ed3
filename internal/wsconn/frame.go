package wsconn

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/gorilla/websocket"
)

const (
	// firstBytes is what the buffer of a queue begins with.
	firstBytes = 4 << 10
	// keptBytes is up to which size a buffer is used again; one that a large queue has grown is left to the collector.
	keptBytes = 64 << 10
	// writeBytes is how much is written at a time: a slow reader gets the timeout for each.
	writeBytes = 64 << 10
)

// buffers hold what is queued: sockets that are told nothing have none.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, firstBytes); return &b }}

func release(b *[]byte) {
	if cap(*b) <= keptBytes {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// appendFrame adds a whole frame as a server sends it, or masked as a client does.
func appendFrame(b []byte, opcode byte, payload []byte, masked bool) []byte {
	mask := byte(0)
	if masked {
		mask = 0x80
	}
	b = append(b, 0x80|opcode)
	switch n := len(payload); {
	case n < 126:
		b = append(b, mask|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, mask|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, mask|127), uint64(n))
	}
	if !masked {
		return append(b, payload...)
	}
	var key [4]byte
	binary.LittleEndian.PutUint32(key[:], rand.Uint32())
	b = append(b, key[:]...)
	at := len(b)
	b = append(b, payload...)
	for i := range b[at:] {
		b[at+i] ^= key[i&3]
	}
	return b
}

// appendClose adds the frame that ends a conversation.
func appendClose(b []byte, code int, reason string, masked bool) []byte {
	if len(reason) > 123 {
		reason = reason[:123]
	}
	return appendFrame(b, websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), masked)
}
