package tracker

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// cost is what n connections hold, per connection, once open has made them all. They stay open until the test ends.
func cost(t testing.TB, n int, open func() io.Closer) (bytes, goroutines float64) {
	t.Helper()
	held := func() (uint64, int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()
	}
	before, running := held()
	for range n {
		c := open()
		t.Cleanup(func() { _ = c.Close() })
	}
	after, more := held()
	return (float64(after) - float64(before)) / float64(n), float64(more-running) / float64(n)
}

// TestIdleSessionIsCheap compares a viewer that has joined and says nothing with an idle connection of net/http. Both counts
// have the other side in them, which is a bare socket.
func TestIdleSessionIsCheap(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	const sessions = 400
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(plain.Close)
	baseline, _ := cost(t, sessions, func() io.Closer {
		c, err := net.Dial("tcp", strings.TrimPrefix(plain.URL, "http://"))
		if err == nil {
			_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		if err == nil {
			_, err = http.ReadResponse(bufio.NewReaderSize(c, 256), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	bytes, goroutines := cost(t, sessions, func() io.Closer { return n.bare(t) })
	t.Logf("%.0f bytes and %.1f goroutines a session, %.0f bytes an idle connection of net/http: ratio %.1f", bytes, goroutines, baseline, bytes/baseline)
	if goroutines > 2 || bytes > 48<<10 { // the race detector's own share is large
		t.Error("a session holds more than it should: one goroutine and about 9 KB")
	}
}

// bare is a viewer in a swarm with nothing behind its socket.
func (n *node) bare(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(n.url, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	ask, err := http.NewRequest(http.MethodGet, "http://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		"Sec-WebSocket-Protocol": signal.Subprotocol, "Origin": testOrigin,
	} {
		ask.Header.Set(k, v)
	}
	if err := ask.Write(c); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReaderSize(c, 512)
	if _, err := http.ReadResponse(r, ask); err != nil {
		t.Fatal(err)
	}
	send := func(m signal.Message) {
		b, err := signal.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		frame := append([]byte{0x80 | websocket.TextMessage, 0x80 | 126, byte(len(b) >> 8), byte(len(b)), 0, 0, 0, 0}, b...)
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	send(&signal.Hello{Version: 1, Site: "demo"})
	send(&signal.Join{Request: 7, Title: testTitle, Role: "full"})
	for {
		line, err := r.ReadSlice('}')
		if err != nil && err != bufio.ErrBufferFull {
			t.Fatal(err)
		}
		if strings.Contains(string(line), `"joined"`) {
			return c
		}
	}
}
