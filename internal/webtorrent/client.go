package webtorrent

import (
	"cmp"
	"strconv"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/bus"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// claimAgain is when, in seconds, a peer_id that is another socket's may be claimed again. Mostly that socket is the claimant's own,
// of a page that began anew: clients hold one for a second more when they have sent an answer on it, since an answer gets none.
const claimAgain = 3

// client is a socket as the swarms see it: one of this tracker, or a remote peer, which has its socket at another tracker.
type client struct {
	s      *Service
	conn   *tracker.Socket // nil for a remote peer
	remote remoteKey       // of a remote peer
	number uint64          // guarded by remotePeers.mu: by which other trackers know the socket; 0: they do not
	peers  peers

	mu     sync.Mutex
	subnet string         // guarded by mu: keyed hash
	heard  tracker.Inflow // guarded by mu: offers of others; of a socket of this tracker
}

// work is what one message needs.
type work struct {
	request    wire.Request
	deliveries []delivery
	files      []wire.File
}

var (
	workPool  = sync.Pool{New: func() any { return &work{} }}
	replyPool = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}
)

// end takes the client out of everything.
func (c *client) end() {
	c.peers.end()
	c.leaveHomes()
	c.leaveSwarms()
	c.conn.Done()
}

func (c *client) leaveSwarms() {
	for _, m := range c.peers.here() {
		c.s.swarms.leave(m)
	}
}

// makeRoom forgets the peers that have left, where there are as many as one client may have.
func (c *client) makeRoom() {
	if c.peers.count() >= c.s.cfg.MaxSwarms {
		c.peers.forget(&c.s.swarms)
	}
}

// announceHere is an announce in a swarm that is at home here.
func (c *client) announceHere(w *work, now time.Time) {
	r := &w.request
	ack, deliveries, code := c.s.swarms.announce(c, r, now, w.deliveries[:0])
	w.deliveries = deliveries
	if code != "" {
		c.refuse(r, code, "")
		return
	}
	ack.Interval = int(c.s.cfg.Interval.Seconds())
	c.write(&ack)
	for i, d := range deliveries {
		o := &r.Offers[d.offer]
		d.to.offer(&wire.Reply{Kind: wire.Offered, InfoHash: r.InfoHash, PeerID: r.PeerID, OfferID: o.ID, SDP: o.SDP}, c.from())
		deliveries[i].to = nil // the pool holds no socket
	}
}

// answerHere is an answer in a swarm that is at home here.
func (c *client) answerHere(r *wire.Request) {
	to, code := c.s.swarms.answered(c, r)
	if code != "" {
		c.refuse(r, code, "")
		return
	}
	to.write(&wire.Reply{Kind: wire.Answered, InfoHash: r.InfoHash, PeerID: r.PeerID, OfferID: r.OfferID, SDP: r.SDP})
}

// scrapeHere is a scrape of swarms that are at home here.
func (c *client) scrapeHere(w *work) {
	w.files = w.files[:0]
	for i := range w.request.Hashes {
		w.files = append(w.files, c.s.swarms.scrape(&w.request.Hashes[i]))
	}
	c.write(&wire.Reply{Kind: wire.Scraped, Files: w.files})
}

// refuse counts a message that is not acted on, and says so: an answer that finds no peer is not worth words.
func (c *client) refuse(r *wire.Request, code, sentence string) {
	for i, known := range refusals {
		if known.code != code {
			continue
		}
		c.s.counts.refused[i].Add(1)
		if sentence == "" {
			sentence = known.sentence
		}
	}
	if sentence == "" {
		return
	}
	failure := wire.Reply{Kind: wire.Failure, Reason: strconv.AppendQuote(nil, code+": "+sentence)}
	if r.HasHash {
		failure.InfoHash = r.InfoHash
	}
	if code == "peer-id-taken" && r.Kind == wire.Announce && r.Event != wire.Stopped {
		failure.Interval = claimAgain
	}
	c.write(&failure)
}

// from is the subnet of the client.
func (c *client) from() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subnet
}

// known is the name of a subnet. Those that are not known share the allowances of one.
func known(subnet string) string { return cmp.Or(subnet, "unknown") }

// comesFrom notes the subnet of a remote peer.
func (c *client) comesFrom(subnet string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subnet = subnet
}

// write queues a message; any goroutine may. A reader that is too slow loses its socket.
func (c *client) write(r *wire.Reply) { c.offer(r, "") }

// offer queues a message that comes from a peer's subnet, of which a client hears so much a second. An empty subnet is that of what the
// client has asked for.
func (c *client) offer(r *wire.Reply, subnet string) {
	c.s.counts.messages[r.Kind].Add(1)
	if c.conn == nil {
		c.s.say(c.remote.tracker, &bus.Torrent{
			Op: bus.TorrentHear, Tracker: c.s.host.ID(), Socket: c.remote.socket, Message: wire.AppendReply(nil, r), Subnet: subnet,
		})
		return
	}
	b := replyPool.Get().(*[]byte)
	*b = wire.AppendReply((*b)[:0], r)
	c.hear(*b, subnet)
	replyPool.Put(b)
}

// hear writes a message to the socket of a client of this tracker. An offer beyond the allowance of its subnet, or of the client, is
// dropped (spec/tracker-protocol.md, "Limits of signals").
func (c *client) hear(message []byte, subnet string) {
	if subnet != "" && !c.hears(len(message), subnet) {
		c.refuse(&wire.Request{}, "busy", "")
		return
	}
	c.conn.Send(message)
}

func (c *client) hears(size int, subnet string) bool {
	now := c.s.of.Steady()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard.Take(subnet, size, c.s.of.MessagesPerSecond, now) == ""
}
