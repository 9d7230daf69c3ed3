package webtorrent

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// remotePeers joins the swarms of several trackers (spec/cluster.md, "WebTorrent"): a tracker passes on what its sockets say of a swarm to
// the swarm's home, which sees a socket of another tracker as one of its own.
type remotePeers struct {
	mu     sync.Mutex
	last   uint64                  // guarded by mu: number of a socket of this tracker
	own    map[uint64]*client      // guarded by mu: sockets of this tracker that have peers elsewhere
	remote map[remoteKey]*client   // guarded by mu: sockets of other trackers, as this one sees them
	stale  map[signal.ID]time.Time // guarded by mu: trackers that may know something else of sockets than is so, and since when
}

// remoteKey names a socket of another tracker.
type remoteKey struct {
	tracker signal.ID
	socket  uint64
}

func newRemotePeers() remotePeers {
	return remotePeers{own: map[uint64]*client{}, remote: map[remoteKey]*client{}, stale: map[signal.ID]time.Time{}}
}

// numbered is the number of a socket of this tracker, by which others speak to it.
func (rp *remotePeers) numbered(c *client) uint64 {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	if c.number == 0 {
		rp.last++
		c.number = rp.last
		rp.own[c.number] = c
	}
	return c.number
}

// release forgets a socket of this tracker, and returns its number.
func (rp *remotePeers) release(c *client) uint64 {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	delete(rp.own, c.number)
	return c.number
}

// local is the socket of this tracker with a number; nil once it is gone.
func (rp *remotePeers) local(number uint64) *client {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	return rp.own[number]
}

// of is the remote peer with a key, which is new if need be.
func (rp *remotePeers) of(key remoteKey, s *Service) *client {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	c := rp.remote[key]
	if c == nil {
		c = &client{s: s, remote: key}
		rp.remote[key] = c
	}
	return c
}

// takeOut takes the remote peers out that an answer of true is given for.
func (rp *remotePeers) takeOut(which func(remoteKey) bool) (out []*client) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	for key, c := range rp.remote {
		if which(key) {
			delete(rp.remote, key)
			out = append(out, c)
		}
	}
	return out
}

// take takes out one remote peer; nil if there is none.
func (rp *remotePeers) take(key remoteKey) *client {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	c := rp.remote[key]
	delete(rp.remote, key)
	return c
}

// differ notes that a tracker may know something else of sockets than is so.
func (rp *remotePeers) differ(tracker signal.ID, now time.Time) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	rp.stale[tracker] = now
}

// heals returns the trackers that are alive again and may know something else, and forgets them. It also forgets trackers that have been away
// since before.
func (rp *remotePeers) heals(lives func(signal.ID) bool, before time.Time) (heard []signal.ID) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	for id, since := range rp.stale {
		switch {
		case lives(id):
			heard = append(heard, id)
			delete(rp.stale, id)
		case since.Before(before):
			delete(rp.stale, id)
		}
	}
	return heard
}

// Hear acts on what another tracker says of the WebTorrent protocol.
func (s *Service) Hear(m *bus.Torrent) {
	key := remoteKey{m.Tracker, m.Socket}
	switch m.Op {
	case bus.TorrentHear:
		if c := s.remotePeers.local(m.Socket); c != nil {
			c.hear(m.Message, m.Subnet)
		}
	case bus.TorrentAnew:
		s.endRemotePeers(func(key remoteKey) bool { return key.tracker == m.Tracker })
		s.tellAnew(m.Tracker)
	case bus.TorrentEnd:
		if c := s.remotePeers.take(key); c != nil {
			c.leaveSwarms()
		}
	case bus.TorrentSay:
		s.remotePeers.of(key, s).asRemotePeer(m)
	}
}

// asRemotePeer acts on a message of a socket of another tracker, which has looked at it: what it may say, and how often.
func (c *client) asRemotePeer(m *bus.Torrent) {
	w := workPool.Get().(*work)
	defer workPool.Put(w)
	r, now := &w.request, c.s.of.Now()
	if wire.Decode(m.Message, r) != nil {
		return
	}
	c.comesFrom(known(m.Subnet))
	if r.Kind == wire.Announce {
		c.makeRoom()
	}
	switch {
	case r.Kind == wire.Answer:
		c.answerHere(r)
	case r.Kind == wire.Scrape:
		c.scrapeHere(w)
	case r.Kind == wire.Announce && m.Quiet:
		if _, _, code := c.s.swarms.announce(c, r, now, nil); code != "" {
			c.refuse(r, code, "")
		}
	case r.Kind == wire.Announce:
		c.announceHere(w, now)
	}
}

// vanished says whether the socket went with its tracker.
func (c *client) vanished() bool { return c.conn == nil && !c.s.host.Lives(c.remote.tracker) }

// Lost notes that another tracker may know something else of sockets than is so: it was not told, or was forgotten, since it was
// taken for dead; or something of what it should have heard was given up.
func (s *Service) Lost(other signal.ID) { s.remotePeers.differ(other, s.of.Now()) }

// agree has such trackers begin anew.
func (s *Service) agree(now time.Time) {
	if !s.host.Connected() {
		return
	}
	// After three intervals peers that say nothing are dropped anyway.
	for _, id := range s.remotePeers.heals(s.host.Lives, now.Add(-3*s.cfg.Interval)) {
		s.say(id, &bus.Torrent{Op: bus.TorrentAnew, Tracker: s.host.ID()})
		s.tellAnew(id)
	}
}

// tellAnew has a home told of all peers that sockets of this tracker have there, when their turn comes.
func (s *Service) tellAnew(home signal.ID) {
	for _, c := range s.sockets.snapshot() {
		c.peers.remind(home)
	}
}

// maintainRemotePeers moves peers whose swarms have another home, and ends the sockets of trackers that live no more.
func (s *Service) maintainRemotePeers(now time.Time) {
	s.agree(now)
	for _, c := range s.sockets.snapshot() {
		c.shift(now)
	}
	for _, c := range s.endRemotePeers(func(key remoteKey) bool { return !s.host.Lives(key.tracker) }) {
		s.Lost(c.remote.tracker)
	}
}

// endRemotePeers ends sockets of other trackers.
func (s *Service) endRemotePeers(which func(remoteKey) bool) []*client {
	ended := s.remotePeers.takeOut(which)
	for _, c := range ended {
		c.leaveSwarms()
	}
	return ended
}
