package wsconn

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
)

// counted counts the writes of a server's connections.
type counted struct {
	net.Listener
	writes atomic.Int64
}

type countedConn struct {
	net.Conn
	of *counted
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l}, err
}

func (c countedConn) Write(b []byte) (int, error) {
	c.of.writes.Add(1)
	return c.Conn.Write(b)
}

// TestQueuedMessagesShareAWrite: a client that is sent many messages at once is sent few records.
func TestQueuedMessagesShareAWrite(t *testing.T) {
	const messages = 400
	sizes := []int{0, 1, 125, 126, 300, 65_535, 65_536}
	l, end := &counted{}, make(chan struct{})
	f := endpointOn(t, Config{WriteQueue: messages + len(sizes), WriteBytes: 1 << 22}, l, func(c *talk, _ *http.Request) {
		c.mu.Lock() // the writer finds all of them at once
		for i := range messages {
			c.queue(websocket.TextMessage, []byte(fmt.Sprint(i)))
		}
		for _, n := range sizes {
			c.queue(websocket.TextMessage, []byte(strings.Repeat("x", n)))
		}
		c.rouse()
		c.mu.Unlock()
		<-end
	})
	c := dial(t, f)
	before := l.writes.Load()
	for i := range messages {
		if _, b, err := c.ReadMessage(); err != nil || string(b) != fmt.Sprint(i) {
			t.Fatalf("message %d came as %q, %v", i, b, err)
		}
	}
	for _, n := range sizes {
		if _, b, err := c.ReadMessage(); err != nil || string(b) != strings.Repeat("x", n) {
			t.Fatalf("a message of %d bytes came with %d, %v", n, len(b), err)
		}
	}
	close(end)
	if writes := l.writes.Load() - before; writes > messages/10 {
		t.Errorf("%d writes for %d messages", writes, messages)
	}
}
