package webtorrent

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// guests joins the swarms of several trackers (spec/cluster.md, "WebTorrent"): a tracker passes on what its sockets say of a swarm to
// the swarm's home, which sees a socket of another tracker as one of its own.
type guests struct {
	mu    sync.Mutex
	last  uint64                  // guarded by mu: number of a socket of this tracker
	own   map[uint64]*client      // guarded by mu: sockets of this tracker that have peers elsewhere
	guest map[guestKey]*client    // guarded by mu: sockets of other trackers, as this one sees them
	stale map[signal.ID]time.Time // guarded by mu: trackers that may know something else of sockets than is so, and since when
}

// guestKey names a socket of another tracker.
type guestKey struct {
	tracker signal.ID
	socket  uint64
}

func newGuests() guests {
	return guests{own: map[uint64]*client{}, guest: map[guestKey]*client{}, stale: map[signal.ID]time.Time{}}
}

// numbered is the number of a socket of this tracker, by which others speak to it.
func (gs *guests) numbered(c *client) uint64 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if c.number == 0 {
		gs.last++
		c.number = gs.last
		gs.own[c.number] = c
	}
	return c.number
}

// release forgets a socket of this tracker, and returns its number.
func (gs *guests) release(c *client) uint64 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	delete(gs.own, c.number)
	return c.number
}

// local is the socket of this tracker with a number; nil once it is gone.
func (gs *guests) local(number uint64) *client {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.own[number]
}

// of is the guest with a key, which is new if need be.
func (gs *guests) of(key guestKey, s *Service) *client {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	c := gs.guest[key]
	if c == nil {
		c = &client{s: s, guest: key}
		gs.guest[key] = c
	}
	return c
}

// takeOut takes the guests out that an answer of true is given for.
func (gs *guests) takeOut(which func(guestKey) bool) (out []*client) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for key, c := range gs.guest {
		if which(key) {
			delete(gs.guest, key)
			out = append(out, c)
		}
	}
	return out
}

// take takes out one guest; nil if there is none.
func (gs *guests) take(key guestKey) *client {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	c := gs.guest[key]
	delete(gs.guest, key)
	return c
}

// differ notes that a tracker may know something else of sockets than is so.
func (gs *guests) differ(tracker signal.ID, now time.Time) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.stale[tracker] = now
}

// heals takes out the trackers that may know something else and that live again, and forgets those that have been away since before.
func (gs *guests) heals(lives func(signal.ID) bool, before time.Time) (heard []signal.ID) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for id, since := range gs.stale {
		switch {
		case lives(id):
			heard = append(heard, id)
			delete(gs.stale, id)
		case since.Before(before):
			delete(gs.stale, id)
		}
	}
	return heard
}

// Hear acts on what another tracker says of the WebTorrent protocol.
func (s *Service) Hear(m *bus.Torrent) {
	key := guestKey{m.Tracker, m.Socket}
	switch m.Op {
	case bus.TorrentHear:
		if c := s.guests.local(m.Socket); c != nil {
			c.conn.Send(m.Message)
		}
	case bus.TorrentAnew:
		s.endGuests(func(key guestKey) bool { return key.tracker == m.Tracker })
		s.tellAnew(m.Tracker)
	case bus.TorrentEnd:
		if c := s.guests.take(key); c != nil {
			c.leaveSwarms()
		}
	case bus.TorrentSay:
		s.guests.of(key, s).asGuest(m)
	}
}

// asGuest acts on a message of a socket of another tracker, which has looked at it: what it may say, and how often.
func (c *client) asGuest(m *bus.Torrent) {
	w := workPool.Get().(*work)
	defer workPool.Put(w)
	r, now := &w.request, c.s.of.Now()
	if wire.Decode(m.Message, r) != nil {
		return
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
func (c *client) vanished() bool { return c.conn == nil && !c.s.host.Lives(c.guest.tracker) }

// Lost notes that another tracker may know something else of sockets than is so: it was not told, or was forgotten, since it was
// taken for dead; or something of what it should have heard was given up.
func (s *Service) Lost(other signal.ID) { s.guests.differ(other, s.of.Now()) }

// agree has such trackers begin anew.
func (s *Service) agree(now time.Time) {
	if !s.host.Connected() {
		return
	}
	// After three intervals peers that say nothing are dropped anyway.
	for _, id := range s.guests.heals(s.host.Lives, now.Add(-3*s.cfg.Interval)) {
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

// maintainGuests moves peers whose swarms have another home, and ends the sockets of trackers that live no more.
func (s *Service) maintainGuests(now time.Time) {
	s.agree(now)
	for _, c := range s.sockets.snapshot() {
		c.shift(now)
	}
	for _, c := range s.endGuests(func(key guestKey) bool { return !s.host.Lives(key.tracker) }) {
		s.Lost(c.guest.tracker)
	}
}

// endGuests ends sockets of other trackers.
func (s *Service) endGuests(which func(guestKey) bool) []*client {
	ended := s.guests.takeOut(which)
	for _, c := range ended {
		c.leaveSwarms()
	}
	return ended
}
