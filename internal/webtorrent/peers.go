package webtorrent

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// peers are those of one client: in swarms at home here, and at other trackers, with what is needed to tell another home of them.
type peers struct {
	mu    sync.Mutex         // after a shard's
	list  []membership       // guarded by mu
	homes map[signal.ID]bool // guarded by mu: other trackers that know of the client
	ended bool               // guarded by mu
}

// membership is a peer in one swarm, which may have left.
type membership struct {
	hash wire.ID
	peer *peer // nil where away is set
	away *away
}

// away is what a tracker keeps of a peer whose swarm is at home at another. Guarded by peers.mu.
type away struct {
	home signal.ID
	told time.Time    // that of the peer
	said time.Time    // by the peer itself
	last wire.Request // what the peer said of itself last, without offers
}

// move takes a peer from one home to another; from and to are the same where a home is only reminded.
type move struct {
	request  wire.Request
	from, to signal.ID
}

// here lists the peers in swarms of this tracker.
func (p *peers) here() (all []membership) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.list {
		if m.peer != nil {
			all = append(all, m)
		}
	}
	return all
}

// hashes lists the swarms of all peers.
func (p *peers) hashes() (all []wire.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.list {
		all = append(all, m.hash)
	}
	return all
}

func (p *peers) add(m membership) {
	p.mu.Lock()
	p.list = append(p.list, m)
	p.mu.Unlock()
}

func (p *peers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list)
}

// forget drops the peers that have left the swarms of this tracker.
func (p *peers) forget(from *swarms) {
	left := map[*peer]bool{}
	for _, m := range p.here() {
		left[m.peer] = from.left(m)
	}
	p.mu.Lock()
	p.list = slices.DeleteFunc(p.list, func(m membership) bool { return m.peer != nil && left[m.peer] })
	p.mu.Unlock()
}

// end notes that the client has ended.
func (p *peers) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
}

func (p *peers) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// knownAt notes that a tracker knows of the client.
func (p *peers) knownAt(home signal.ID) {
	p.mu.Lock()
	if p.homes == nil {
		p.homes = map[signal.ID]bool{}
	}
	p.homes[home] = true
	p.mu.Unlock()
}

func (p *peers) knownTo() []signal.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.homes))
}

// announced remembers a peer that announces itself to another home, so that another home can be told of it; at most so many of all.
func (p *peers) announced(r *wire.Request, home signal.ID, now time.Time, most int) (code string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, at := p.elsewhere(r), away{home: home, told: now, said: now, last: said(r)}
	switch {
	case r.Event == wire.Stopped:
		p.drop(m)
	case m != nil:
		*m.away = at
	case len(p.list) >= most:
		return "too-many-swarms"
	default:
		p.list = append(p.list, membership{hash: r.InfoHash, away: &at})
	}
	return ""
}

// movedOut remembers a peer that was taken out of a swarm of this tracker.
func (p *peers) movedOut(r *wire.Request, home signal.ID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.elsewhere(r) == nil {
		p.list = append(p.list, membership{hash: r.InfoHash, away: &away{home: home, told: now, said: now, last: *r}})
	}
}

// elsewhere finds the peer that a message speaks for, if it is at another tracker's. Under mu.
func (p *peers) elsewhere(r *wire.Request) *membership {
	for i := range p.list {
		if m := &p.list[i]; m.away != nil && m.hash == r.InfoHash && m.away.last.PeerID == r.PeerID {
			return m
		}
	}
	return nil
}

// drop takes an element out of the list; nil is none. Under mu.
func (p *peers) drop(m *membership) {
	last := len(p.list) - 1
	for i := range p.list {
		if &p.list[i] == m {
			p.list[i], p.list[last] = p.list[last], membership{}
			p.list = p.list[:last]
			return
		}
	}
}

// said is what an announce says of its peer: nothing that concerns the moment.
func said(r *wire.Request) wire.Request {
	return wire.Request{
		Kind: wire.Announce, InfoHash: r.InfoHash, PeerID: r.PeerID, Complete: r.Complete, Partial: r.Partial, Full: r.Full,
	}
}

// remind has a home told of all peers that are there, when their turn comes.
func (p *peers) remind(home signal.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.list {
		if m.away != nil && m.away.home == home {
			m.away.told = time.Time{}
		}
	}
}

// due lists the peers whose swarm has another home by now, those of which a home was told longer ago than tellAfter, and those that
// have said nothing for longer than silence, which leave. self is this tracker.
func (p *peers) due(self signal.ID, home func(*wire.ID) signal.ID, now time.Time, tellAfter, silence time.Duration) (moves []move) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.list) - 1; i >= 0; i-- {
		m := &p.list[i]
		at, to := self, home(&m.hash)
		if m.away != nil {
			at = m.away.home
		}
		switch {
		case m.away != nil && now.Sub(m.away.said) > silence:
			request := m.away.last
			request.Event = wire.Stopped
			moves = append(moves, move{request, at, at})
			p.drop(m)
		case at == to && (m.away == nil || now.Sub(m.away.told) < tellAfter):
		case m.away == nil:
			moves = append(moves, move{wire.Request{InfoHash: m.hash, PeerID: m.peer.id}, at, to})
		case to == self:
			moves = append(moves, move{m.away.last, at, to})
			p.drop(m)
		default:
			m.away.home, m.away.told = to, now
			moves = append(moves, move{m.away.last, at, to})
		}
	}
	return moves
}
