package loadgen

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/webtorrent"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// serve is a real tracker behind real sockets, with TLS where roots are wanted. It notes where sessions come from.
func serve(t *testing.T, secure bool, change func(*tracker.Config)) (addr netip.AddrPort, roots *tls.Config) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	bus, err := natsbus.Open(natsbus.Config{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	one, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := tracker.Config{
		Secret: bytes.Repeat([]byte("s"), 32), Sites: []*site.Site{one}, MessagesPerSecond: 1 << 20, ConnectsPerSecond: 1 << 20,
	}
	var torrents *webtorrent.Service
	cfg.Torrents = func(t *tracker.Tracker) tracker.Torrents {
		torrents = webtorrent.New(webtorrent.Config{Token: "t"}, t)
		return torrents
	}
	if change != nil {
		change(&cfg)
	}
	tr, err := tracker.New(cfg, bus)
	if err != nil {
		t.Fatal(err)
	}
	visitor := func(r *http.Request) tracker.Visitor {
		return tracker.Visitor{Address: netip.MustParseAddrPort(r.RemoteAddr).Addr()}
	}
	sockets := wsconn.Config{Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, WriteQueue: 1024, WriteBytes: 4 << 20}
	native := wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return tr.Accept(c, visitor(r)) })
	sockets.Subprotocol, sockets.MaxMessage = "", wire.MaxMessage
	torrent := wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return torrents.Accept(c, visitor(r)) })
	mux := http.NewServeMux()
	mux.Handle("/{$}", native)
	mux.Handle("/announce", torrent)
	server := httptest.NewUnstartedServer(nil)
	admission := wsconn.NewAdmission(server.Listener, wsconn.AdmissionConfig{Refused: tr.Rejected, Silence: 2 * time.Second})
	server.Listener = admission
	server.Config = &http.Server{Handler: admission.Guard(mux), ConnContext: admission.Context}
	if secure {
		server.StartTLS()
		roots = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"}
		roots.RootCAs.AddCert(server.Certificate())
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		_ = tr.Close()
		server.Close()
		_ = bus.Close()
		goleak.VerifyNone(t, leaks)
	})
	return netip.MustParseAddrPort(server.Listener.Addr().String()), roots
}

func sources(n int) (all []netip.Addr) {
	for i := range n {
		all = append(all, netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}))
	}
	return all
}

func TestSessionsMeetThroughTheTracker(t *testing.T) {
	for _, protocol := range []Protocol{WebTorrent, Native} {
		for _, secure := range []bool{false, true} {
			t.Run(string(protocol), func(t *testing.T) {
				addr, roots := serve(t, secure, func(c *tracker.Config) { c.MaxPerAddress = 6 }) // no one address may have all
				d, err := Open(t.Context(), Config{
					Protocol: protocol, Address: addr, Path: map[Protocol]string{WebTorrent: "/announce", Native: "/"}[protocol],
					TLS: roots, Sources: sources(4), Site: "demo", Sessions: 24, Swarms: 3, Offers: 2,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				busy, err := d.Saturate(t.Context(), 50*time.Millisecond, time.Second, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Quiet(t.Context()); err != nil {
					t.Fatal(err)
				}
				paced, err := d.Pace(t.Context(), 200, time.Second, nil)
				if err != nil {
					t.Fatal(err)
				}
				for name, r := range map[string]Result{"busy": busy, "paced": paced} {
					if r.Acks == 0 || r.Offered == 0 || r.Answered == 0 || r.P50 == 0 || r.P99 < r.P50 || r.Seconds < 0.2 {
						t.Errorf("%s: %+v", name, r)
					}
				}
			})
		}
	}
}

func TestTooManyFromOneAddressIsToldAsTheTrackerSaidIt(t *testing.T) {
	addr, _ := serve(t, false, func(c *tracker.Config) { c.MaxPerAddress = 6 })
	d, err := Open(t.Context(), Config{Protocol: WebTorrent, Address: addr, Path: "/announce", Sources: sources(1), Sessions: 7, Swarms: 1})
	if err == nil {
		t.Fatal("seven sessions of one address were let in", d.Close())
	}
	if _, err := Open(t.Context(), Config{Protocol: "gopher"}); err == nil {
		t.Error("an unknown protocol was taken")
	}
	if _, err := Open(t.Context(), Config{Protocol: WebTorrent, Address: addr, Path: "/nowhere", Sessions: 1, Swarms: 1}); err == nil {
		t.Error("404 was taken for a WebSocket")
	}
}

// TestAClientThatIsNotLetInComesBack: a storm that is more than an address may begin at once is in after a while.
func TestAClientThatIsNotLetInComesBack(t *testing.T) {
	// Ten at once: the machine has two seconds to begin the rest before all of them may.
	addr, _ := serve(t, false, func(c *tracker.Config) { c.ConnectsPerSecond = 2 })
	d, err := Open(t.Context(), Config{
		Protocol: WebTorrent, Address: addr, Path: "/announce", Sources: sources(1), Sessions: 14, Swarms: 1, Opening: 14, Retries: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Retried() == 0 {
		t.Error("14 of one address were let in at once, where 10 are")
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("a median of nothing")
	}
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond} {
		if got := h.quantile(q); got < want || float64(got) > 1.04*float64(want) {
			t.Errorf("quantile %v is %s, want %s", q, got, want)
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, 31, 32, 33, time.Hour, 1<<63 - 1} {
		if b := bucketOf(d); b < 0 || b >= len(h.buckets) || d > 64 && d < 2*time.Hour && (upper(b) < d || upper(b) > d+d/16) {
			t.Errorf("%d is in bucket %d, up to %d", d, b, upper(b))
		}
	}
}

// FuzzFrame: whatever a tracker sends is a frame, not whole yet, or an error; and what is written is read, once unmasked.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x81\x02hi"), 3)
	f.Add([]byte("\x81\x7e\x00\x02hi"), 200)
	f.Add([]byte("\x89\x7f\x00\x00\x00\x00\x00\x00\x00\x01x"), 70_000)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if _, payload, size, err := frame(b); err == nil && (size < 0 || size > len(b) || len(payload) > size) {
			t.Fatalf("a frame of %d in %d bytes", size, len(b))
		}
		if n < 0 || n > 1<<17 {
			return
		}
		payload := bytes.Repeat([]byte{7}, n)
		out := appendFrame(nil, opText, payload)
		at := len(out) - n
		for i := range n {
			out[at+i] ^= maskKey[i%4]
		}
		out[1] &^= 0x80
		out = append(out[:at-4], out[at:]...)
		if op, got, size, err := frame(out); op != opText || !bytes.Equal(got, payload) || size != len(out) || err != nil {
			t.Fatalf("%d bytes come back as %d of opcode %d: %v", n, len(got), op, err)
		}
	})
}

// TestAnAnnounceWithoutAnAnswerCounts: a tracker that answers none is not the quickest of all.
func TestAnAnnounceWithoutAnAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Driver{sessions: []*session{{}, {}}}
		d.sessions[0].sent.Store(time.Now().UnixNano())
		r, err := d.measure(t.Context(), time.Second, 2*time.Second, nil)
		if err != nil || r.P99 < 3*time.Second || r.P99 > 3100*time.Millisecond {
			t.Errorf("%v, %v", r.P99, err)
		}
	})
}
