package webtorrent

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// tellEvery is how often a home is told of a peer that says nothing itself, in beats.
const tellEvery = 15

// forward passes on an announce to the home of its swarm, and remembers the peer, so that another home can be told of it.
func (c *client) forward(r *wire.Request, home signal.ID) (code string) {
	if code = c.peers.announced(r, home, c.s.of.Now(), c.s.cfg.MaxSwarms); code == "" {
		c.tell(home, r, false)
	}
	return code
}

// tell sends a message of this client to a home. A quiet one is not answered.
func (c *client) tell(home signal.ID, r *wire.Request, quiet bool) {
	c.peers.knownAt(home)
	c.s.say(home, &bus.Torrent{
		Op: bus.TorrentSay, Tracker: c.s.host.ID(), Socket: c.s.remotePeers.numbered(c), Quiet: quiet, Message: wire.AppendRequest(nil, r), Subnet: c.from(),
	})
}

// leaveHomes tells all trackers that know of this client that it has ended.
func (c *client) leaveHomes() {
	number := c.s.remotePeers.release(c)
	for _, home := range c.peers.knownTo() {
		if !c.s.host.Lives(home) {
			c.s.Lost(home)
		} else {
			c.s.say(home, &bus.Torrent{Op: bus.TorrentEnd, Tracker: c.s.host.ID(), Socket: number})
		}
	}
}

// shift takes the peers of a client of this tracker to where their swarms are at home now, and silent ones out.
func (c *client) shift(now time.Time) {
	moves := c.peers.due(c.s.host.ID(), c.s.home, now, tellEvery*c.s.of.BeatEvery, 3*c.s.cfg.Interval)
	for i := range moves {
		c.move(&moves[i], now)
	}
	if len(moves) > 0 && c.peers.over() { // it ended while its peers moved
		c.leaveHomes()
		c.leaveSwarms()
	}
}

func (c *client) move(m *move, now time.Time) {
	if m.from == m.to {
		c.tell(m.to, &m.request, true)
		return
	}
	c.s.host.Moved("home")
	switch self := c.s.host.ID(); {
	case m.from == self:
		c.moveOut(&m.request, m.to)
		return
	case m.to == self:
		_, _, _ = c.s.swarms.announce(c, &m.request, now, nil) // a refusal is told at its next announce
	default:
		c.tell(m.to, &m.request, true)
	}
	if !c.s.host.Lives(m.from) {
		c.s.Lost(m.from)
		return
	}
	m.request.Event = wire.Stopped
	c.tell(m.from, &m.request, true)
}

// moveOut takes a peer out of the swarms of this tracker and to another's.
func (c *client) moveOut(r *wire.Request, to signal.ID) {
	request, ok := c.s.swarms.take(c, r)
	c.peers.forget(&c.s.swarms)
	if !ok {
		return
	}
	c.peers.movedOut(&request, to, c.s.of.Now())
	c.tell(to, &request, true)
}
