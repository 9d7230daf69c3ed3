package wsconn

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

const (
	subprotocol = "test.v1"
	patience    = 10 * time.Second
)

// endpoint serves with a function and returns how to dial it. Everything has to be gone when the test ends.
func endpoint(t *testing.T, cfg Config, serve func(*talk, *http.Request)) func(protocol, origin string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	return endpointOn(t, cfg, nil, serve)
}

// endpointOn is endpoint with the server's connections counted by l, if there is one.
func endpointOn(t *testing.T, cfg Config, l *counted, serve func(*talk, *http.Request)) func(protocol, origin string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	cfg.Subprotocol = subprotocol
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = 1024
	}
	handler := Handler(cfg, conversation(serve))
	server := httptest.NewUnstartedServer(handler)
	if l != nil {
		l.Listener, server.Listener = server.Listener, l
	}
	server.Start()
	var open []*websocket.Conn
	t.Cleanup(func() {
		for _, c := range open {
			_ = c.Close()
		}
		server.Close()
		handler.Wait()
		goleak.VerifyNone(t, leaks)
	})
	return func(protocol, origin string) (*websocket.Conn, *http.Response, error) {
		d := websocket.Dialer{Subprotocols: []string{protocol}}
		c, r, err := d.Dial("ws"+strings.TrimPrefix(server.URL, "http"), http.Header{"Origin": {origin}})
		if c != nil {
			open = append(open, c)
			_ = c.SetReadDeadline(time.Now().Add(patience))
		}
		return c, r, err
	}
}

// talk is a connection whose test reads when it likes.
type talk struct {
	*Conn
	in   chan []byte
	end  chan error
	over chan struct{} // the test has returned
}

// conversation has serve run beside the reader, to which it is a Receiver; the connection ends with it.
func conversation(serve func(*talk, *http.Request)) func(*Conn, *http.Request) Receiver {
	return func(c *Conn, r *http.Request) Receiver {
		k := &talk{c, make(chan []byte), make(chan error, 1), make(chan struct{})}
		go func() {
			serve(k, r)
			close(k.over)
			c.Close(CloseDone, "")
		}()
		return k
	}
}

func (k *talk) Receive(message []byte) bool {
	select {
	case k.in <- bytes.Clone(message):
		return true
	case <-k.over:
		return false
	}
}

func (k *talk) End(err error) { k.end <- err }

func (k *talk) Read() ([]byte, error) {
	select {
	case m := <-k.in:
		return m, nil
	case err := <-k.end:
		k.end <- err
		return nil, err
	}
}

// wait returns when nothing of the endpoint's connections runs any more.
func (k *talk) wait() { k.e.Wait() }

func dial(t *testing.T, f func(string, string) (*websocket.Conn, *http.Response, error)) *websocket.Conn {
	t.Helper()
	c, r, err := f(subprotocol, "https://a.example")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return c
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// closeCode reads until the end and returns the code, -1 without a close message.
func closeCode(c *websocket.Conn) int {
	for {
		if _, _, err := c.ReadMessage(); err != nil {
			var e *websocket.CloseError
			if errors.As(err, &e) {
				return e.Code
			}
			return -1
		}
	}
}

func TestMessagesGoBothWays(t *testing.T) {
	f := endpoint(t, Config{}, func(c *talk, _ *http.Request) {
		for {
			b, err := c.Read()
			if err != nil {
				return
			}
			if err := c.Write(append([]byte("re: "), b...)); err != nil {
				t.Errorf("writing: %v", err)
			}
		}
	})
	c := dial(t, f)
	for _, m := range []string{"one", "two", ""} {
		if err := c.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
			t.Fatal(err)
		}
		if kind, b, err := c.ReadMessage(); err != nil || kind != websocket.TextMessage || string(b) != "re: "+m {
			t.Errorf("got %q, %v", b, err)
		}
	}
}

func TestHandshakes(t *testing.T) {
	refused := make(chan string, 4)
	f := endpoint(t, Config{
		CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "https://a.example" },
		Refused:     func(reason string) { refused <- reason },
	}, func(*talk, *http.Request) {})
	_, r, err := f(subprotocol, "https://evil.example")
	if err == nil || r.StatusCode != http.StatusForbidden || receive(t, refused) != "origin" {
		t.Errorf("a foreign origin: %v", err)
	}
	_ = r.Body.Close()
	c, r, err := f("other.v9", "https://a.example")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if code := closeCode(c); code != ClosePolicy || receive(t, refused) != "version" {
		t.Errorf("another subprotocol: closed with %d", code)
	}
	if code := closeCode(dial(t, f)); code != CloseDone {
		t.Errorf("a session that is over: closed with %d", code)
	}
}

func TestPlainRequestIsToldWhatThisIs(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(Config{Subprotocol: subprotocol, MaxMessage: 1}, nil).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusUpgradeRequired {
		t.Errorf("answered %d", w.Code)
	}
}

func TestWhatTheReaderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		kind, size int
		want       error
		code       int
	}{
		"too big": {websocket.TextMessage, 1025, ErrTooBig, CloseTooBig},
		"binary":  {websocket.BinaryMessage, 8, ErrText, CloseText},
	} {
		t.Run(name, func(t *testing.T) {
			got, seen := make(chan error, 1), make(chan struct{})
			f := endpoint(t, Config{}, func(c *talk, _ *http.Request) {
				_, err := c.Read()
				got <- err
				<-seen // what ends here closes with a code of its own
			})
			defer close(seen)
			ws := dial(t, f)
			if err := ws.WriteMessage(c.kind, make([]byte, c.size)); err != nil {
				t.Fatal(err)
			}
			if err := receive(t, got); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if code := closeCode(ws); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
		})
	}
}

// TestTheCloseMessageOfAMessageThatIsTooLongIsInTurn: it is behind what was queued, and whole frames follow each other.
func TestTheCloseMessageOfAMessageThatIsTooLongIsInTurn(t *testing.T) {
	const queued, size = 8, 512 << 10
	for name, sent := range map[string][]byte{
		"a message":            appendFrame(nil, websocket.TextMessage, make([]byte, 1025), true),
		"a length of 2^64 − 1": {0x80 | websocket.TextMessage, 0x80 | 127, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			written, got, seen := make(chan struct{}), make(chan error, 1), make(chan struct{})
			f := endpoint(t, Config{WriteBytes: queued * 2 * size}, func(c *talk, _ *http.Request) {
				for range queued {
					if err := c.Write(make([]byte, size)); err != nil {
						t.Error(err)
					}
				}
				close(written)
				_, err := c.Read()
				got <- err
				<-seen // what ends here closes with a code of its own
			})
			defer close(seen)
			c := dial(t, f)
			<-written
			if _, err := c.NetConn().Write(sent); err != nil {
				t.Fatal(err)
			}
			if err := receive(t, got); !errors.Is(err, ErrTooBig) {
				t.Errorf("ended with %v", err)
			}
			for n := range queued {
				if _, b, err := c.ReadMessage(); err != nil || len(b) != size {
					t.Fatalf("message %d: %d bytes, %v", n, len(b), err)
				}
			}
			if code := closeCode(c); code != CloseTooBig {
				t.Errorf("closed with %d", code)
			}
		})
	}
}

// TestSlowReaderIsDropped writes to a client that does not read: the queue fills, the connection ends, nothing waits.
func TestSlowReaderIsDropped(t *testing.T) {
	result := make(chan error, 1)
	f := endpoint(t, Config{WriteQueue: 4}, func(c *talk, _ *http.Request) {
		message := bytes.Repeat([]byte("x"), 1<<20)
		for range 10_000 { // far more than any socket buffer holds
			if err := c.Write(message); err != nil {
				result <- err
				return
			}
		}
		result <- nil
	})
	dial(t, f)
	err := receive(t, result)
	var slow interface{ Slow() bool }
	if !errors.As(err, &slow) || !slow.Slow() {
		t.Errorf("ended with %v", err)
	}
}

func TestCloseSendsWhatIsQueued(t *testing.T) {
	f := endpoint(t, Config{}, func(c *talk, _ *http.Request) {
		_ = c.Write([]byte("last words"))
		c.Close(CloseDraining, "draining")
		c.Close(ClosePolicy, "the first call counts")
		if err := c.Write([]byte("too late")); !errors.Is(err, ErrClosed) {
			t.Errorf("wrote after the end: %v", err)
		}
	})
	c := dial(t, f)
	if _, b, err := c.ReadMessage(); err != nil || string(b) != "last words" {
		t.Errorf("got %q, %v", b, err)
	}
	if code := closeCode(c); code != CloseDraining {
		t.Errorf("closed with %d", code)
	}
}

func TestSilenceEndsAConnectionAndPongsKeepIt(t *testing.T) {
	ended := make(chan time.Duration, 1)
	f := endpoint(t, Config{PingEvery: 10 * time.Millisecond, PongTimeout: 2 * time.Second}, func(c *talk, _ *http.Request) {
		_, _ = c.Read()
		ended <- c.RTT()
	})
	c := dial(t, f)
	pings := 0
	c.SetPingHandler(func(data string) error {
		if pings++; pings > 20 {
			return nil // silent from here on
		}
		return c.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(patience))
	})
	code := closeCode(c) // reads, and so answers pings
	if pings <= 20 {
		t.Errorf("ended after %d pings, which were all answered (code %d)", pings, code)
	}
	if rtt := receive(t, ended); rtt <= 0 || rtt > patience {
		t.Errorf("round trip %s", rtt)
	}
}

// TestPongsThatAnswerNoPingAreNoRoundTrip: trackers rank viewers by their round trips, and one that sends pongs ahead of pings would seem to
// be next to all others.
func TestPongsThatAnswerNoPingAreNoRoundTrip(t *testing.T) {
	trips := make(chan time.Duration, 1)
	f := endpoint(t, Config{PingEvery: 5 * time.Millisecond}, func(c *talk, _ *http.Request) {
		_, _ = c.Read()
		trips <- c.RTT()
	})
	c := dial(t, f)
	pings, before := 0, ""
	c.SetPingHandler(func(data string) error {
		said := before
		if pings++; pings%2 == 0 {
			said = ""
		}
		if before = data; pings > 10 {
			return c.WriteMessage(websocket.TextMessage, []byte("done"))
		}
		return c.WriteControl(websocket.PongMessage, []byte(said), time.Now().Add(patience))
	})
	closeCode(c)
	if rtt := receive(t, trips); rtt != 0 {
		t.Errorf("a round trip of %v, of pings that were not answered", rtt)
	}
}

func TestDial(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	server := httptest.NewServer(Handler(Config{Subprotocol: subprotocol, MaxMessage: 1024}, conversation(func(c *talk, r *http.Request) {
		for {
			b, err := c.Read()
			if err != nil {
				return
			}
			_ = c.Write(append([]byte(r.Header.Get("Origin")+" "), b...))
		}
	})))
	t.Cleanup(func() {
		server.Close()
		goleak.VerifyNone(t, leaks)
	})
	url := "ws" + strings.TrimPrefix(server.URL, "http")
	cfg := Config{Subprotocol: subprotocol, MaxMessage: 1024}
	c, err := Dial(t.Context(), url, cfg, DialConfig{Header: http.Header{"Origin": {"https://a.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Read(); err != nil || string(b) != "https://a.example hello" {
		t.Errorf("read %q, %v", b, err)
	}
	c.Close(CloseDone, "")
	c.Wait()
	if _, err := c.Read(); err == nil {
		t.Error("a closed connection reads on")
	}
	if _, err := Dial(t.Context(), url, Config{Subprotocol: "other.v1", MaxMessage: 1}, DialConfig{}); err == nil || !strings.Contains(err.Error(), "does not speak other.v1") {
		t.Errorf("another subprotocol: %v", err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	if _, err := Dial(t.Context(), "ws"+strings.TrimPrefix(plain.URL, "http"), cfg, DialConfig{}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("no WebSocket there: %v", err)
	}
}
