// Package rtclink carries links over WebRTC data channels.
//
// A Host owns one UDP socket for all its links (or one a link, for hosts that dial), with buffers of its own size. A
// Link is an ICE agent on a mux of ours (mux.go), pion's DTLS handshake (handshake.go) and records of ours after it
// (record.go, seal.go), SCTP with the planned channels (channels.go; spec/peer-protocol.md, Channels), and a bound of what is in
// flight (flight.go). Data go by the agent (intake.go), and once the link is open and a pair of addresses chosen, the agent
// goes (consent.go); docs/decisions/0011 says why, and why there is no peer connection around them.
//
// The parts of a Link own their state: its life (life.go), the addresses of this side (gather.go), the route to the other one
// (route.go), the channels, what is sent on them (sender.go, control.go) and what comes (reader.go). No part takes a lock while it holds
// its own, and none is held while a callback is called; Host.mu may be held when a part takes its own.
package rtclink

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// ICEServer is a STUN or TURN server.
type ICEServer struct {
	URLs                 []string
	Username, Credential string
}

// Config of a Host.
type Config struct {
	// Listen is the address and port of the UDP socket, for example "127.0.0.1:4600" or ":4600".
	Listen string
	// Announce replaces the host candidates' addresses: what the outside sees of this host.
	Announce []netip.Addr
	// Loopback offers loopback candidates although Listen is not a loopback address.
	Loopback bool
	// SocketPerLink opens a socket for each link, on Listen's address and a free port. Hosts that hold several
	// links to one other host need it: pion's mux tells links apart by the remote address.
	SocketPerLink bool
	// ICEServers and RelayOnly are for hosts that dial; a seed needs none.
	ICEServers []ICEServer
	RelayOnly  bool
	// Plan is proposed, or answered with; the zero value is peer.DefaultPlan.
	Plan peer.Plan
	// InFlight is the highest bound of the bytes of a link's data channels that SCTP holds, sent or not; below it the
	// bound follows the path (flight.go). 0 is DefaultInFlight.
	InFlight int
	// PionRecords has pion write and read the records of links, and not only make their keys: slower, and the way back from records of
	// ours should they turn out wrong. Both sides of a link choose for themselves.
	PionRecords bool
	// Keepalive is the interval of ICE's checks of an open path, data or not; pion takes at most 2 s. 0 is none: the
	// sessions above ping when they have nothing else to say (transfer.PingAfter), which keeps a NAT's mapping as well
	// and is quiet while data flows.
	Keepalive time.Duration
	// OpenTimeout ends a link that has not opened; 0 is DefaultOpenTimeout.
	OpenTimeout time.Duration
	// Guard bounds what goes to addresses that the other sides name; nil does not.
	Guard *Guard
	Log   *slog.Logger
}

// Defaults of Config.
const (
	DefaultInFlight    = 4 << 20
	DefaultOpenTimeout = 30 * time.Second
	// quietAfter is when a path on which nothing arrives counts as interrupted, LostAfter when it is given up.
	quietAfter = 20 * time.Second
	LostAfter  = 30 * time.Second
)

func (c *Config) complete() error {
	if c.Plan == (peer.Plan{}) {
		c.Plan = peer.DefaultPlan
	}
	if err := c.Plan.Check(); err != nil {
		return fmt.Errorf("rtclink: %w", err)
	}
	c.InFlight = cmp.Or(c.InFlight, DefaultInFlight)
	if c.InFlight < 2*c.Plan.Message {
		return fmt.Errorf("rtclink: in-flight bound of %d bytes is below two messages of %d", c.InFlight, c.Plan.Message)
	}
	c.OpenTimeout = cmp.Or(c.OpenTimeout, DefaultOpenTimeout)
	if c.Guard != nil {
		c.Guard.complete()
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return nil
}
