package wsconn

import (
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// batchBytes is how much of what is queued goes out in one write, which is one record where there is TLS.
const batchBytes = 16 << 10

// buffers are for what is read or written just now: sockets that say nothing hold none.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, batchBytes); return &b }}

// release gives a buffer back. One that a large message has grown is left to the collector.
func release(buffer *[]byte, b []byte) {
	if cap(b) <= 4*batchBytes {
		*buffer = b[:0]
		buffers.Put(buffer)
	}
}

// message reads one. Its bytes are of its own size: the library would grow a buffer in steps, each of them garbage.
func (c *Conn) message() (kind int, message []byte, err error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return kind, nil, err
	}
	buffer := buffers.Get().(*[]byte)
	b := (*buffer)[:0]
	defer func() { release(buffer, b) }()
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return kind, append([]byte(nil), b...), nil
		}
		if err != nil {
			return kind, nil, err
		}
	}
}

// send writes a message, and those that are queued behind it as far as they fit into the same write. Only the writer calls
// it, and the writer alone writes, so that whole frames follow each other.
func (c *Conn) send(m []byte) error {
	if !c.server { // a client masks what it sends
		c.taken(m)
		return c.ws.WriteMessage(websocket.TextMessage, m)
	}
	buffer := buffers.Get().(*[]byte)
	b := (*buffer)[:0]
	defer func() { release(buffer, b) }()
	for more := true; more; {
		c.taken(m)
		b = appendFrame(b, m)
		if more = len(b) < batchBytes; !more {
			break
		}
		select {
		case m, more = <-c.queue: // a queue that was closed is found closed again
		default:
			more = false
		}
	}
	conn := c.ws.NetConn()
	if err := conn.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return err
	}
	_, err := conn.Write(b)
	return err
}

// appendFrame adds a text message as a server sends it: whole and unmasked.
func appendFrame(b, message []byte) []byte {
	b = append(b, 0x80|websocket.TextMessage)
	switch n := len(message); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, message...)
}
