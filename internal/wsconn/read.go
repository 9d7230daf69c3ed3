package wsconn

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// readBytes is how much is read at a time: a record of TLS.
	readBytes = 16 << 10
	// mostBare is how many bytes that are no message's come in a second: a thousand pings of the largest size.
	mostBare = 1000 * (6 + 125)
	// partBytes is how much of a message clients send at a time, some of them.
	partBytes = 4 << 10
)

// intake is what reading takes: it is there while something is read.
type intake struct {
	reader  *bufio.Reader
	message []byte
}

var intakes = sync.Pool{New: func() any {
	return &intake{reader: bufio.NewReaderSize(nil, readBytes), message: make([]byte, 0, 4<<10)}
}}

// listen begins to read for r; nil is for a connection that was closed.
func (c *Conn) listen(r Receiver) {
	if c.receiver = r; r == nil {
		c.receiver = deaf{}
		c.Close(CloseDone, "")
	}
	go c.await()
}

// deaf receives what a connection says that was refused.
type deaf struct{}

func (deaf) Receive([]byte) bool { return false }
func (deaf) End(error)           {}

// await waits until something comes, with next to nothing on its stack, and hands over.
func (c *Conn) await() {
	if err := c.waiter.wait(); err != nil {
		c.ended(err)
		return
	}
	c.e.workers.hand(job{c, false})
}

// read hears what has come, and then waits again.
func (c *Conn) read() {
	in := intakes.Get().(*intake)
	in.reader.Reset(inlet{c})
	c.br = *in.reader
	c.heard.Store(steady())
	err := c.hear(in)
	*in.reader = c.br // with its buffer
	c.br = bufio.Reader{}
	in.reader.Reset(nil)
	if cap(in.message) <= keptBytes {
		intakes.Put(in)
	}
	if err != nil {
		c.ended(err)
		return
	}
	go c.await()
}

// inlet is what a server reads from: its connection. Pings, pongs and parts of messages without content pass by every limit of messages, so a
// client could send them as fast as its line.
type inlet struct{ *Conn }

// Read implements io.Reader. What has been read before has been taken in, but for a part of a frame.
func (c inlet) Read(p []byte) (int, error) {
	if now := steady(); now-c.second >= int64(time.Second) {
		c.second, c.bare = now, 0
	}
	if c.bare > mostBare {
		return 0, ErrTooBig
	}
	n, err := c.net.Read(p)
	c.bare += n
	return n, err
}

// hear hands messages over until nothing more is there; the error ends the connection.
func (c *Conn) hear(in *intake) error {
	for {
		for c.control() {
			if !c.more() {
				return nil
			}
		}
		message, err := c.next(in.message[:0])
		if err != nil {
			return err
		}
		in.message = message
		if !c.waiter.can() { // which reads for as long as the connection lives
			c.heard.Store(steady())
		}
		if c.closed.Load() {
			return ErrClosed
		}
		if !c.receiver.Receive(message) {
			c.Close(CloseDone, "")
			return ErrClosed
		}
		if !c.more() {
			return nil
		}
	}
}

// control takes in a ping or a pong that comes before the next message: the library would go on to wait for the message. It
// is left to the library when it is not there as a whole, or not as it should be.
func (c *Conn) control() bool {
	if _, err := c.br.Peek(2); err != nil {
		return false // the library finds the same
	}
	b, _ := c.br.Peek(c.br.Buffered())
	n := int(b[1] & 0x7f)
	if (b[0] != 0x80|websocket.PingMessage && b[0] != 0x80|websocket.PongMessage) || b[1]&0x80 == 0 || n > 125 || len(b) < 6+n {
		return false
	}
	data := make([]byte, n)
	for i := range data {
		data[i] = b[6+i] ^ b[2+i&3]
	}
	if b[0] == 0x80|websocket.PongMessage {
		c.ponged(steady(), data)
	} else {
		c.pinging(data)
	}
	_, _ = c.br.Discard(6 + n)
	return true
}

// more says whether to go on reading: there is something already, or no way to wait but to read.
func (c *Conn) more() bool {
	switch {
	case c.br.Buffered() > 0 || !c.waiter.can():
		return true
	case c.waiter.below == nil:
		return false
	}
	return c.waiter.below.without(func() bool { // has TLS anything left?
		_, err := c.br.Peek(1)
		return !errors.Is(err, errDry)
	})
}

// next reads a message into b. It bounds the message itself: the library would write the close message past the writer, into the midst of
// what that sends.
func (c *Conn) next(b []byte) ([]byte, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, readError(err)
	}
	if kind != websocket.TextMessage {
		return nil, ErrText
	}
	c.midway = true
	defer func() { c.midway = false }()
	for most := c.e.cfg.MaxMessage; ; {
		if int64(len(b)) > most {
			return nil, ErrTooBig
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		c.bare -= n
		if err == io.EOF {
			c.bare -= head(len(b))
			return b, nil
		}
		if err != nil {
			return nil, readError(err)
		}
	}
}

// head is how many bytes stand before the content of a message that a client sends, and before its further parts.
func head(content int) int {
	switch {
	case content < 126:
		return 6
	case content < 1<<16:
		return 8 + content/partBytes*8
	}
	return 14 + content/partBytes*8
}

// readError names what the other side did wrong, where the connection is not just gone: a length above 2^63 is the library's to refuse.
func readError(err error) error {
	if errors.Is(err, websocket.ErrReadLimit) {
		return ErrTooBig
	}
	return err
}

// ended is the end of reading at a server.
func (c *Conn) ended(err error) {
	code := CloseDone
	if c.stuck.Load() {
		err = ErrSlow
	} else if c.closed.Load() {
		err = ErrClosed
	}
	var said *websocket.CloseError
	if errors.Is(err, ErrText) {
		code = CloseText
	} else if errors.Is(err, ErrTooBig) {
		code = CloseTooBig
	} else if errors.As(err, &said) && said.Code != websocket.CloseNoStatusReceived {
		code = said.Code
	}
	c.Close(code, "") // before its owner is told, which may close it with a code of its own
	c.receiver.End(err)
	c.drain()
	c.halfEnded()
}

// Read returns a client's next message, whose bytes are the caller's; the errors are those of Receiver.End.
func (c *Conn) Read() ([]byte, error) {
	b, err := c.next(nil)
	if errors.Is(err, ErrTooBig) {
		c.Close(CloseTooBig, "")
	}
	if err == nil && c.closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		return nil, err
	}
	c.heard.Store(steady())
	return b, nil
}
