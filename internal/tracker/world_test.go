package tracker

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/natsbus"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/testkit/testbus"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wsconn"
)

const (
	testOrigin   = "https://video.example.com"
	testTitle    = "/media/bbb"
	testManifest = "/media/bbb/master.m3u8"

	addressHeader = "X-Test-Address" // where a test's viewer says it is
)

// world is trackers on a real NATS server, reached over real sockets.
type world struct {
	t       *testing.T
	bus     *natsbus.Bus
	clock   testkit.Clock
	metrics testkit.Recorder
	through Bus            // what trackers talk to instead of bus, if set
	fleet   *bus.SeedFleet // of the seeds, if any
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bus: testbus.Open(t)}
	t.Cleanup(func() { w.metrics.Check(t) })
	return w
}

// oneSite is the site demo with what a test sets of it.
func oneSite(t testing.TB, c configured.Config) []*configured.Site {
	t.Helper()
	c.Name, c.Hosts = "demo", []string{"video.example.com"}
	s, err := configured.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return []*configured.Site{s}
}

// node is one tracker with its endpoint.
type node struct {
	*Tracker
	world *world
	url   string
}

func (w *world) tracker(change func(*Config)) *node {
	w.t.Helper()
	cfg := Config{
		Secret: bytes.Repeat([]byte("s"), 32), Sites: oneSite(w.t, configured.Config{}), Now: w.clock.Now, Metrics: &w.metrics,
		// Three of them is how long a goroutine of a busy machine may be kept waiting before others take its tracker for dead.
		BeatEvery: 150 * time.Millisecond, MessagesPerSecond: 10_000, ConnectsPerSecond: 1000,
	}
	if change != nil {
		change(&cfg)
	}
	var b Bus = w.bus
	if w.through != nil {
		b = w.through
	}
	tr, err := New(cfg, b)
	if err != nil {
		w.t.Fatal(err)
	}
	h := wsconn.Handler(wsconn.Config{
		Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, WriteQueue: 256, Refused: tr.Rejected, Crowded: tr.Crowded,
		CheckOrigin: func(r *http.Request) bool { return tr.AllowsOrigin(r.Header.Get("Origin")) },
	}, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver {
		address := netip.MustParseAddrPort(r.RemoteAddr).Addr()
		if a, err := netip.ParseAddr(r.Header.Get(addressHeader)); err == nil {
			address = a
		}
		return tr.Accept(c, Visitor{Origin: r.Header.Get("Origin"), Address: address})
	})
	server := httptest.NewServer(h)
	w.t.Cleanup(func() {
		_ = tr.Close()
		server.Close()
	})
	return &node{tr, w, "ws" + strings.TrimPrefix(server.URL, "http")}
}

// seed beats as a seed does until the test ends, and collects what trackers send it.
func (w *world) seed() (id signal.ID, received <-chan bus.SeedDelivery) {
	w.t.Helper()
	id = newID()
	out := make(chan bus.SeedDelivery, 64)
	streams := map[signal.ID]*cluster.Inbox[bus.SeedDelivery]{}
	var hearing sync.Mutex
	over := false // guarded by hearing: what is under way when the subscription ends must not find the bus closed
	stop, err := w.bus.Subscribe(bus.SubjectSeedDeliver(id), func(_ string, data []byte, _ func([]byte) error) {
		var d bus.SeedDelivery
		if err := bus.Decode(data, &d); err != nil {
			w.t.Errorf("seed got %s: %v", data, err)
			return
		}
		if d.Stream == nil {
			out <- d
			return
		}
		hearing.Lock()
		defer hearing.Unlock()
		if over {
			return
		}
		from := d.Stream.From
		if streams[from] == nil {
			streams[from] = &cluster.Inbox[bus.SeedDelivery]{}
		}
		for _, d := range streams[from].Take(d.Stream.N, d.Stream.Base, d) {
			out <- d
		}
		w.acknowledge(from, &bus.Ack{From: id, Next: streams[from].Next()})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.beatSeed(id)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(50 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				w.beatSeed(id)
			case <-end:
				return
			}
		}
	}()
	w.t.Cleanup(func() {
		close(end)
		<-ended
		stop()
		hearing.Lock()
		defer hearing.Unlock()
		over = true
	})
	return id, out
}

func (w *world) acknowledge(to signal.ID, a *bus.Ack) {
	b, err := bus.Encode(a)
	if err == nil {
		err = w.bus.Publish(bus.SubjectAck(to), b)
	}
	if err != nil {
		w.t.Error(err)
	}
}

func (w *world) beatSeed(id signal.ID) {
	b, err := bus.Encode(&bus.SeedBeat{Seed: id, Sites: []string{"demo"}, VerifyKeys: []bus.SeedKey{{
		VerifyKey: signal.VerifyKey{KeyID: id[:8], Alg: 1, Key: make(signal.Bytes, 65)}, Sites: []string{"demo"},
	}}, Fleet: w.fleet})
	if err == nil {
		err = w.bus.Publish(bus.SubjectSeedBeat, b)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// viewer is a client over a real socket.
type viewer struct {
	t  *testing.T
	ws *websocket.Conn
	id signal.ID
	// ticket is the latest.
	ticket string
}

func (n *node) dial(origin string) (*websocket.Conn, *http.Response, error) {
	return n.dialFrom(origin, "")
}

func (n *node) dialFrom(origin, address string) (*websocket.Conn, *http.Response, error) {
	d := websocket.Dialer{Subprotocols: []string{signal.Subprotocol}}
	return d.Dial(n.url, http.Header{"Origin": {origin}, addressHeader: {address}})
}

func (n *node) viewer(ticket string) *viewer { return n.viewerFrom("", ticket) }

func (n *node) viewerFrom(address, ticket string) *viewer {
	n.world.t.Helper()
	v := n.socketFrom(address)
	v.send(&signal.Hello{Version: 1, Client: "test/1", Site: "demo", Ticket: ticket})
	w := expect[*signal.Welcome](v)
	v.id, v.ticket = w.Session, w.Ticket
	return v
}

func (n *node) socket() *viewer { return n.socketFrom("") }

func (n *node) socketFrom(address string) *viewer {
	n.world.t.Helper()
	ws, r, err := n.dialFrom(testOrigin, address)
	if err != nil {
		n.world.t.Fatal(err)
	}
	_ = r.Body.Close()
	v := &viewer{t: n.world.t, ws: ws}
	n.world.t.Cleanup(func() { _ = ws.Close() })
	return v
}

func (v *viewer) send(m signal.Message) {
	v.t.Helper()
	b, err := signal.Encode(m)
	if err == nil {
		err = v.ws.WriteMessage(websocket.TextMessage, b)
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// join enters the swarm and returns what came back.
func (v *viewer) join() *signal.Joined {
	v.t.Helper()
	v.send(&signal.Join{Request: 7, Title: testTitle, Manifest: testManifest, Role: "full", Want: 8})
	return expect[*signal.Joined](v)
}

// expect reads until a message of type M comes.
func expect[M signal.Message](v *viewer) M {
	v.t.Helper()
	for {
		m, err := v.read()
		if err != nil {
			var want M
			v.t.Fatalf("waiting for %T: %v", want, err)
		}
		if m, ok := m.(M); ok {
			return m
		}
	}
}

// next is what comes next.
func (v *viewer) next() signal.Message {
	v.t.Helper()
	m, err := v.read()
	if err != nil {
		v.t.Fatal(err)
	}
	return m
}

func (v *viewer) read() (signal.Message, error) {
	v.t.Helper()
	_ = v.ws.SetReadDeadline(time.Now().Add(testkit.Patience))
	_, b, err := v.ws.ReadMessage()
	if err != nil {
		return nil, err
	}
	m, err := signal.Decode(b)
	if err != nil {
		v.t.Fatalf("tracker sent %s: %v", b, err)
	}
	return m, nil
}

// closed reads until the socket ends and returns the close code.
func (v *viewer) closed() int {
	v.t.Helper()
	for {
		_ = v.ws.SetReadDeadline(time.Now().Add(testkit.Patience))
		if _, _, err := v.ws.ReadMessage(); err != nil {
			if c := (*websocket.CloseError)(nil); errors.As(err, &c) {
				return c.Code
			}
			return -1
		}
	}
}

// receive takes from a channel or fails the test.
func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testkit.Patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// nowhere takes what the tracker sends.
type nowhere struct{}

func (nowhere) Write([]byte) error { return nil }
func (nowhere) Close(int, string)  {}

// enters opens a session without a socket, and joins the film.
func (n *node) enters(from netip.Addr) *session {
	n.world.t.Helper()
	s := n.Accept(nowhere{}, Visitor{Origin: testOrigin, Address: from}).(*session)
	s.receive(n.world.t, &signal.Hello{Version: 1, Client: "test/1", Site: "demo"})
	s.receive(n.world.t, &signal.Join{Title: testTitle, Manifest: testManifest, Role: "full"})
	return s
}

// receive has a session receive a message.
func (s *session) receive(t *testing.T, m signal.Message) {
	t.Helper()
	b, err := signal.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Receive(b) {
		t.Errorf("%T ended the session", m)
	}
}

// seedsFor is able, for tests.
func (r *roster) seedsFor(site string, id signal.ID) []signal.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.able(site, id)
}
