package wsconn

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
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

// TestQueuedMessagesShareAWrite: whoever is sent many messages at once is sent few records.
func TestQueuedMessagesShareAWrite(t *testing.T) {
	const messages = 400
	sizes := []int{0, 1, 125, 126, 300, 65_535, 65_536}
	l, end := &counted{}, make(chan struct{})
	f := endpointOn(t, Config{WriteQueue: messages + len(sizes), WriteBytes: 1 << 22}, l, func(c *Conn, _ *http.Request) {
		c.mu.Lock() // the writer finds all of them at once
		for i := range messages {
			c.queue = append(c.queue, []byte(fmt.Sprint(i)))
		}
		for _, n := range sizes {
			c.queue = append(c.queue, []byte(strings.Repeat("x", n)))
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

// TestAQueueThatIsNeverEmptyStaysSmall: what was written is forgotten while there is always more.
func TestAQueueThatIsNeverEmptyStaysSmall(t *testing.T) {
	c := &Conn{cfg: Config{WriteQueue: 8, WriteBytes: 1 << 20}, server: true, wake: make(chan struct{}, 1)}
	if err := c.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := c.Write([]byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if b, over := c.take([]byte{}, 1); len(b) == 0 || over {
			t.Fatalf("%q, %v", b, over)
		}
	}
	if cap(c.queue) > 32 || c.queued != len("999") {
		t.Errorf("a queue of %d places and %d bytes", cap(c.queue), c.queued)
	}
}
