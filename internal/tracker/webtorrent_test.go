package tracker

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/wire/webtorrent"
	"github.com/leeway-video/leeway/internal/wsconn"
)

const testToken = "letmein"

// torrentNode is a tracker that offers the WebTorrent protocol.
type torrentNode struct {
	*Tracker
	world *world
	url   string
}

func (w *world) torrents(change func(*Config)) *torrentNode {
	w.t.Helper()
	n := w.tracker(func(c *Config) {
		c.WebTorrent.Token = testToken
		if change != nil {
			change(c)
		}
	})
	server := httptest.NewServer(wsconn.Handler(wsconn.Config{MaxMessage: webtorrent.MaxMessage, WriteQueue: 256}, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver {
		return n.AcceptWebTorrent(c, Visitor{Address: netip.MustParseAddrPort(r.RemoteAddr).Addr()})
	}))
	w.t.Cleanup(func() {
		_ = n.Close()
		server.Close()
	})
	return &torrentNode{n.Tracker, w, "ws" + strings.TrimPrefix(server.URL, "http")}
}

// client is one socket of the protocol.
type torrentClient struct {
	t  *testing.T
	ws *websocket.Conn
}

func (n *torrentNode) client() *torrentClient {
	n.world.t.Helper()
	ws, r, err := websocket.DefaultDialer.Dial(n.url, nil)
	if err != nil {
		n.world.t.Fatal(err)
	}
	_ = r.Body.Close()
	n.world.t.Cleanup(func() { _ = ws.Close() })
	return &torrentClient{n.world.t, ws}
}

func (c *torrentClient) text(message string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *torrentClient) send(r webtorrent.Request) {
	c.t.Helper()
	c.text(string(webtorrent.AppendRequest(nil, &r)))
}

// next is the next message of the tracker.
func (c *torrentClient) next(kind webtorrent.Kind) webtorrent.Reply {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(patience))
	_, b, err := c.ws.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	var r webtorrent.Reply
	if err := webtorrent.DecodeReply(b, &r); err != nil {
		c.t.Fatalf("tracker sent %s: %v", b, err)
	}
	if r.Kind != kind {
		c.t.Fatalf("tracker sent %s, want kind %s", b, torrentMessages[kind])
	}
	return r
}

func (c *torrentClient) refused(code string) webtorrent.Reply {
	c.t.Helper()
	r := c.next(webtorrent.Failure)
	if !strings.HasPrefix(string(r.Reason), `"`+code+": ") {
		c.t.Fatalf("refused with %s, want %s", r.Reason, code)
	}
	return r
}

// nothing says that the tracker has sent nothing more: a scrape is answered in its turn.
func (c *torrentClient) nothing() {
	c.t.Helper()
	c.send(webtorrent.Request{Kind: webtorrent.Scrape})
	c.next(webtorrent.Scraped)
}

// enter announces a peer and returns the ack.
func (c *torrentClient) enter(hash, peer string, offers ...string) webtorrent.Reply {
	c.t.Helper()
	c.send(announceOf(hash, peer, offers...))
	return c.next(webtorrent.Ack)
}

func (c *torrentClient) closed() int {
	c.t.Helper()
	for {
		_ = c.ws.SetReadDeadline(time.Now().Add(patience))
		if _, _, err := c.ws.ReadMessage(); err != nil {
			var e *websocket.CloseError
			if asClose(err, &e) {
				return e.Code
			}
			c.t.Fatal(err)
		}
	}
}

func id20(name string) (id webtorrent.ID) {
	copy(id[:], name+"\xff\x00\"\\")
	return id
}

func sdpOf(name string) webtorrent.SDP { return webtorrent.SDP(`"v=0 ` + name + `\r\n"`) }

func announceOf(hash, peer string, offers ...string) webtorrent.Request {
	r := webtorrent.Request{Kind: webtorrent.Announce, InfoHash: id20(hash), PeerID: id20(peer), Event: webtorrent.Started}
	for _, o := range offers {
		r.Offers = append(r.Offers, webtorrent.Offer{ID: id20(o), SDP: sdpOf(o)})
	}
	return r
}

func answerOf(hash, peer, to, offer string) webtorrent.Request {
	return webtorrent.Request{
		Kind: webtorrent.Answer, InfoHash: id20(hash), PeerID: id20(peer), To: id20(to), OfferID: id20(offer), SDP: sdpOf("answer"),
	}
}

func (n *torrentNode) counted(code string) {
	n.world.t.Helper()
	eventually(n.world.t, "refusal "+code+" counted", func() bool { return n.world.metrics.Value(defTorrentRefused, code) > 0 })
}

func TestTorrentPeersFindEachOther(t *testing.T) {
	n := newWorld(t).torrents(nil)
	a, b := n.client(), n.client()
	if ack := a.enter("film", "a", "o1", "o2"); ack.Complete != 0 || ack.Incomplete != 1 || ack.Interval != 120 || ack.InfoHash != id20("film") {
		t.Errorf("ack %+v", ack)
	}
	if ack := b.enter("film", "b", "o3"); ack.Incomplete != 2 {
		t.Errorf("ack %+v", ack)
	}
	offer := a.next(webtorrent.Offered)
	if offer.InfoHash != id20("film") || offer.PeerID != id20("b") || offer.OfferID != id20("o3") || string(offer.SDP) != string(sdpOf("o3")) {
		t.Errorf("offer %+v", offer)
	}
	a.send(answerOf("film", "a", "b", "o3"))
	answer := b.next(webtorrent.Answered)
	if answer.InfoHash != id20("film") || answer.PeerID != id20("a") || answer.OfferID != id20("o3") || string(answer.SDP) != string(sdpOf("answer")) {
		t.Errorf("answer %+v", answer)
	}
	a.nothing() // no ack to an answer
	a.send(answerOf("film", "a", "b", "o3"))
	a.refused("not-introduced") // once
	n.counted("not-introduced")
}

func TestOnePeerSpeaksForItselfAlone(t *testing.T) {
	n := newWorld(t).torrents(nil)
	a, b, thief := n.client(), n.client(), n.client()
	a.enter("film", "a")
	b.enter("film", "b", "o1")
	a.next(webtorrent.Offered)
	stop := announceOf("film", "a")
	stop.Event = webtorrent.Stopped
	for _, claim := range []webtorrent.Request{announceOf("film", "a", "o2"), stop, answerOf("film", "a", "b", "o1")} {
		thief.send(claim)
		r := thief.refused("peer-id-taken")
		if again := claim.Kind == webtorrent.Announce && claim.Event != webtorrent.Stopped; r.InfoHash != id20("film") || again != (r.Interval == claimAgain) {
			t.Errorf("failure about %x, again after %d s", r.InfoHash, r.Interval)
		}
	}
	n.counted("peer-id-taken")
	thief.send(answerOf("film", "nobody", "b", "o1"))
	thief.refused("not-introduced")
	thief.enter("film", "thief")
	thief.send(answerOf("film", "thief", "b", "o1")) // an offer that another one got
	thief.refused("not-introduced")
	a.send(answerOf("film", "a", "thief", "o1")) // to another than who offered
	a.refused("not-introduced")
	a.send(answerOf("film", "a", "b", "o1"))
	if r := b.next(webtorrent.Answered); r.PeerID != id20("a") {
		t.Errorf("answer %+v", r)
	}
	// The same name in another swarm is another peer.
	thief.enter("news", "a")
	a.nothing()
}

func TestPeersEndWithTheirSocket(t *testing.T) {
	n := newWorld(t).torrents(nil)
	a, b := n.client(), n.client()
	for i := range 5 {
		a.enter(fmt.Sprint("film", i), fmt.Sprint("a", i))
	}
	a.enter("film0", "second") // two peers of one socket in one swarm are not offered to each other
	a.enter("film0", "a0", "o1")
	a.nothing()
	b.enter("film0", "b", "o2", "o3", "o4")
	a.next(webtorrent.Offered)
	a.next(webtorrent.Offered)
	a.send(announceOf("film0", "a0", "o5"))
	a.next(webtorrent.Ack)
	b.next(webtorrent.Offered)
	_ = a.ws.Close()
	eventually(t, "its peers gone", func() bool { return n.Tracker.torrents.peers.Load() == 1 && n.Tracker.torrents.swarms.Load() == 1 })
	b.send(answerOf("film0", "b", "a0", "o5")) // dropped, and nobody to blame
	b.nothing()
	n.counted("gone")
	c := n.client() // the name is free again
	if ack := c.enter("film0", "a0"); ack.Incomplete != 2 {
		t.Errorf("ack %+v", ack)
	}
}

func TestOffersPassOverTheFullAndTheComplete(t *testing.T) {
	n := newWorld(t).torrents(nil)
	full, complete, other := n.client(), n.client(), n.client()
	full.enter("film", "full")
	r := announceOf("film", "full")
	r.Event, r.Full = webtorrent.Periodic, true
	full.send(r)
	full.next(webtorrent.Ack)
	r = announceOf("film", "complete", "o1")
	r.Event = webtorrent.Completed
	complete.send(r)
	if ack := complete.next(webtorrent.Ack); ack.Complete != 1 || ack.Incomplete != 1 {
		t.Errorf("ack %+v", ack)
	}
	r = announceOf("film", "other", "o2", "o3")
	r.Complete = true
	other.send(r)
	if ack := other.next(webtorrent.Ack); ack.Complete != 2 {
		t.Errorf("ack %+v", ack)
	}
	full.nothing()
	complete.nothing()
	r.Complete = false // not said again
	other.send(r)
	if ack := other.next(webtorrent.Ack); ack.Complete != 2 {
		t.Errorf("ack %+v", ack)
	}
	complete.nothing()
	r.Partial = true // it lost something
	other.send(r)
	if ack := other.next(webtorrent.Ack); ack.Complete != 1 || ack.Incomplete != 2 {
		t.Errorf("ack %+v", ack)
	}
	complete.next(webtorrent.Offered)
	full.nothing()
	other.send(webtorrent.Request{Kind: webtorrent.Scrape, Hashes: []webtorrent.ID{id20("film"), id20("news"), id20("film")}})
	s := other.next(webtorrent.Scraped)
	if len(s.Files) != 2 || s.Files[0] != (webtorrent.File{InfoHash: id20("film"), Complete: 1, Incomplete: 2, Downloaded: 1}) ||
		s.Files[1] != (webtorrent.File{InfoHash: id20("news")}) {
		t.Errorf("scrape %+v", s.Files)
	}
	r.Event = webtorrent.Stopped
	other.send(r)
	if ack := other.next(webtorrent.Ack); ack.Complete != 1 || ack.Incomplete != 1 {
		t.Errorf("ack of stopped %+v", ack)
	}
}

func TestWhoStoppedIsGone(t *testing.T) {
	n := newWorld(t).torrents(nil)
	a, b, c := n.client(), n.client(), n.client()
	a.enter("film", "a")
	b.enter("film", "b", "o1")
	a.next(webtorrent.Offered)
	stop := announceOf("film", "b")
	stop.Event = webtorrent.Stopped
	b.send(stop)
	if ack := b.next(webtorrent.Ack); ack.Incomplete != 1 {
		t.Errorf("ack of stopped %+v", ack)
	}
	a.send(answerOf("film", "a", "b", "o1")) // its offer went out before
	a.nothing()
	c.enter("film", "c", "o2", "o3")
	a.next(webtorrent.Offered)
	b.nothing()
	b.send(answerOf("film", "b", "c", "o3"))
	b.refused("not-introduced")
	n.counted("gone")
	// Its socket lives on, and may announce it anew.
	if ack := b.enter("film", "b", "o4"); ack.Incomplete != 3 {
		t.Errorf("ack %+v", ack)
	}
}

func TestCompletedCountsOnce(t *testing.T) {
	n := newWorld(t).torrents(nil)
	a := n.client()
	r := announceOf("film", "a")
	for _, event := range []webtorrent.Event{webtorrent.Started, webtorrent.Completed, webtorrent.Completed, webtorrent.Periodic} {
		r.Event = event
		a.send(r)
		a.next(webtorrent.Ack)
	}
	a.send(webtorrent.Request{Kind: webtorrent.Scrape, Own: true})
	if s := a.next(webtorrent.Scraped); len(s.Files) != 1 || s.Files[0] != (webtorrent.File{InfoHash: id20("film"), Complete: 1, Downloaded: 1}) {
		t.Errorf("scrape %+v", s.Files)
	}
}

func TestTheLatestOffersAreHeld(t *testing.T) {
	n := newWorld(t).torrents(nil)
	a, b := n.client(), n.client()
	a.enter("film", "a")
	for i := range maxHeld + 1 {
		b.enter("film", "b", fmt.Sprint("o", i))
		a.next(webtorrent.Offered)
	}
	a.send(answerOf("film", "a", "b", "o0"))
	a.refused("not-introduced")
	for i := 1; i <= maxHeld; i++ {
		a.send(answerOf("film", "a", "b", fmt.Sprint("o", i)))
		b.next(webtorrent.Answered)
	}
}

func TestTorrentsAreOffUnlessAskedFor(t *testing.T) {
	w := newWorld(t)
	off := w.tracker(nil)
	if off.WebTorrent() || off.AllowsToken("") {
		t.Error("the protocol is offered by a tracker that was not told to")
	}
	n := w.torrents(func(c *Config) { c.WebTorrent.InfoHashes = []webtorrent.ID{id20("film")} })
	if !n.WebTorrent() || !n.AllowsToken(testToken) || n.AllowsToken("") || n.AllowsToken(testToken+"x") {
		t.Error("the token is not what decides")
	}
	listed := w.tracker(func(c *Config) { c.WebTorrent.InfoHashes = []webtorrent.ID{id20("film")} })
	if !listed.AllowsToken("") {
		t.Error("a token is asked for that was never set")
	}
	c := n.client()
	c.send(announceOf("news", "a"))
	if r := c.refused("not-allowed"); r.InfoHash != id20("news") {
		t.Errorf("failure %+v", r)
	}
	c.enter("film", "a")
	c.send(webtorrent.Request{Kind: webtorrent.Scrape, Hashes: []webtorrent.ID{id20("news"), id20("film")}})
	if s := c.next(webtorrent.Scraped); len(s.Files) != 1 {
		t.Errorf("scrape %+v", s.Files)
	}
}

// TestNamespaces has the one protocol's messages on the other's socket.
func TestNamespaces(t *testing.T) {
	n := newWorld(t).torrents(nil)
	c := n.client()
	c.enter("film", "a", "o1")
	c.text(`{"type":"hello","version":1,"site":"demo"}`)
	c.refused("bad-message")
	n.home.mu.Lock()
	homes := len(n.home.swarms)
	n.home.mu.Unlock()
	if len(n.snapshot()) != 0 || homes != 0 {
		t.Error("a WebTorrent client is a session of the native protocol")
	}
}
