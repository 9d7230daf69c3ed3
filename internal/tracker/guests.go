package tracker

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// guests joins the WebTorrent swarms of several trackers (spec/cluster.md, "WebTorrent"): a tracker passes on what its sockets
// say of a swarm to the swarm's home, which sees a socket of another tracker as one of its own.
type guests struct {
	mu    sync.Mutex
	last  uint64                       // guarded by mu: number of a socket of this tracker
	own   map[uint64]*torrentSession   // guarded by mu: sockets of this tracker that have peers elsewhere
	guest map[guestKey]*torrentSession // guarded by mu: sockets of other trackers, as this one sees them
	stale map[signal.ID]time.Time      // guarded by mu: trackers that may know something else of sockets than is so, and since when
}

// tellEvery is how often a home is told of a peer that says nothing itself, in beats.
const tellEvery = 15

// guestKey names a socket of another tracker.
type guestKey struct {
	tracker signal.ID
	socket  uint64
}

// away is what a tracker keeps of a peer that is at another tracker's. Guarded by torrentSession.mu.
type away struct {
	home signal.ID
	told time.Time          // that of the peer
	said time.Time          // by the peer itself
	last webtorrent.Request // what the peer said of itself last, without offers
}

// vanished says whether the socket went with its tracker.
func (s *torrentSession) vanished() bool {
	return s.guest.socket != 0 && !s.t.roster.lives(s.guest.tracker)
}

// torrentHome is the tracker that an info_hash has its home at.
func (t *Tracker) torrentHome(hash *webtorrent.ID) signal.ID {
	if t.roster.alone.Load() {
		return t.id
	}
	sum := sha256.Sum256(append([]byte("webtorrent "), hash[:]...))
	return t.homeOf(signal.ID(sum[:16]))
}

// forward passes on an announce to the home of its swarm, and remembers the peer, so that another home can be told of it.
func (s *torrentSession) forward(r *webtorrent.Request, home signal.ID) (code string) {
	s.mu.Lock()
	m := s.elsewhere(r)
	switch {
	case r.Event == webtorrent.Stopped:
		s.peers = without(s.peers, m)
	case m != nil:
		*m.away = s.awayAt(home, said(r))
	case len(s.peers) >= s.t.cfg.WebTorrent.MaxSwarms:
		code = "too-many-swarms"
	default:
		a := s.awayAt(home, said(r))
		s.peers = append(s.peers, torrentMembership{hash: r.InfoHash, away: &a})
	}
	s.mu.Unlock()
	if code == "" {
		s.tell(home, r, false)
	}
	return code
}

// awayAt is a peer that has just spoken.
func (s *torrentSession) awayAt(home signal.ID, last webtorrent.Request) away {
	now := s.t.cfg.Now()
	return away{home: home, told: now, said: now, last: last}
}

// elsewhere finds the peer of this socket that a message speaks for, if it is at another tracker's. Under mu.
func (s *torrentSession) elsewhere(r *webtorrent.Request) *torrentMembership {
	for i := range s.peers {
		if m := &s.peers[i]; m.away != nil && m.hash == r.InfoHash && m.away.last.PeerID == r.PeerID {
			return m
		}
	}
	return nil
}

// without is a list without one of its elements.
func without(list []torrentMembership, m *torrentMembership) []torrentMembership {
	for i := range list {
		if &list[i] == m {
			list[i] = list[len(list)-1]
			list[len(list)-1] = torrentMembership{}
			return list[:len(list)-1]
		}
	}
	return list
}

// said is what an announce says of its peer: nothing that concerns the moment.
func said(r *webtorrent.Request) webtorrent.Request {
	return webtorrent.Request{
		Kind: webtorrent.Announce, InfoHash: r.InfoHash, PeerID: r.PeerID, Complete: r.Complete, Partial: r.Partial, Full: r.Full,
	}
}

// tell sends a message of this socket to a home. A quiet one is not answered.
func (s *torrentSession) tell(home signal.ID, r *webtorrent.Request, quiet bool) {
	s.mu.Lock()
	if s.homes == nil {
		s.homes = map[signal.ID]bool{}
	}
	s.homes[home] = true
	s.mu.Unlock()
	s.t.send(home, &bus.Delivery{Kind: bus.KindTorrent, Torrent: &bus.Torrent{
		Op: bus.TorrentSay, Tracker: s.t.id, Socket: s.t.guests.numbered(s), Quiet: quiet, Message: webtorrent.AppendRequest(nil, r),
	}})
}

// numbered is the number of a socket of this tracker, by which others speak to it.
func (gs *guests) numbered(s *torrentSession) uint64 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if s.number == 0 {
		gs.last++
		s.number = gs.last
		gs.own[s.number] = s
	}
	return s.number
}

// leaveHomes says of a socket that ended, to all who know of it, that it has.
func (s *torrentSession) leaveHomes() {
	s.t.guests.mu.Lock()
	number := s.number
	delete(s.t.guests.own, number)
	s.t.guests.mu.Unlock()
	s.mu.Lock()
	homes := slices.Collect(maps.Keys(s.homes))
	s.mu.Unlock()
	for _, home := range homes {
		if !s.t.roster.lives(home) {
			s.t.differ(home)
		} else {
			s.t.send(home, &bus.Delivery{Kind: bus.KindTorrent, Torrent: &bus.Torrent{Op: bus.TorrentEnd, Tracker: s.t.id, Socket: number}})
		}
	}
}

// onTorrent acts on what another tracker says of the WebTorrent protocol.
func (t *Tracker) onTorrent(m *bus.Torrent) {
	key := guestKey{m.Tracker, m.Socket}
	switch m.Op {
	case bus.TorrentHear:
		t.guests.mu.Lock()
		s := t.guests.own[m.Socket]
		t.guests.mu.Unlock()
		if s != nil {
			s.hear(m.Message)
		}
	case bus.TorrentAnew:
		t.endGuests(func(of signal.ID) bool { return of == m.Tracker }, func(signal.ID) {})
		t.tellAnew(m.Tracker)
	case bus.TorrentEnd:
		t.guests.mu.Lock()
		s := t.guests.guest[key]
		delete(t.guests.guest, key)
		t.guests.mu.Unlock()
		if s != nil {
			s.leaveSwarms()
		}
	case bus.TorrentSay:
		t.guests.mu.Lock()
		s := t.guests.guest[key]
		if s == nil {
			s = &torrentSession{t: t, guest: key}
			t.guests.guest[key] = s
		}
		t.guests.mu.Unlock()
		s.asGuest(m)
	}
}

// asGuest acts on a message of a socket of another tracker, which has looked at it: what it may say, and how often.
func (s *torrentSession) asGuest(m *bus.Torrent) {
	w := torrentPool.Get().(*torrentWork)
	defer torrentPool.Put(w)
	r, now := &w.request, s.t.cfg.Now()
	if webtorrent.Decode(m.Message, r) != nil {
		return
	}
	switch {
	case r.Kind == webtorrent.Answer:
		s.answerHere(r)
	case r.Kind == webtorrent.Scrape:
		s.scrapeHere(w)
	case r.Kind == webtorrent.Announce && m.Quiet:
		if _, _, code := s.t.torrents.announce(s, r, now, nil); code != "" {
			s.refuse(r, code, "")
		}
	case r.Kind == webtorrent.Announce:
		s.announceHere(w, now)
	}
}

// hear passes on to a socket of this tracker what the home of one of its swarms says.
func (s *torrentSession) hear(message []byte) {
	if err := s.conn.Write(message); err != nil && isSlow(err) {
		s.t.cfg.Metrics.Add(defRejected, 1, "slow")
	}
}

// shift takes the peers of a socket of this tracker to where their swarms are at home now, and those out that say nothing any more.
func (s *torrentSession) shift(now time.Time) {
	type move struct {
		request  webtorrent.Request
		from, to signal.ID
	}
	var moves []move
	s.mu.Lock()
	for i := len(s.peers) - 1; i >= 0; i-- {
		m := &s.peers[i]
		at, to := s.t.id, s.t.torrentHome(&m.hash)
		if m.away != nil {
			at = m.away.home
		}
		switch {
		case m.away != nil && now.Sub(m.away.said) > 3*s.t.cfg.WebTorrent.Interval:
			request := m.away.last
			request.Event = webtorrent.Stopped
			moves = append(moves, move{request, at, at})
			s.peers = without(s.peers, m)
		case at == to && (m.away == nil || now.Sub(m.away.told) < tellEvery*s.t.cfg.BeatEvery):
		case m.away == nil:
			moves = append(moves, move{webtorrent.Request{InfoHash: m.hash, PeerID: m.peer.id}, at, to})
		case to == s.t.id:
			moves = append(moves, move{m.away.last, at, to})
			s.peers = without(s.peers, m)
		default:
			m.away.home, m.away.told = to, now
			moves = append(moves, move{m.away.last, at, to})
		}
	}
	s.mu.Unlock()
	for _, m := range moves {
		if m.from == m.to {
			s.tell(m.to, &m.request, true)
			continue
		}
		s.t.cfg.Metrics.Add(defMoves, 1, "home")
		switch {
		case m.from == s.t.id:
			s.moveOut(&m.request, m.to)
			continue
		case m.to == s.t.id:
			_, _, _ = s.t.torrents.announce(s, &m.request, now, nil) // where it is refused it is at its next announce, aloud
		default:
			s.tell(m.to, &m.request, true)
		}
		if !s.t.roster.lives(m.from) {
			s.t.differ(m.from)
			continue
		}
		m.request.Event = webtorrent.Stopped
		s.tell(m.from, &m.request, true)
	}
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended && len(moves) > 0 { // while its peers moved
		s.leaveHomes()
		s.leaveSwarms()
	}
}

// moveOut takes a peer out of the swarms of this tracker and to another's.
func (s *torrentSession) moveOut(r *webtorrent.Request, to signal.ID) {
	request, ok := s.t.torrents.take(s, r)
	s.forget()
	if !ok {
		return
	}
	s.mu.Lock()
	if m := s.elsewhere(&request); m == nil {
		a := s.awayAt(to, request)
		s.peers = append(s.peers, torrentMembership{hash: request.InfoHash, away: &a})
	}
	s.mu.Unlock()
	s.tell(to, &request, true)
}

// differ notes that another tracker may know something else of sockets than is so: it was not told, or was forgotten, for it was
// taken for dead; or something of what it should have heard was given up.
func (t *Tracker) differ(other signal.ID) {
	t.guests.mu.Lock()
	defer t.guests.mu.Unlock()
	t.guests.stale[other] = t.cfg.Now()
}

// agree has such trackers begin anew.
func (t *Tracker) agree() {
	if !t.bus.Connected() {
		return
	}
	var heard []signal.ID
	t.guests.mu.Lock()
	for id, since := range t.guests.stale {
		switch {
		case t.roster.lives(id):
			heard = append(heard, id)
			delete(t.guests.stale, id)
		case t.cfg.Now().Sub(since) > 3*t.cfg.WebTorrent.Interval: // by then peers that say nothing are dropped anyway
			delete(t.guests.stale, id)
		}
	}
	t.guests.mu.Unlock()
	for _, id := range heard {
		t.send(id, &bus.Delivery{Kind: bus.KindTorrent, Torrent: &bus.Torrent{Op: bus.TorrentAnew, Tracker: t.id}})
		t.tellAnew(id)
	}
}

// tellAnew has a home told of all peers that sockets of this tracker have there, when their turn comes.
func (t *Tracker) tellAnew(home signal.ID) {
	for _, s := range t.torrentSnapshot() {
		s.mu.Lock()
		for _, m := range s.peers {
			if m.away != nil && m.away.home == home {
				m.away.told = time.Time{}
			}
		}
		s.mu.Unlock()
	}
}

// maintainGuests moves peers whose swarms have another home, and ends the sockets of trackers that live no more.
func (t *Tracker) maintainGuests(now time.Time) {
	t.agree()
	for _, s := range t.torrentSnapshot() {
		s.shift(now)
	}
	t.endGuests(func(of signal.ID) bool { return !t.roster.lives(of) }, t.differ)
}

// endGuests ends sockets of other trackers, and says of each whose it was.
func (t *Tracker) endGuests(which func(of signal.ID) bool, each func(of signal.ID)) {
	t.guests.mu.Lock()
	var ended []*torrentSession
	for key, s := range t.guests.guest {
		if which(key.tracker) {
			delete(t.guests.guest, key)
			ended = append(ended, s)
		}
	}
	t.guests.mu.Unlock()
	for _, s := range ended {
		s.leaveSwarms()
		each(s.guest.tracker)
	}
}
