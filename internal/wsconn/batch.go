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

// maxIdleQueue is how much of a queue is kept once it is empty, in messages.
const maxIdleQueue = 16

// send writes what is queued as far as it fits into one write, and says whether the connection is over: closed, and nothing
// left to say. Only the writer calls it, and the writer alone writes, so that whole frames follow each other.
func (c *Conn) send() (over bool, err error) {
	if !c.server { // a client masks what it sends, and has little to say
		m, over := c.take(nil, 1)
		if over || m == nil {
			return over, nil
		}
		_ = c.ws.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout))
		return false, c.ws.WriteMessage(websocket.TextMessage, m)
	}
	buffer := buffers.Get().(*[]byte)
	b := (*buffer)[:0]
	defer func() { release(buffer, b) }()
	if b, over = c.take(b, batchBytes); over || len(b) == 0 {
		return over, nil
	}
	conn := c.ws.NetConn()
	if err := conn.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return false, err
	}
	_, err = conn.Write(b)
	return false, err
}

// take appends the frames of what is queued to b until that has most bytes, and rouses the writer again for the rest. With a
// nil b it returns the first message alone, as it is.
func (c *Conn) take(b []byte, most int) (out []byte, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	over = c.closed && c.head == len(c.queue)
	for alone := b == nil; c.head < len(c.queue) && len(b) < most; {
		m := c.queue[c.head]
		c.queue[c.head] = nil
		c.head++
		c.queued -= len(m)
		if alone {
			b = m
			break
		}
		b = appendFrame(b, m)
	}
	if c.head < len(c.queue) || c.closed {
		c.rouse()
	}
	switch {
	case c.head == len(c.queue):
		c.queue, c.head = c.queue[:0], 0
		if cap(c.queue) > maxIdleQueue {
			c.queue = nil
		}
	case 2*c.head >= len(c.queue): // a queue that is never empty must not grow by what has gone
		c.queue = c.queue[:copy(c.queue, c.queue[c.head:])]
		c.head = 0
	}
	return b, over
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
