package tracker

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

const (
	// maxHeld bounds the offers that are remembered for one peer, so that it may answer them.
	maxHeld = 32
	// maxProbes bounds how many members are looked at for each offer: most of a large swarm may be full.
	maxProbes = 8
	// torrentShards is how many locks the swarms of the WebTorrent protocol share.
	torrentShards = 64
)

// torrents are the swarms of the WebTorrent protocol, a namespace of their own (spec/webtorrent.md).
type torrents struct {
	shards [torrentShards]torrentShard
	swarms atomic.Int64
	peers  atomic.Int64
}

type torrentShard struct {
	mu     sync.Mutex
	swarms map[webtorrent.ID]*torrent // guarded by mu, and all that hangs below
}

// torrent is one swarm. Guarded by its shard's mu.
type torrent struct {
	peers      map[webtorrent.ID]*torrentPeer
	list       []*torrentPeer // the same, to draw from
	complete   int
	downloaded int
}

// torrentPeer is a peer_id in one swarm. Guarded by its shard's mu.
type torrentPeer struct {
	id             webtorrent.ID
	socket         *torrentSession // whose it is; nil once it has left
	at             int             // in list
	complete, full bool
	seen           time.Time
	held           []heldOffer // that it may answer, at most maxHeld
	oldest         int         // in held, once that is full
}

type heldOffer struct {
	id   webtorrent.ID
	from *torrentPeer
}

// torrentDelivery is an offer, by its place in the announce, on its way to a socket.
type torrentDelivery struct {
	to    *torrentSession
	offer int
}

func (ts *torrents) shard(hash *webtorrent.ID) *torrentShard {
	return &ts.shards[(hash[0]^hash[19])%torrentShards]
}

// announce takes in what a peer says of itself and draws who gets its offers. code is empty or why it is refused.
func (ts *torrents) announce(s *torrentSession, r *webtorrent.Request, now time.Time, out []torrentDelivery) (ack webtorrent.Reply, _ []torrentDelivery, code string) {
	sh := ts.shard(&r.InfoHash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sw := sh.swarms[r.InfoHash]
	var p *torrentPeer
	if sw != nil {
		p = sw.peers[r.PeerID]
	}
	if p != nil && p.socket != s && p.socket.vanished() {
		ts.remove(sh, &r.InfoHash, p)
		p, sw = nil, sh.swarms[r.InfoHash]
	}
	ack = webtorrent.Reply{Kind: webtorrent.Ack, InfoHash: r.InfoHash}
	switch {
	case p != nil && p.socket != s:
		return ack, out, "peer-id-taken"
	case r.Event == webtorrent.Stopped:
		if p != nil {
			ts.remove(sh, &r.InfoHash, p)
		}
	default:
		if p == nil {
			if p, code = ts.enter(sh, s, r); code != "" {
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
func (ts *torrents) enter(sh *torrentShard, s *torrentSession, r *webtorrent.Request) (p *torrentPeer, code string) {
	sw := sh.swarms[r.InfoHash]
	switch {
	case !s.room():
		return nil, "too-many-swarms"
	case sw == nil && ts.swarms.Load() >= int64(s.t.cfg.MaxHomes), sw != nil && len(sw.list) >= s.t.cfg.MaxMembers:
		return nil, "swarm-full"
	case sw == nil:
		sw = &torrent{peers: map[webtorrent.ID]*torrentPeer{}}
		if sh.swarms == nil {
			sh.swarms = map[webtorrent.ID]*torrent{}
		}
		sh.swarms[r.InfoHash] = sw
		ts.swarms.Add(1)
	}
	p = &torrentPeer{id: r.PeerID, socket: s, at: len(sw.list)}
	sw.peers[p.id] = p
	sw.list = append(sw.list, p)
	ts.peers.Add(1)
	s.add(torrentMembership{hash: r.InfoHash, peer: p})
	return p, ""
}

// refresh takes over what an announce says.
func (sw *torrent) refresh(p *torrentPeer, r *webtorrent.Request, now time.Time) {
	if r.Event == webtorrent.Completed && !p.complete {
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
func (sw *torrent) draw(p *torrentPeer, offers []webtorrent.Offer, out []torrentDelivery) []torrentDelivery {
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
			out = append(out, torrentDelivery{q.socket, i})
			left--
			break
		}
	}
	return out
}

func (p *torrentPeer) hold(o heldOffer) {
	if len(p.held) < maxHeld {
		p.held = append(p.held, o)
		return
	}
	p.held[p.oldest] = o
	p.oldest = (p.oldest + 1) % maxHeld
}

// answered takes the offer that an answer is to out of those held. to is the socket of who offered. A peer says nothing for
// another's socket, and nothing to whom it was not introduced.
func (ts *torrents) answered(s *torrentSession, r *webtorrent.Request) (to *torrentSession, code string) {
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
	if p.socket != s {
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
func (ts *torrents) scrape(hash *webtorrent.ID) webtorrent.File {
	f := webtorrent.File{InfoHash: *hash}
	sh := ts.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sw := sh.swarms[*hash]; sw != nil {
		f.Complete, f.Incomplete, f.Downloaded = sw.complete, len(sw.list)-sw.complete, sw.downloaded
	}
	return f
}

// take takes a peer of a socket out and returns what it said of itself.
func (ts *torrents) take(s *torrentSession, r *webtorrent.Request) (request webtorrent.Request, ok bool) {
	sh := ts.shard(&r.InfoHash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sw := sh.swarms[r.InfoHash]
	if sw == nil {
		return request, false
	}
	p := sw.peers[r.PeerID]
	if p == nil || p.socket != s {
		return request, false
	}
	request = webtorrent.Request{
		Kind: webtorrent.Announce, InfoHash: r.InfoHash, PeerID: r.PeerID, Complete: p.complete, Partial: !p.complete, Full: p.full,
	}
	ts.remove(sh, &r.InfoHash, p)
	return request, true
}

// left says whether a peer has left, by stopped or by silence.
func (ts *torrents) left(m torrentMembership) bool {
	sh := ts.shard(&m.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return m.peer.socket == nil
}

// leave takes a peer out that may have left already.
func (ts *torrents) leave(m torrentMembership) {
	sh := ts.shard(&m.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if m.peer.socket != nil {
		ts.remove(sh, &m.hash, m.peer)
	}
}

// remove takes a peer out. Under mu.
func (ts *torrents) remove(sh *torrentShard, hash *webtorrent.ID, p *torrentPeer) {
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

// expire takes out who announced nothing since a time.
func (ts *torrents) expire(before time.Time) {
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

// allowed says whether a swarm may be announced.
func (t *Tracker) allowed(hash *webtorrent.ID) bool {
	if len(t.cfg.WebTorrent.InfoHashes) == 0 {
		return true
	}
	_, ok := t.hashes[*hash]
	return ok
}
