package wsconn

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// TestFarewellIsBounded: a reader that takes a little now and then must not hold a replica that drains for the timeout of
// every message that is queued for it.
func TestFarewellIsBounded(t *testing.T) {
	ended := make(chan struct{})
	f := endpoint(t, Config{WriteTimeout: time.Hour, WriteBytes: 1 << 30, Farewell: 50 * time.Millisecond}, func(c *talk, _ *http.Request) {
		for range 8 {
			if err := c.Write(make([]byte, 4<<20)); err != nil {
				t.Error(err)
			}
		}
		c.Close(CloseDraining, "draining")
		_, _ = c.Read()
		c.wait()
		close(ended)
	})
	dial(t, f)
	receive(t, ended)
}

// TestQueueIsBoundedInBytes: few messages may be large ones.
func TestQueueIsBoundedInBytes(t *testing.T) {
	queued := make(chan int, 1)
	f := endpoint(t, Config{WriteQueue: 1 << 20, WriteBytes: 1 << 20}, func(c *talk, _ *http.Request) {
		n := 0
		for ; n < 1000; n++ {
			if err := c.Write(make([]byte, 512<<10)); err != nil {
				if !errors.Is(err, ErrSlow) {
					t.Error(err)
				}
				break
			}
		}
		queued <- n
	})
	dial(t, f)
	if n := receive(t, queued); n == 1000 {
		t.Errorf("%d messages of 512 KiB were taken for a reader that reads nothing", n)
	}
	f = endpoint(t, Config{WriteBytes: 10}, func(c *talk, _ *http.Request) {
		if err := c.Write(make([]byte, 100)); err != nil {
			t.Errorf("a message above the bound, alone in the queue: %v", err)
		}
	})
	if _, b, err := dial(t, f).ReadMessage(); err != nil || len(b) != 100 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestPingsAreAnsweredWithMeasure: control frames pass by every limit of messages.
func TestPingsAreAnsweredWithMeasure(t *testing.T) {
	f := endpoint(t, Config{}, func(c *talk, _ *http.Request) { _, _ = c.Read() })
	c := dial(t, f)
	pongs := 0
	c.SetPongHandler(func(string) error { pongs++; return nil })
	const pings = 500
	began := time.Now()
	for range pings {
		if err := c.WriteControl(websocket.PingMessage, []byte("hi"), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.WriteMessage(websocket.TextMessage, []byte("done")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.ReadMessage(); err == nil {
		t.Error("a message that was never sent")
	}
	if most := 2 + int(time.Since(began)/pongEvery); pongs == 0 || pongs > most {
		t.Errorf("%d of %d pings were answered, at most %d are to be", pongs, pings, most)
	}
}
