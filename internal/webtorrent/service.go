// Package webtorrent is the room of the WebTorrent protocol beside a tracker (spec/webtorrent.md). It takes sockets in through the
// tracker's admission, keeps the swarms that have their home at this tracker, and passes on what concerns others over the bus. The
// tracker knows it by the port tracker.Torrents and runs without it.
//
// Lock order: the mu of a shard of swarms, then the mu of a client's peers; otherwise no lock is held together with another, and none
// while the tracker or a socket is called, except to ask the tracker's roster.
package webtorrent

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// Config says which clients may speak the WebTorrent protocol. It is off unless InfoHashes or Token is set; each that is set has
// to be satisfied.
type Config struct {
	InfoHashes []wire.ID     // that may be announced
	Token      string        // that the address has to carry
	Interval   time.Duration // between a client's announces
	MaxSwarms  int           // peers of one socket
}

// On says whether the protocol is offered.
func (c *Config) On() bool { return len(c.InfoHashes) > 0 || c.Token != "" }

// Defaults is what zero values of a Config stand for.
func Defaults() Config { return Config{Interval: 2 * time.Minute, MaxSwarms: 64} }

func (c *Config) complete() {
	d := Defaults()
	c.Interval = cmp.Or(c.Interval, d.Interval)
	c.MaxSwarms = cmp.Or(c.MaxSwarms, d.MaxSwarms)
}

// Host is what the room needs of its tracker.
type Host interface {
	ID() signal.ID
	Settings() *tracker.Config
	// Alone says that no other tracker lives; Lives, whether one does.
	Alone() bool
	Lives(tracker signal.ID) bool
	Connected() bool
	// HomeOf is the tracker that what has a key has its home at.
	HomeOf(key signal.ID) signal.ID
	// Send brings a message to a tracker; if it has to be given up, Lost is called.
	Send(to signal.ID, d *bus.Delivery)
	Admit(c tracker.Conn, v tracker.Visitor, words bool) (*tracker.Socket, tracker.Receiver)
	TurnAway(c tracker.Conn, words bool) tracker.Receiver
	// Subnet is the keyed hash of a visitor's subnet, the same at all trackers.
	Subnet(v tracker.Visitor) string
	// Moved counts a peer that is registered with another home.
	Moved(reason string)
}

// Service is the WebTorrent protocol at one tracker.
type Service struct {
	cfg    Config
	of     *tracker.Config
	host   Host
	hashes map[wire.ID]struct{} // that may be announced; empty: any

	sockets     sockets
	swarms      swarms
	remotePeers remotePeers
	counts      counts
	expired     time.Time // when silent peers were last dropped; only Maintain
}

// New is the room of a tracker.
func New(cfg Config, host Host) *Service {
	cfg.complete()
	of := host.Settings()
	s := &Service{cfg: cfg, of: of, host: host, hashes: map[wire.ID]struct{}{}, remotePeers: newRemotePeers()}
	s.swarms.most, s.swarms.mostPeers = of.MaxHomes, of.MaxMembers
	for _, h := range cfg.InfoHashes {
		s.hashes[h] = struct{}{}
	}
	return s
}

// On says whether the protocol is offered.
func (s *Service) On() bool { return s.cfg.On() }

// AllowsToken says whether a handshake carries what it needs.
func (s *Service) AllowsToken(token string) bool {
	if !s.On() {
		return false
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	return s.cfg.Token == "" || subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// Accept takes a socket in, and says what receives its messages.
func (s *Service) Accept(conn tracker.Conn, v tracker.Visitor) tracker.Receiver {
	place, away := s.host.Admit(conn, v, false)
	if place == nil {
		return away
	}
	c := &socket{
		client: client{s: s, conn: place, subnet: known(s.host.Subnet(v))}, limiter: rate.NewLimiter(rate.Limit(s.of.MessagesPerSecond), 2*s.of.MessagesPerSecond),
	}
	if !s.sockets.enter(&c.client) {
		place.Left()
		return s.host.TurnAway(conn, false)
	}
	// Its offers hold all candidates, which takes a client a while to find.
	c.silent = place.Silent(6*s.of.HelloTimeout, "no announce")
	return c
}

// Drain takes no more sockets in, and returns what closes each of those that are there. The protocol has no message that asks a client
// to reconnect; its clients come back over minutes by themselves.
func (s *Service) Drain() (closes []func()) {
	for _, c := range s.sockets.close() {
		closes = append(closes, c.conn.Drain)
	}
	return closes
}

// Maintain does what is due once a beat: it drops silent peers, moves others to the homes of their swarms, and hands over counts.
func (s *Service) Maintain(now time.Time) {
	if !s.On() {
		return
	}
	if every := s.cfg.Interval; now.Sub(s.expired) >= every/4 {
		s.expired = now
		s.swarms.expire(now.Add(-3 * every))
	}
	s.maintainRemotePeers(now)
	s.of.Metrics.Set(defSockets, float64(len(s.sockets.snapshot())))
	s.of.Metrics.Set(defSwarms, float64(s.swarms.swarms.Load()))
	s.of.Metrics.Set(defPeers, float64(s.swarms.peers.Load()))
	s.counts.hand(s.of.Metrics)
}

// allowed says whether a swarm may be announced.
func (s *Service) allowed(hash *wire.ID) bool {
	if len(s.hashes) == 0 {
		return true
	}
	_, ok := s.hashes[*hash]
	return ok
}

// home is the tracker that an info_hash has its home at.
func (s *Service) home(hash *wire.ID) signal.ID {
	if s.host.Alone() {
		return s.host.ID()
	}
	sum := sha256.Sum256(append([]byte("webtorrent "), hash[:]...))
	return s.host.HomeOf(signal.ID(sum[:16]))
}

// say sends a message about a socket to another tracker.
func (s *Service) say(to signal.ID, m *bus.Torrent) {
	s.host.Send(to, &bus.Delivery{Kind: bus.KindTorrent, Torrent: m})
}
