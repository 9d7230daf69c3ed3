package probe

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wsconn"
)

var bulk = wsconn.BulkConfig{Subprotocol: Subprotocol, MaxMessage: MaxMessage, Handshake: 5 * time.Second}

// world is a server on pipes, in a bubble of its own time.
type world struct {
	t        *testing.T
	server   *Server
	metrics  *testkit.Recorder
	incoming chan net.Conn
	rate     int64 // bytes per second that a client reads or writes
	from     string
}

// addressed is one end of a pipe with addresses, which carries its bytes at a rate.
type addressed struct {
	net.Conn
	local, remote net.Addr
	rate          int64
}

func (a addressed) LocalAddr() net.Addr  { return a.local }
func (a addressed) RemoteAddr() net.Addr { return a.remote }

func (a addressed) pace(n int) {
	if a.rate > 0 {
		<-time.After(time.Duration(int64(n) * int64(time.Second) / a.rate))
	}
}

func (a addressed) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	a.pace(n)
	return n, err
}

func (a addressed) Write(p []byte) (int, error) {
	a.pace(len(p))
	return a.Conn.Write(p)
}

// SetLinger is of TCP connections.
func (a addressed) SetLinger(int) error { return nil }

func (w *world) Accept() (net.Conn, error) {
	c, ok := <-w.incoming
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (w *world) Close() error   { return nil }
func (w *world) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8090} }

func (w *world) dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	client := &net.TCPAddr{IP: net.ParseIP(w.from), Port: 40000}
	w.incoming <- addressed{b, w.Addr(), client, 0}
	return addressed{a, client, w.Addr(), w.rate}, nil
}

// inBubble runs a test against a server.
func inBubble(t *testing.T, cfg Config, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, metrics: &testkit.Recorder{}, incoming: make(chan net.Conn), rate: 2 << 20, from: "198.51.100.7"}
		cfg.Upgrade = func(rw http.ResponseWriter, r *http.Request) (Socket, error) { return bulk.Bulk(rw, r) }
		cfg.Offers = func(r *http.Request) bool { return wsconn.OffersBulk(r, Subprotocol) }
		cfg.Metrics = w.metrics
		if cfg.Look == nil {
			cfg.Look = func(net.Conn) (netstat.TCPInfo, bool) {
				return netstat.TCPInfo{MinRTT: 10_000, RTT: 20_000, SndMSS: 1448, BytesRetrans: 7}, true
			}
		}
		var err error
		if w.server, err = New(cfg); err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: w.server}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(w)
		}()
		test(t, w)
		close(w.incoming)
		<-done
		_ = server.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.server.Drain(ctx)
		w.metrics.Check(t)
	})
}

// open begins an ndt7 test.
func (w *world) open(path string) (*wsconn.Bulk, error) {
	return bulk.DialBulk(w.t.Context(), "ws://probe.test"+path, wsconn.DialConfig{NetDial: w.dial})
}

func (w *world) must(path string) *wsconn.Bulk {
	w.t.Helper()
	b, err := w.open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// request makes an HTTP request on a connection of its own.
func (w *world) request(method, path string, body io.Reader, header ...string) (*http.Response, []byte, error) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://probe.test"+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DialContext: w.dial, DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return response, got, err
}

// ends waits until no test runs and says how those of a kind have ended.
func (w *world) ends(kind, outcome string, want float64) {
	w.t.Helper()
	w.server.ended.Wait()
	if got := w.metrics.Value(mTests, kind, outcome); got != want {
		w.t.Errorf("%v tests %s ended as %s, want %v", got, kind, outcome, want)
	}
	if n := w.server.Running(); n != 0 || len(w.server.addresses) != 0 || w.metrics.Value(mRunning, kind) != 0 {
		w.t.Errorf("%d tests run, %d addresses", n, len(w.server.addresses))
	}
}
