package wsconn

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// TestClosedConnectionEndsWhileTheOtherSideTalks: a client that goes on sending after a close must not hold the connection open.
func TestClosedConnectionEndsWhileTheOtherSideTalks(t *testing.T) {
	heard, ended := make(chan struct{}, 1), make(chan error, 1)
	f := endpoint(t, Config{PongTimeout: time.Minute}, func(c *talk, _ *http.Request) {
		go func() {
			<-heard
			c.Close(CloseDraining, "draining")
		}()
		for {
			_, err := c.Read()
			select {
			case heard <- struct{}{}:
			default:
			}
			if err != nil {
				c.wait()
				ended <- err
				return
			}
		}
	})
	c := dial(t, f)
	c.SetCloseHandler(func(int, string) error { return nil }) // rude: does not answer the close
	stop := make(chan struct{})
	var talking sync.WaitGroup
	talking.Go(func() {
		for c.WriteMessage(websocket.TextMessage, []byte("still here")) == nil {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	err := receive(t, ended)
	close(stop)
	talking.Wait()
	if err == nil {
		t.Error("no error after the end")
	}
}

// TestLastWordsComeThoughNothingWasRead: a socket that is closed with unread data is reset, and what was written is lost.
func TestLastWordsComeThoughNothingWasRead(t *testing.T) {
	sent := make(chan struct{})
	f := endpoint(t, Config{}, func(c *talk, _ *http.Request) {
		<-sent
		_ = c.Write([]byte("why"))
		c.Close(ClosePolicy, "enough")
	})
	c := dial(t, f)
	for range 100 {
		if err := c.WriteMessage(websocket.TextMessage, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	close(sent)
	if _, b, err := c.ReadMessage(); err != nil || string(b) != "why" {
		t.Errorf("got %q, %v", b, err)
	}
	if code := closeCode(c); code != ClosePolicy {
		t.Errorf("closed with %d", code)
	}
}

func TestWritersAndClosersMayRace(t *testing.T) {
	f := endpoint(t, Config{WriteQueue: 1 << 10}, func(c *talk, _ *http.Request) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for c.Write([]byte("x")) == nil {
					c.RTT()
				}
				if err := c.Write([]byte("x")); !errors.Is(err, ErrClosed) {
					t.Errorf("after the end: %v", err)
				}
			})
		}
		_, _ = c.Read()
		for range 4 {
			all.Go(func() { c.Close(CloseDone, "") })
		}
		all.Wait()
	})
	c := dial(t, f)
	if err := c.WriteMessage(websocket.TextMessage, []byte("go")); err != nil {
		t.Fatal(err)
	}
	closeCode(c)
}

// TestAMessageThatIsNeverWholeEndsTheConnection: its sender answers pings between the parts, and does not send the last.
func TestAMessageThatIsNeverWholeEndsTheConnection(t *testing.T) {
	ended := make(chan error, 1)
	f := endpoint(t, Config{PongTimeout: 200 * time.Millisecond}, func(c *talk, _ *http.Request) {
		_, err := c.Read()
		ended <- err
	})
	c := dial(t, f).NetConn()
	if _, err := c.Write([]byte{websocket.TextMessage, 0x80 | 1, 0, 0, 0, 0, 'x'}); err != nil {
		t.Fatal(err)
	}
	pongs := time.NewTicker(10 * time.Millisecond)
	defer pongs.Stop()
	for end := time.After(patience); ; {
		select {
		case <-ended:
			return
		case <-pongs.C:
			_, _ = c.Write([]byte{0x80 | websocket.PongMessage, 0x80, 0, 0, 0, 0})
		case <-end:
			t.Fatal("it is held for as long as pongs come")
		}
	}
}

func TestSizeLimitHoldsForWholeMessages(t *testing.T) {
	type result struct {
		size int
		err  error
	}
	got := make(chan result, 2)
	f := endpoint(t, Config{MaxMessage: 1024}, func(c *talk, _ *http.Request) {
		for range 2 {
			b, err := c.Read()
			got <- result{len(b), err}
		}
	})
	c := dial(t, f)
	if err := c.WriteMessage(websocket.TextMessage, make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
	if r := receive(t, got); r.err != nil || r.size != 1024 {
		t.Errorf("a message of the limit's size: %d bytes, %v", r.size, r.err)
	}
	w, err := c.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	for range 64 { // larger than the client's buffer, so it goes out in fragments
		if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
			break // refused on the way already
		}
	}
	_ = w.Close()
	r := receive(t, got)
	var oversized interface{ Oversized() bool }
	if !errors.As(r.err, &oversized) || !oversized.Oversized() {
		t.Errorf("fragments above the limit: %d bytes, %v", r.size, r.err)
	}
}

func TestNoSubprotocolIsAnotherOne(t *testing.T) {
	refused := make(chan string, 1)
	f := endpoint(t, Config{Refused: func(reason string) { refused <- reason }}, func(*talk, *http.Request) {
		t.Error("served")
	})
	c, r, err := f("", "https://a.example")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if code := closeCode(c); code != ClosePolicy || receive(t, refused) != "version" {
		t.Errorf("closed with %d", code)
	}
}

// TestStuckReaderIsLetGo: the session of a slow reader ends within lingerTime, not after the timeout of a write.
func TestStuckReaderIsLetGo(t *testing.T) {
	ended := make(chan error, 1)
	f := endpoint(t, Config{WriteQueue: 2, WriteTimeout: time.Hour}, func(c *talk, _ *http.Request) {
		message := []byte(strings.Repeat("x", 1<<20))
		var err error
		for err == nil {
			err = c.Write(message)
		}
		_, _ = c.Read() // ends as well
		c.wait()
		ended <- err
	})
	c := dial(t, f)
	if err := receive(t, ended); !errors.Is(err, ErrSlow) {
		t.Errorf("ended with %v", err)
	}
	if code := closeCode(c); code != -1 && code != CloseOverloaded {
		t.Errorf("closed with %d", code)
	}
}

func TestDefaultsAreComplete(t *testing.T) {
	var c Config
	c.complete()
	if c.WriteQueue <= 0 || c.WriteTimeout <= 0 || c.PingEvery <= 0 || c.PongTimeout < 2*c.PingEvery || c.Log == nil || c.Refused == nil {
		t.Errorf("%+v", c)
	}
	if !c.CheckOrigin(nil) {
		t.Error("without a check every origin is welcome")
	}
}

// TestAFloodThatIsNoMessageEndsTheConnection: its frames pass by every limit of messages, between messages and between the parts of one.
func TestAFloodThatIsNoMessageEndsTheConnection(t *testing.T) {
	begun := []byte{websocket.TextMessage, 0x80 | 1, 0, 0, 0, 0, 'x'}
	for name, c := range map[string]struct{ before, frame []byte }{
		"pings":              {nil, appendFrame(nil, websocket.PingMessage, nil, true)},
		"pongs":              {nil, appendFrame(nil, websocket.PongMessage, nil, true)},
		"pings in a message": {begun, appendFrame(nil, websocket.PingMessage, nil, true)},
		"empty parts":        {begun, []byte{0, 0x80, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			f := endpoint(t, Config{}, func(c *talk, _ *http.Request) {
				_, err := c.Read()
				ended <- err
			})
			flood := bytes.Repeat(c.frame, 10*mostBare/len(c.frame))      // a slow machine has ten seconds for them
			_, _ = dial(t, f).NetConn().Write(append(c.before, flood...)) // the connection may end before all is written
			if err := receive(t, ended); !errors.Is(err, ErrTooBig) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// TestAMessageHasWhatStandsBeforeItsParts: the library writes one of more than 4 KiB in parts. What is counted for them has a bound.
func TestAMessageHasWhatStandsBeforeItsParts(t *testing.T) {
	for _, length := range []int{0, 125, 126, partBytes, partBytes + 4, 2*partBytes + 200, 65_535, 65_536} {
		frames := 0
		for left := length; left > 0 || frames == 0; left -= partBytes {
			part := min(left, partBytes)
			frames += len(appendFrame(nil, websocket.TextMessage, make([]byte, part), true)) - part
		}
		if got := head(length); got < frames || got > frames+14 {
			t.Errorf("%d bytes: %d bytes before its parts, of which %d are the message's", length, frames, got)
		}
	}
}

// TestMessagesAreNoFlood, however many come in a second: they have a limit of their own, and what stands before each is of the message.
func TestMessagesAreNoFlood(t *testing.T) {
	for _, length := range []int{0, 1, 125, 126} {
		frame := appendFrame(nil, websocket.TextMessage, bytes.Repeat([]byte{'x'}, length), true)
		many := 2 * mostBare / head(length)
		ended := make(chan error, 1)
		f := endpoint(t, Config{}, func(c *talk, _ *http.Request) {
			for n := range many {
				if _, err := c.Read(); err != nil {
					ended <- fmt.Errorf("after %d of %d messages of %d bytes: %w", n, many, length, err)
					return
				}
			}
			ended <- nil
		})
		_, _ = dial(t, f).NetConn().Write(bytes.Repeat(frame, many))
		if err := receive(t, ended); err != nil {
			t.Error(err)
		}
	}
}
