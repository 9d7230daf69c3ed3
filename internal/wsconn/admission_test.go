package wsconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/testkit"
)

// behind serves h behind an admission, over TLS if secure, and returns its address.
func behind(t *testing.T, cfg AdmissionConfig, h http.Handler, secure bool) (address string, refused <-chan string) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	reasons := make(chan string, 64)
	cfg.Refused = func(reason string) { reasons <- reason }
	server := httptest.NewUnstartedServer(nil)
	d := NewAdmission(server.Listener, cfg)
	server.Listener = d
	server.Config = &http.Server{Handler: d.Guard(h), ConnContext: d.Context, ConnState: d.State}
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.Close()
		if e, ok := h.(*Endpoint); ok {
			e.Wait()
		}
		goleak.VerifyNone(t, leaks)
	})
	return d.Addr().String(), reasons
}

// connect returns nil for a connection that was reset before it was used.
func connect(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

// ended says whether the server ended a connection that said nothing.
func ended(t *testing.T, c net.Conn) bool {
	t.Helper()
	if c == nil {
		return true
	}
	_, err := c.Read(make([]byte, 1))
	var late net.Error
	return err != nil && !(errors.As(err, &late) && late.Timeout())
}

// get asks for a page and leaves the connection open.
func get(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200"))); err != nil {
		t.Fatalf("no answer: %v", err)
	}
}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func TestSilentConnectionsOfOneAddressAreBounded(t *testing.T) {
	address, refused := behind(t, AdmissionConfig{MaxPendingPerAddress: 2}, nothing, false)
	connect(t, address)
	connect(t, address)
	if !ended(t, connect(t, address)) || receive(t, refused) != "half-open" {
		t.Error("a third was let in")
	}
}

func TestASilentConnectionLosesItsPlaceToANewOne(t *testing.T) {
	address, refused := behind(t, AdmissionConfig{MaxPending: 2, MaxPendingPerAddress: 9, Patience: time.Millisecond}, nothing, false)
	first := connect(t, address)
	for range 8 {
		get(t, connect(t, address))
	}
	second := connect(t, address)
	for range 2 {
		connect(t, address)
	}
	if !ended(t, first) || !ended(t, second) || receive(t, refused) != "half-open" || receive(t, refused) != "half-open" {
		t.Error("the first are still there")
	}
}

// TestAnUpgradeThatBeginsAndDoesNotGoOn: half a request is worth no more than none. When the admission hears of it is the machine's business,
// so others come until it has.
func TestAnUpgradeThatBeginsAndDoesNotGoOn(t *testing.T) {
	address, refused := behind(t, AdmissionConfig{MaxBusy: 1, Patience: time.Millisecond}, nothing, false)
	slow := connect(t, address)
	if _, err := io.WriteString(slow, "GET / HT"); err != nil {
		t.Fatal(err)
	}
	over := make(chan bool, 1)
	go func() { over <- ended(t, slow) }()
	for {
		if c := connect(t, address); c != nil { // may lose its place, too, where it is slow itself
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			_, _ = c.Read(make([]byte, 1))
		}
		select {
		case ended := <-over:
			if !ended || receive(t, refused) != "half-open" {
				t.Error("it is still there")
			}
			return
		default:
		}
	}
}

func TestAConnectionThatNeverSpeaksIsGivenUp(t *testing.T) {
	address, refused := behind(t, AdmissionConfig{Silence: time.Millisecond}, nothing, false)
	if !ended(t, connect(t, address)) || receive(t, refused) != "half-open" {
		t.Error("it is still there")
	}
}

// busyUntil answers at once, and is not done before a channel is closed.
func busyUntil(over <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-over
	})
}

func TestAllConnectionsAreBounded(t *testing.T) {
	over := make(chan struct{})
	address, refused := behind(t, AdmissionConfig{MaxOpen: 1}, busyUntil(over), false)
	first := connect(t, address)
	get(t, first)
	if !ended(t, connect(t, address)) || receive(t, refused) != "total" {
		t.Error("a second was let in")
	}
	close(over)
	_ = first.Close()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		c := connect(t, address)
		if c == nil {
			continue
		}
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := c.Read(make([]byte, 1)); err == nil {
			return // there is room again
		}
	}
}

// TestAnIdleConnectionMakesRoom: a client that asks once and keeps its connection has it as long as no other comes.
func TestAnIdleConnectionMakesRoom(t *testing.T) {
	for _, secure := range []bool{false, true} {
		address, refused := behind(t, AdmissionConfig{MaxOpen: 1}, nothing, secure)
		asks := func() (c net.Conn, answered bool) {
			if c = connect(t, address); c == nil {
				return nil, false
			}
			if secure {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			}
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			_, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200")))
			return c, err == nil
		}
		first, answered := asks()
		if !answered {
			t.Fatal("no answer")
		}
		reason := ""
		testkit.Eventually(t, "a second is answered", func() bool { // when the first is known to be idle is the machine's business
			_, answered := asks()
			for len(refused) > 0 {
				reason = <-refused
			}
			return answered
		})
		if _, err := io.Copy(io.Discard, first); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the first is still there")
		}
		if reason != "total" {
			t.Errorf("it went for another reason: %q", reason)
		}
	}
}

// TestMessagesUnderTLSThroughAdmission: many frames come in one record, one frame in many records, and nothing is forgotten in
// what TLS has read ahead. In between, the connection waits below TLS.
func TestMessagesUnderTLSThroughAdmission(t *testing.T) {
	h := Handler(Config{Subprotocol: subprotocol, MaxMessage: 1 << 20}, conversation(func(c *talk, _ *http.Request) {
		for {
			b, err := c.Read()
			if err != nil {
				return
			}
			if err := c.Write(fmt.Appendf(nil, "%d", len(b))); err != nil {
				return
			}
		}
	}))
	address, _ := behind(t, AdmissionConfig{}, h, true)
	d := websocket.Dialer{Subprotocols: []string{subprotocol}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	c, _, err := d.Dial("wss://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for round := range 20 {
		var sizes []int
		var all []byte
		for i := range 1 + 10*(round%3) {
			n := (i * 7919 * (round + 1)) % 40_000
			if i%3 > 0 {
				n %= 100
			}
			sizes = append(sizes, n)
			all = appendFrame(all, websocket.TextMessage, []byte(strings.Repeat("x", n)), true)
			if i%4 == 3 {
				all = appendFrame(all, websocket.PingMessage, []byte("there?"), true)
			}
		}
		if _, err := c.NetConn().Write(all); err != nil {
			t.Fatal(err)
		}
		for _, n := range sizes {
			if _, b, err := c.ReadMessage(); err != nil || string(b) != fmt.Sprint(n) {
				t.Fatalf("round %d: %q, %v; want %d", round, b, err, n)
			}
		}
	}
}
