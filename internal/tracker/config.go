// Package tracker is the service that knows which viewer watches what: it keeps the sessions of its own sockets, is home to its share
// of the swarms, introduces peers to each other and carries their signaling (spec/tracker-protocol.md).
//
// A session's messages are handled one after the other, by the goroutine that reads its socket. What a swarm needs goes
// over the bus to the swarm's home, also when that is this tracker: one replica runs the path of many.
//
// Each part of the tracker and of a session owns its state under a lock of its own. Lock order: ruling.saying, then ruling.mu;
// memberships.mu, then ruling.mu, roster.mu or audience.mu; home.mu, then roster.mu; trust.telling, then those of sessions, packagers, roster and
// revocations. Otherwise no lock is held together with another, and none while the bus or a socket is called, except ruling.saying while the
// policy is sent and trust.telling while keys are.
package tracker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Bus carries messages between replicas.
type Bus interface {
	Publish(subject string, data []byte) error
	Subscribe(subject string, f func(subject string, data []byte, reply func([]byte) error)) (unsubscribe func(), err error)
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	Connected() bool
}

// Conn is one accepted socket. Write queues a copy, and fails when the reader is too slow.
type Conn interface {
	Write(message []byte) error
	Close(code int, reason string)
}

// Receiver is told what comes on a socket, one call after the other.
type Receiver interface {
	// Receive acts on a message, whose bytes are good during the call only; false says that the session is over.
	Receive(message []byte) bool
	// End is the last call, and says why.
	End(err error)
}

// Visitor is what the handshake says of the client.
type Visitor struct {
	Origin  string     // header; empty outside browsers
	Address netip.Addr // of the viewer, proxies taken off
	Region  string     // label for ranking; empty is unknown
}

// Torrents is the room of the WebTorrent protocol, which takes sockets in beside the tracker's own.
type Torrents interface {
	// Hear acts on what a tracker, this one perhaps, says of its sockets.
	Hear(*bus.Torrent)
	// Lost says that a message to a tracker had to be given up.
	Lost(tracker signal.ID)
	// Maintain is called once a beat.
	Maintain(now time.Time)
	// Drain takes no more sockets in, and returns what closes each of those that are there.
	Drain() (closes []func())
}

// Judge compares the viewers of each site with its control group and switches peer delivery off where viewers with peers are worse off
// (spec/experiment.md). A tracker without one draws control groups all the same.
type Judge interface {
	// Observer is of one session.
	Observer() Observer
	// Hear acts on what the judge of another tracker has seen.
	Hear(*bus.Experiment)
	// Maintain is called once a beat.
	Maintain(now time.Time)
}

// Observer sees how one viewer fares.
type Observer interface {
	// Begin is called for a new session before the welcome says which group was drawn: a viewer that knows its group could choose to be
	// observed in one of them alone.
	Begin(site string, from netip.Addr, policy *signal.Policy, now time.Time)
	// Report takes over what the viewer reports, in seconds and clamped.
	Report(played, stalled, startup float64)
	// Look is called once a beat, and when the session has ended.
	Look(site string, now time.Time, ended bool)
}

// unjudged is the Judge of a tracker without one, and the Observer of its sessions.
type unjudged struct{}

func (unjudged) Observer() Observer                                  { return unjudged{} }
func (unjudged) Hear(*bus.Experiment)                                {}
func (unjudged) Maintain(time.Time)                                  {}
func (unjudged) Begin(string, netip.Addr, *signal.Policy, time.Time) {}
func (unjudged) Report(float64, float64, float64)                    {}
func (unjudged) Look(string, time.Time, bool)                        {}

// Close codes of spec/tracker-protocol.md.
const (
	closeDone       = 1000
	closeDraining   = 1001
	closePolicy     = 1008
	closeOverloaded = 1013
)

// Config of a tracker. Zero values take those of Defaults.
//
// Large: a key for each thing that a caller may set.
type Config struct {
	Secret      []byte // shared by all trackers, at least 32 bytes: tickets, swarm IDs, hashed addresses
	Sites       []*configured.Site
	ICEServers  []signal.ICEServer
	TURNServers []TURNServer // told beside ICEServers, with credentials of each session's own

	Tokens     Tokens        // of token-only sites; without it they are closed
	TokenGrace time.Duration // in which a session whose token has run out may show another

	UpdateInterval    time.Duration
	StatsInterval     time.Duration
	HelloTimeout      time.Duration
	CredentialsLife   time.Duration // of those for relays
	TicketLife        time.Duration // counted from the last ticket's half
	BeatEvery         time.Duration
	MaxSessions       int           // sockets that have none yet count
	MaxPerAddress     int           // of them from one address; 0: a tenth of MaxSessions, at least 100
	MaxPerSubject     int           // sessions of one subject of join tokens, at all trackers
	MaxSwarms         int           // of one session
	MaxMembers        int           // of a part of a swarm
	MaxHomes          int           // swarms with a home here
	MessagesPerSecond int           // of one session, with bursts of twice that; allowances of signals grow with it
	ConnectsPerSecond int           // of one address, with bursts of five times that
	PeersPerHour      int           // viewers that a session may learn of; its address and its subject 16 times that
	DrainSpread       time.Duration // over which a drain hands viewers over

	TitleNames bool // metrics name titles, which are what viewers say; otherwise they have a hash each

	// Probe sends a packet with a key to where a seed says that it is; nil: seeds are not told whether they are reached.
	Probe func(to netip.AddrPort, key string) error

	// Torrents makes the room of the WebTorrent protocol; nil: the tracker does not speak it.
	Torrents func(*Tracker) Torrents
	// Judge makes the judge of the sites' experiments; nil: nothing is judged.
	Judge func(*Tracker) Judge

	Now     func() time.Time
	Log     *slog.Logger
	Metrics metric.Sink

	began time.Time // the tracker
}

// Steady is how long the tracker has run, in ns, by a clock that is not set: one that is set back would refuse all that is charged by it,
// until it is where it was.
func (c *Config) Steady() int64 { return int64(c.Now().Sub(c.began)) }

// defaultMessages a second may a session send; allowances of signals are stated for it.
const defaultMessages = 50

// Defaults is what zero values of a Config stand for.
func Defaults() Config {
	return Config{
		TokenGrace: 10 * time.Second, UpdateInterval: 10 * time.Second, StatsInterval: 10 * time.Second, HelloTimeout: 5 * time.Second,
		CredentialsLife: 10 * time.Minute, TicketLife: 10 * time.Minute, BeatEvery: 2 * time.Second, DrainSpread: 15 * time.Second,
		MaxSessions: 20_000, MaxPerAddress: 2000, MaxPerSubject: 16, MaxSwarms: 4, MaxMembers: 2000, MaxHomes: 100_000,
		MessagesPerSecond: defaultMessages, ConnectsPerSecond: 20, PeersPerHour: 600,
	}
}

func (c *Config) complete() error {
	if len(c.Secret) < 32 {
		return errors.New("tracker: secret has fewer than 32 bytes; make one with: leeway secret")
	}
	if len(c.Sites) == 0 {
		return errors.New("tracker: no site is configured; add one under sites")
	}
	d := Defaults()
	c.TokenGrace = cmp.Or(c.TokenGrace, d.TokenGrace)
	c.UpdateInterval = cmp.Or(c.UpdateInterval, d.UpdateInterval)
	c.StatsInterval = cmp.Or(c.StatsInterval, d.StatsInterval)
	c.HelloTimeout = cmp.Or(c.HelloTimeout, d.HelloTimeout)
	c.CredentialsLife = cmp.Or(c.CredentialsLife, d.CredentialsLife)
	c.TicketLife = cmp.Or(c.TicketLife, d.TicketLife)
	c.BeatEvery = cmp.Or(c.BeatEvery, d.BeatEvery)
	c.DrainSpread = cmp.Or(c.DrainSpread, d.DrainSpread)
	c.MaxSessions = cmp.Or(c.MaxSessions, d.MaxSessions)
	c.MaxPerAddress = cmp.Or(c.MaxPerAddress, max(100, c.MaxSessions/10))
	c.MaxPerSubject = cmp.Or(c.MaxPerSubject, d.MaxPerSubject)
	c.MaxSwarms = cmp.Or(c.MaxSwarms, d.MaxSwarms)
	c.MaxMembers = cmp.Or(c.MaxMembers, d.MaxMembers)
	c.MaxHomes = cmp.Or(c.MaxHomes, d.MaxHomes)
	c.MessagesPerSecond = cmp.Or(c.MessagesPerSecond, d.MessagesPerSecond)
	c.ConnectsPerSecond = cmp.Or(c.ConnectsPerSecond, d.ConnectsPerSecond)
	c.PeersPerHour = cmp.Or(c.PeersPerHour, d.PeersPerHour)
	if c.Tokens == nil {
		c.Tokens = noKeys{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.began = c.Now()
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Metrics = cmp.Or(c.Metrics, metric.Discard)
	seen := map[string]bool{}
	for _, s := range c.Sites {
		if seen[s.Name()] {
			return fmt.Errorf("tracker: two sites are named %q", s.Name())
		}
		seen[s.Name()] = true
	}
	return nil
}

// derive makes a key for one purpose from the secret.
func (c *Config) derive(purpose string) []byte {
	h := sha256.New()
	h.Write([]byte("leeway tracker " + purpose + "\x00"))
	h.Write(c.Secret)
	return h.Sum(nil)
}
