package wsconn

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

var bulkConfig = BulkConfig{Subprotocol: "bulk.test", MaxMessage: 1 << 20, Handshake: 5 * time.Second}

// bulkServer serves bulk sockets and returns its address.
func bulkServer(t *testing.T, serve func(b *Bulk)) (url string) {
	t.Helper()
	var served sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		defer served.Done()
		if !OffersBulk(r, bulkConfig.Subprotocol) {
			http.Error(w, "no such subprotocol", http.StatusBadRequest)
			return
		}
		b, err := bulkConfig.Bulk(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer b.Close(false)
		_ = b.SetDeadline(time.Now().Add(10 * time.Second))
		serve(b)
	}))
	t.Cleanup(func() {
		server.Close()
		served.Wait()
		goleak.VerifyNone(t)
	})
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// TestBulkBothWays: messages of any size and both kinds arrive as they were sent, and the farewell after them.
func TestBulkBothWays(t *testing.T) {
	url := bulkServer(t, func(b *Bulk) {
		for {
			binary, err := b.Next()
			if err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				return
			}
			p, err := io.ReadAll(b)
			if err != nil {
				t.Error(err)
			}
			if err := b.Send(binary, p); err != nil {
				t.Error(err)
			}
		}
	})
	b, err := bulkConfig.DialBulk(t.Context(), url, DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(false)
	for _, size := range []int{0, 1, 125, 126, 1 << 16, 1 << 20} {
		message := bytes.Repeat([]byte{7}, size)
		if err := b.Send(size != 1, message); err != nil {
			t.Fatal(err)
		}
		binary, err := b.Next()
		got, readErr := io.ReadAll(b)
		if err != nil || readErr != nil || binary != (size != 1) || !bytes.Equal(got, message) {
			t.Errorf("%d bytes: %v, %v, %d bytes back", size, err, readErr, len(got))
		}
	}
	if err := b.Farewell(CloseDone, "", time.Now().Add(time.Second)); err != nil {
		t.Error(err)
	}
}

func TestBulkRefuses(t *testing.T) {
	url := bulkServer(t, func(b *Bulk) {
		_, err := b.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, b)
		}
		if !errors.Is(err, ErrTooBig) {
			t.Errorf("a message above the limit gives %v", err)
		}
		_ = b.Farewell(CloseTooBig, "", time.Now().Add(time.Second))
		b.Linger()
	})
	b, err := bulkConfig.DialBulk(t.Context(), url, DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(false)
	_ = b.Send(true, make([]byte, 1<<20+1))
	if _, err := b.Next(); err != io.EOF {
		t.Errorf("the farewell is %v", err)
	}
	if _, err := (BulkConfig{Subprotocol: "other", Handshake: time.Second}).DialBulk(t.Context(), url, DialConfig{}); err == nil || !strings.Contains(err.Error(), "400 Bad Request: no such subprotocol") {
		t.Errorf("another subprotocol: %v", err)
	}
	if _, err := bulkConfig.DialBulk(t.Context(), "ws://127.0.0.1:1", DialConfig{}); err == nil {
		t.Error("a socket to nowhere")
	}
}

// TestPingsOfABulkSocketAreBounded: pings are answered ten times a second, and more than a thousand end the socket.
func TestPingsOfABulkSocketAreBounded(t *testing.T) {
	ended := make(chan error, 1)
	url := bulkServer(t, func(b *Bulk) {
		_, err := b.Next()
		ended <- err
	})
	d := websocket.Dialer{Subprotocols: []string{bulkConfig.Subprotocol}}
	ws, response, err := d.Dial(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	defer ws.Close()
	begin := time.Now()
	for range maxControls + 1 {
		if ws.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(10*time.Second)) != nil {
			break
		}
	}
	if err := <-ended; !errors.Is(err, ErrTooBig) {
		t.Errorf("the socket ended with %v", err)
	}
	pongs := 0
	ws.SetPongHandler(func(string) error { pongs++; return nil })
	_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _, _ = ws.ReadMessage()
	if most := int(time.Since(begin)/pongEvery) + 1; pongs < 1 || pongs > most {
		t.Errorf("%d pongs, at most %d are due", pongs, most)
	}
}

// hijacked is a response whose connection is taken over.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// FuzzBulk: whatever bytes a client sends after the handshake, the socket ends, and gives no message above the limit.
func FuzzBulk(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x82, 0x81, 1, 2, 3, 4, 5})                                     // a binary message of a byte
	f.Add([]byte{0x81, 0x80, 0, 0, 0, 0, 0x88, 0x80, 0, 0, 0, 0})                // an empty text, and a close
	f.Add([]byte{0x02, 0x81, 0, 0, 0, 0, 9, 0x80, 0x81, 0, 0, 0, 0, 9})          // in two frames
	f.Add([]byte{0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0})  // longer than there are bytes
	f.Add([]byte{0x89, 0x80, 0, 0, 0, 0, 0x8a, 0x80, 0, 0, 0, 0, 0xff, 0, 0, 0}) // a ping, a pong, and nonsense
	f.Fuzz(func(t *testing.T, sent []byte) {
		client, server := net.Pipe()
		defer client.Close()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		go func() {
			_, _ = client.Write(sent)
			_ = client.Close()
		}()
		r := httptest.NewRequest("GET", "/", nil)
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-Websocket-Protocol": "bulk.test"} {
			r.Header.Set(k, v)
		}
		b, err := bulkConfig.Bulk(hijacked{httptest.NewRecorder(), server}, r)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(true)
		for range len(sent) + 1 {
			if _, err := b.Next(); err != nil {
				return
			}
			if n, _ := io.Copy(io.Discard, b); n > bulkConfig.MaxMessage {
				t.Fatalf("a message of %d bytes", n)
			}
		}
		t.Fatal("there are more messages than bytes")
	})
}
