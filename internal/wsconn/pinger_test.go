package wsconn

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

// TestAStuckWriteEndsTheConnection: no deadline is set for each write, and yet none takes for ever.
func TestAStuckWriteEndsTheConnection(t *testing.T) {
	ended := make(chan error, 1)
	f := endpoint(t, Config{WriteTimeout: 50 * time.Millisecond, WriteBytes: 1 << 30, Farewell: time.Hour}, func(c *talk, _ *http.Request) {
		for range 64 { // far more than any socket buffer holds
			if err := c.Write(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		_, err := c.Read()
		ended <- err
	})
	dial(t, f)
	if err := receive(t, ended); !errors.Is(err, ErrSlow) {
		t.Errorf("ended with %v", err)
	}
}

// held is a receiver that takes its time over the first message.
type held struct{ arrived, hold *sync.WaitGroup }

func (h held) Receive([]byte) bool {
	h.arrived.Done()
	h.hold.Wait()
	return true
}

func (held) End(error) {}

// TestIdleWorkersEnd: there are as many workers as messages are handled at a time, and not for longer than that.
func TestIdleWorkersEnd(t *testing.T) {
	const sockets = 24
	leaks := goleak.IgnoreCurrent()
	var arrived, hold sync.WaitGroup
	arrived.Add(sockets)
	hold.Add(1)
	e := Handler(Config{MaxMessage: 100, PingEvery: 400 * time.Millisecond}, func(*Conn, *http.Request) Receiver { return held{&arrived, &hold} })
	server := httptest.NewServer(e)
	var reading sync.WaitGroup
	var open []*websocket.Conn
	for range sockets {
		c, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.WriteMessage(websocket.TextMessage, []byte("x")); err != nil {
			t.Fatal(err)
		}
		reading.Go(func() { _, _, _ = c.ReadMessage() }) // answers pings
		open = append(open, c)
	}
	t.Cleanup(func() {
		for _, c := range open {
			_ = c.Close()
		}
		server.Close()
		e.Wait()
		reading.Wait()
		goleak.VerifyNone(t, leaks)
	})
	arrived.Wait() // all workers are busy at once
	hold.Done()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		e.workers.mu.Lock()
		idle := len(e.workers.idle)
		e.workers.mu.Unlock()
		if idle > 0 && idle < sockets/2 {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%d workers wait for work", idle)
		}
	}
}

// TestAConnectionIsNotSilentForAClockThatIsSet: what is noted of what came is a moment of the clock that nothing sets.
func TestAConnectionIsNotSilentForAClockThatIsSet(t *testing.T) {
	before, heard := steady(), make(chan int64, 1)
	f := endpoint(t, Config{}, func(c *talk, _ *http.Request) {
		_, _ = c.Read()
		heard <- c.heard.Load()
	})
	if err := dial(t, f).WriteMessage(websocket.TextMessage, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if at, now := receive(t, heard), steady(); at < before || at > now {
		t.Errorf("heard at %d, between %d and %d", at, before, now)
	}
}
