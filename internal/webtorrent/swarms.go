package webtorrent

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

const (
	// maxHeld bounds the offers that are remembered for one peer, so that it may answer them.
	maxHeld = 32
	// maxProbes bounds how many members are looked at for each offer: most of a large swarm may be full.
	maxProbes = 8
	// shards is how many locks the swarms of the WebTorrent protocol share.
	shards = 64
)

// swarms are the swarms of the WebTorrent protocol, a namespace of their own (spec/webtorrent.md).
type swarms struct {
	most      int // swarms
	mostPeers int // of one
	shards    [shards]shard
	swarms    atomic.Int64
	peers     atomic.Int64
}

type shard struct {
	mu     sync.Mutex
	swarms map[wire.ID]*torrent // guarded by mu, and all that hangs below
}

// torrent is one swarm. Guarded by its shard's mu.
type torrent struct {
	peers      map[wire.ID]*peer
	list       []*peer // the same, to draw from
	complete   int
	downloaded int
}

// peer is a peer_id in one swarm. Guarded by its shard's mu.
type peer struct {
	id             wire.ID
	socket         *client // whose it is; nil once it has left
	at             int     // in list
	complete, full bool
	seen           time.Time
	held           []heldOffer // that it may answer, at most maxHeld
	oldest         int         // in held, once that is full
}

type heldOffer struct {
	id   wire.ID
	from *peer
}

// delivery is an offer, by its place in the announce, on its way to a socket.
type delivery struct {
	to    *client
	offer int
}

func (ts *swarms) shard(hash *wire.ID) *shard {
	return &ts.shards[(hash[0]^hash[19])%shards]
}

// announce takes in what a peer says of itself and draws the peers that get its offers. code is empty or why it is refused.
func (ts *swarms) announce(c *client, r *wire.Request, now time.Time, out []delivery) (ack wire.Reply, _ []delivery, code string) {
	sh := ts.shard(&r.InfoHash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sw := sh.swarms[r.InfoHash]
	var p *peer
	if sw != nil {
		p = sw.peers[r.PeerID]
	}
	if p != nil && p.socket != c && p.socket.vanished() {
		ts.remove(sh, &r.InfoHash, p)
		p, sw = nil, sh.swarms[r.InfoHash]
	}
	ack = wire.Reply{Kind: wire.Ack, InfoHash: r.InfoHash}
	switch {
	case p != nil && p.socket != c:
		return ack, out, "peer-id-taken"
	case r.Event == wire.Stopped:
		if p != nil {
			ts.remove(sh, &r.InfoHash, p)
		}
	default:
		if p == nil {
			if p, code = ts.enter(sh, c, r); code != "" {
				return ack, out, code
			}
			sw = sh.swarms[r.InfoHash]
		}
		sw.refresh(p, r, now)
		out = sw.draw(p, r.Offers, out)
	}
	if sw != nil {
		ack.Complete, ack.Incomplete = sw.complete, len(sw.list)-sw.complete
	}
	return ack, out, ""
}

// enter adds a peer. Under mu.
func (ts *swarms) enter(sh *shard, c *client, r *wire.Request) (p *peer, code string) {
	sw := sh.swarms[r.InfoHash]
	switch {
	case c.peers.count() >= c.s.cfg.MaxSwarms:
		return nil, "too-many-swarms"
	case sw == nil && ts.swarms.Load() >= int64(ts.most), sw != nil && len(sw.list) >= ts.mostPeers:
		return nil, "swarm-full"
	case sw == nil:
		sw = &torrent{peers: map[wire.ID]*peer{}}
		if sh.swarms == nil {
			sh.swarms = map[wire.ID]*torrent{}
		}
		sh.swarms[r.InfoHash] = sw
		ts.swarms.Add(1)
	}
	p = &peer{id: r.PeerID, socket: c, at: len(sw.list)}
	sw.peers[p.id] = p
	sw.list = append(sw.list, p)
	ts.peers.Add(1)
	c.peers.add(membership{hash: r.InfoHash, peer: p})
	return p, ""
}

// refresh takes over what an announce says.
func (sw *torrent) refresh(p *peer, r *wire.Request, now time.Time) {
	if r.Event == wire.Completed && !p.complete {
		sw.downloaded++
	}
	if (r.Complete || r.Partial) && r.Complete != p.complete {
		if p.complete = r.Complete; p.complete {
			sw.complete++
		} else {
			sw.complete--
		}
	}
	p.full, p.seen = r.Full, now
}

// draw picks a peer for each offer, in turn from a random place.
func (sw *torrent) draw(p *peer, offers []wire.Offer, out []delivery) []delivery {
	if len(offers) == 0 {
		return out
	}
	next, left := rand.IntN(len(sw.list)), min(len(sw.list), maxProbes*len(offers))
	for i := range offers {
		for ; left > 0; left-- {
			q := sw.list[next]
			if next++; next == len(sw.list) {
				next = 0
			}
			if q.socket == p.socket || q.full || q.complete && p.complete {
				continue
			}
			q.hold(heldOffer{offers[i].ID, p})
			out = append(out, delivery{q.socket, i})
			left--
			break
		}
	}
	return out
}

func (p *peer) hold(o heldOffer) {
	if len(p.held) < maxHeld {
		p.held = append(p.held, o)
		return
	}
	p.held[p.oldest] = o
	p.oldest = (p.oldest + 1) % maxHeld
}

// answered takes the offer that an answer is to out of those held. to is the socket that the offer came from. A peer cannot answer
// for another's socket, nor answer a peer that it was not introduced to.
func (ts *swarms) answered(c *client, r *wire.Request) (to *client, code string) {
	sh := ts.shard(&r.InfoHash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sw := sh.swarms[r.InfoHash]
	if sw == nil {
		return nil, "not-introduced"
	}
	p := sw.peers[r.PeerID]
	if p == nil {
		return nil, "not-introduced"
	}
	if p.socket != c {
		return nil, "peer-id-taken"
	}
	for i := range p.held {
		o := &p.held[i]
		if o.from == nil || o.id != r.OfferID || o.from.id != r.To {
			continue
		}
		to, o.from = o.from.socket, nil
		if to == nil {
			return nil, "gone"
		}
		return to, ""
	}
	return nil, "not-introduced"
}

// scrape counts swarms.
func (ts *swarms) scrape(hash *wire.ID) wire.File {
	f := wire.File{InfoHash: *hash}
	sh := ts.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sw := sh.swarms[*hash]; sw != nil {
		f.Complete, f.Incomplete, f.Downloaded = sw.complete, len(sw.list)-sw.complete, sw.downloaded
	}
	return f
}

// take takes a peer of a socket out and returns what it said of itself.
func (ts *swarms) take(c *client, r *wire.Request) (request wire.Request, ok bool) {
	sh := ts.shard(&r.InfoHash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sw := sh.swarms[r.InfoHash]
	if sw == nil {
		return request, false
	}
	p := sw.peers[r.PeerID]
	if p == nil || p.socket != c {
		return request, false
	}
	request = wire.Request{
		Kind: wire.Announce, InfoHash: r.InfoHash, PeerID: r.PeerID, Complete: p.complete, Partial: !p.complete, Full: p.full,
	}
	ts.remove(sh, &r.InfoHash, p)
	return request, true
}

// left says whether a peer has left, by stopped or by silence.
func (ts *swarms) left(m membership) bool {
	sh := ts.shard(&m.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return m.peer.socket == nil
}

// leave takes a peer out that may have left already.
func (ts *swarms) leave(m membership) {
	sh := ts.shard(&m.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if m.peer.socket != nil {
		ts.remove(sh, &m.hash, m.peer)
	}
}

// remove takes a peer out. Under mu.
func (ts *swarms) remove(sh *shard, hash *wire.ID, p *peer) {
	sw := sh.swarms[*hash]
	delete(sw.peers, p.id)
	last := sw.list[len(sw.list)-1]
	sw.list[p.at], last.at = last, p.at
	sw.list[len(sw.list)-1] = nil
	sw.list = sw.list[:len(sw.list)-1]
	if p.complete {
		sw.complete--
	}
	p.socket, p.held = nil, nil
	ts.peers.Add(-1)
	if len(sw.list) == 0 {
		delete(sh.swarms, *hash)
		ts.swarms.Add(-1)
	}
}

// expire takes out the peers that announced nothing since a time.
func (ts *swarms) expire(before time.Time) {
	for i := range ts.shards {
		sh := &ts.shards[i]
		sh.mu.Lock()
		for hash, sw := range sh.swarms {
			for at := len(sw.list) - 1; at >= 0; at-- {
				if sw.list[at].seen.Before(before) {
					ts.remove(sh, &hash, sw.list[at])
				}
			}
		}
		sh.mu.Unlock()
	}
}
