package wsconn

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

// TestWhatIsReadyGoesFirst: on one processor, a message that has come is read before the next piece of a handshake.
func TestWhatIsReadyGoesFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ours := newHandshakeLimiter()
	ours.most = time.Minute // the machine may be slow
	defer ours.close()
	var read atomic.Int64
	var reader sync.WaitGroup
	reader.Go(func() {
		for b := make([]byte, 1); ; read.Add(1) {
			if _, err := in.Read(b); err != nil {
				return
			}
		}
	})
	const messages = 300
	first := func(pass func()) (n int64) {
		for range messages {
			before := read.Load()
			if _, err := out.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			if pass(); read.Load() > before {
				n++
			}
			for read.Load() == before {
				ours.yield()
			}
		}
		return n
	}
	with, without := first(ours.yield), first((&handshakeLimiter{}).yield)
	_ = in.Close()
	reader.Wait()
	if with < messages/2 || with < 4*without {
		t.Errorf("%d of %d messages were read first, %d where one only steps aside", with, messages, without)
	}
}

func TestATurnIsNotWaitedForWithoutEnd(t *testing.T) {
	limiter := newHandshakeLimiter()
	defer limiter.close()
	for range cap(limiter.places) {
		if !limiter.acquire() {
			t.Fatal("no turn while there are some")
		}
	}
	if limiter.acquire() {
		t.Error("one turn too many")
	}
	limiter.release()
	if !limiter.acquire() {
		t.Error("no turn though one was given back")
	}
}

// TestNoTurnIsLost: whatever becomes of a connection, the turn that it had comes back.
func TestNoTurnIsLost(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	h := Handler(Config{Subprotocol: subprotocol, MaxMessage: 100}, conversation(func(c *talk, _ *http.Request) { _, _ = c.Read() }))
	server := httptest.NewUnstartedServer(nil)
	d := NewAdmission(server.Listener, AdmissionConfig{Silence: 20 * time.Millisecond, MaxBusy: 4, Patience: time.Millisecond})
	server.Listener = d
	server.Config = &http.Server{Handler: d.Guard(h), ConnContext: d.Context, ReadHeaderTimeout: 200 * time.Millisecond, ErrorLog: log.New(io.Discard, "", 0)}
	server.StartTLS()
	address := d.Addr().String()
	trust := &tls.Config{InsecureSkipVerify: true}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { // a session
			w := websocket.Dialer{Subprotocols: []string{subprotocol}, TLSClientConfig: trust}
			if c, _, err := w.Dial("wss://"+address, nil); err == nil {
				_ = c.WriteMessage(websocket.TextMessage, []byte("x"))
				_, _, _ = c.ReadMessage()
				_ = c.Close()
			}
		})
		for _, begin := range []string{"", "\x16\x03\x01", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x02\x01\x00"} {
			all.Go(func() {
				if c, err := net.Dial("tcp", address); err == nil {
					_, _ = io.WriteString(c, begin)
					_, _ = c.Read(make([]byte, 1))
					_ = c.Close()
				}
			})
		}
		for _, request := range []string{"", "no request\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"} {
			all.Go(func() {
				if c, err := tls.Dial("tcp", address, trust); err == nil {
					_, _ = io.WriteString(c, request)
					if request != "" {
						_, _ = c.Read(make([]byte, 1))
					}
					_ = c.Close()
				}
			})
		}
	}
	all.Wait()
	server.Close()
	h.Wait()
	goleak.VerifyNone(t, leaks)
	if n := len(d.handshakes.places); n > 0 {
		t.Errorf("%d turns are not given back", n)
	}
}

// TestAClientThatMayNotBeginIsRefusedBeforeItsHandshake: the budget of an address is asked once something is said, and has back what
// a request took.
func TestAClientThatMayNotBeginIsRefusedBeforeItsHandshake(t *testing.T) {
	var left, entered atomic.Int64
	left.Store(2)
	address, refused := behind(t, AdmissionConfig{
		Knock:   func(netip.Addr) bool { return left.Add(-1) >= 0 },
		Entered: func(netip.Addr) { entered.Add(1) },
	}, nothing, false)
	connect(t, address) // says nothing, and costs nothing
	get(t, connect(t, address))
	half := connect(t, address)
	if _, err := io.WriteString(half, "GET / HT"); err != nil {
		t.Fatal(err)
	}
	for left.Load() > 0 {
		runtime.Gosched() // it is another goroutine that hears it
	}
	last := connect(t, address)
	if _, err := io.WriteString(last, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if !ended(t, last) || receive(t, refused) != "rate" {
		t.Error("a third was let in")
	}
	if n := entered.Load(); n != 1 {
		t.Errorf("%d places were given back, want that of the one request", n)
	}
}
