package webtorrent

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/lab/torrentclient"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/testkit/testbus"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/bus"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
	"github.com/leeway-video/leeway/internal/wsconn"
)

const (
	testToken = "letmein"

	closeDraining = 1001
	closePolicy   = 1008
)

func beats(subject string) bool { return subject == bus.SubjectTrackerBeat }

// world is trackers with the room of the protocol on a real NATS server, reached over real sockets.
type world struct {
	t       *testing.T
	bus     *natsbus.Bus
	clock   testkit.Clock
	metrics testkit.Recorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bus: testbus.Open(t)}
	t.Cleanup(func() { w.metrics.Check(t) })
	return w
}

// node is a tracker with the room, and the line by which it speaks to others.
type node struct {
	*tracker.Tracker
	room  *Service
	line  *testbus.Lossy
	world *world
	url   string
}

// calm are beats that a busy machine does not miss.
func calm(c *tracker.Config, _ *Config) { c.BeatEvery = 400 * time.Millisecond }

func (w *world) tracker(change func(*tracker.Config, *Config)) *node {
	w.t.Helper()
	one, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}})
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{world: w, line: &testbus.Lossy{Bus: w.bus}}
	cfg, room := tracker.Config{
		Secret: bytes.Repeat([]byte("s"), 32), Sites: []*site.Site{one}, Now: w.clock.Now, Metrics: &w.metrics,
		// Three of them is how long a goroutine of a busy machine may be kept waiting before others take its tracker for dead.
		BeatEvery: 150 * time.Millisecond, MessagesPerSecond: 10_000, ConnectsPerSecond: 1000,
	}, Config{Token: testToken}
	if change != nil {
		change(&cfg, &room)
	}
	cfg.Torrents = func(t *tracker.Tracker) tracker.Torrents {
		n.room = New(room, t)
		return n.room
	}
	if n.Tracker, err = tracker.New(cfg, n.line); err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewServer(wsconn.Handler(wsconn.Config{MaxMessage: wire.MaxMessage, WriteQueue: 256}, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver {
		return n.room.Accept(c, tracker.Visitor{Address: netip.MustParseAddrPort(r.RemoteAddr).Addr()})
	}))
	w.t.Cleanup(func() {
		_ = n.Close()
		server.Close()
	})
	n.url = "ws" + strings.TrimPrefix(server.URL, "http")
	return n
}

// value is a figure of the tracker's own metrics.
func (w *world) value(name string, labels ...string) float64 {
	w.t.Helper()
	i := slices.IndexFunc(tracker.Metrics(), func(d *metric.Def) bool { return d.Name == name })
	if i < 0 {
		w.t.Fatalf("the tracker has no metric %s", name)
	}
	return w.metrics.Value(tracker.Metrics()[i], labels...)
}

// testClient is one socket of the protocol.
type testClient struct {
	t  *testing.T
	ws *websocket.Conn
}

func (n *node) client() *testClient {
	n.world.t.Helper()
	return n.clientFrom("127.0.0.1")
}

// clientFrom is a client with an address of the loopback network.
func (n *node) clientFrom(address string) *testClient {
	n.world.t.Helper()
	tcp := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	ws, r, err := (&websocket.Dialer{NetDialContext: tcp.DialContext}).Dial(n.url, nil)
	if err != nil {
		n.world.t.Fatal(err)
	}
	_ = r.Body.Close()
	n.world.t.Cleanup(func() { _ = ws.Close() })
	return &testClient{n.world.t, ws}
}

func (c *testClient) text(message string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testClient) send(r wire.Request) {
	c.t.Helper()
	c.text(string(wire.AppendRequest(nil, &r)))
}

// any is the next message of the tracker, of whatever kind.
func (c *testClient) any() (r wire.Reply) {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(testkit.Patience))
	_, b, err := c.ws.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := torrentclient.Decode(b, &r); err != nil {
		c.t.Fatalf("tracker sent %s: %v", b, err)
	}
	return r
}

// next is the next message of the tracker.
func (c *testClient) next(kind wire.Kind) wire.Reply {
	c.t.Helper()
	r := c.any()
	if r.Kind != kind {
		c.t.Fatalf("tracker sent %s %.300q, want kind %s", messages[r.Kind], wire.AppendReply(nil, &r), messages[kind])
	}
	return r
}

func (c *testClient) refused(code string) wire.Reply {
	c.t.Helper()
	r := c.next(wire.Failure)
	if !strings.HasPrefix(string(r.Reason), `"`+code+": ") {
		c.t.Fatalf("refused with %s, want %s", r.Reason, code)
	}
	return r
}

// nothing says that the tracker has sent nothing more: a scrape is answered in its turn.
func (c *testClient) nothing() {
	c.t.Helper()
	c.send(wire.Request{Kind: wire.Scrape})
	c.next(wire.Scraped)
}

// enter announces a peer and returns the ack.
func (c *testClient) enter(hash, peer string, offers ...string) wire.Reply {
	c.t.Helper()
	c.send(announceOf(hash, peer, offers...))
	return c.next(wire.Ack)
}

func (c *testClient) closed() int {
	c.t.Helper()
	for {
		_ = c.ws.SetReadDeadline(time.Now().Add(testkit.Patience))
		if _, _, err := c.ws.ReadMessage(); err != nil {
			if e := (*websocket.CloseError)(nil); errors.As(err, &e) {
				return e.Code
			}
			c.t.Fatal(err)
		}
	}
}

func id20(name string) (id wire.ID) {
	copy(id[:], name+"\xff\x00\"\\")
	return id
}

func sdpOf(name string) wire.SDP { return wire.SDP(`"v=0 ` + name + `\r\n"`) }

func announceOf(hash, peer string, offers ...string) wire.Request {
	r := wire.Request{Kind: wire.Announce, InfoHash: id20(hash), PeerID: id20(peer), Event: wire.Started}
	for _, o := range offers {
		r.Offers = append(r.Offers, wire.Offer{ID: id20(o), SDP: sdpOf(o)})
	}
	return r
}

func answerOf(hash, peer, to, offer string) wire.Request {
	return wire.Request{
		Kind: wire.Answer, InfoHash: id20(hash), PeerID: id20(peer), To: id20(to), OfferID: id20(offer), SDP: sdpOf("answer"),
	}
}

func (n *node) counted(code string) {
	n.world.t.Helper()
	testkit.Eventually(n.world.t, "refusal "+code+" counted", func() bool { return n.world.metrics.Value(defRefused, code) > 0 })
}
