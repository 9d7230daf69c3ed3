// Package turnd is the TURN server on the wire: pion's protocol machine between client sockets (UDP, several on one
// port; TCP and TLS) and the relayed sockets of allocations. It asks a Policy for every decision. The sockets are its
// own wrappers, since pion's bounds too little of what outsiders make grow: frames and idleness of connections, permissions and
// channels of an allocation, ports that are reserved (decision 0021).
package turnd

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"
)

// Policy decides what a client may do. It is called from many goroutines at once.
type Policy interface {
	// Authenticate says which user a username belongs to and which password it needs. Where fresh is false the request carries an
	// allocation on.
	Authenticate(username string, fresh bool) (user, password string, ok bool)
	// Admits says whether a user may have one more allocation; Open takes it.
	Admits(user string, client netip.Addr) bool
	Open(user string) (Flow, error)
	// Holds is told of a client's allocations that came (1) and went (-1).
	Holds(client netip.Addr, n int)
	// Answers says whether a client may have one more reply over UDP that no password stands behind: its address may be forged.
	// Ignored is told of a request over UDP that gets none.
	Answers(client netip.Addr) bool
	Ignored()
	// AllowsPeer says whether anything at an address may be reached.
	AllowsPeer(a netip.Addr) bool
	// Connect says whether a connection may come in, over "tcp" or "tls"; what it let in ends with Disconnect. The connection
	// of a balancer has no client at first and its address is not valid: Introduce names the client and says whether the connection
	// may stay. Misled says that the balancer named none.
	Connect(client netip.Addr, transport string) bool
	Introduce(client netip.Addr) bool
	Misled()
	Disconnect(client netip.Addr, transport string)
}

// Flow decides over one allocation's packets.
type Flow interface {
	// Send is asked for a packet to a peer. own: on an address of this server; open: that of an allocation.
	Send(to netip.AddrPort, own, open bool, n int) bool
	// Receive is asked for a packet to the client.
	Receive(n int) bool
	Close()
}

// Config of a server. Zero values take those of Defaults.
type Config struct {
	Listen    string      // HOST:PORT of UDP and TCP
	ListenTLS string      // HOST:PORT of TLS; empty: none
	TLS       *tls.Config //
	// Introduces says of a balancer that each connection of its begins with a PROXY header, before TLS, which names its client.
	Introduces func(netip.Addr) bool
	Sockets    int // UDP sockets on Listen's port, each with a goroutine of its own; 0: one a processor

	// Announce is what relayed addresses are told as, at most one of each family. Without any it is Listen's host, or
	// else the address from which this machine reaches others.
	Announce         []netip.Addr
	PortMin, PortMax uint16 // of relayed addresses; both 0: those of Defaults

	Realm  string
	Policy Policy
	Log    *slog.Logger

	// FirstFrame is in which a connection has to say something, Idle how long it may be silent then.
	FirstFrame, Idle time.Duration
}

// Defaults is what zero values of a Config stand for.
func Defaults() Config {
	return Config{PortMin: 49152, PortMax: 65535, Realm: "leeway", FirstFrame: 10 * time.Second, Idle: 5 * time.Minute}
}

func (c *Config) complete() error {
	if c.Policy == nil {
		return errors.New("turnd: no policy")
	}
	if c.ListenTLS != "" && c.TLS == nil {
		return errors.New("turnd: TLS needs a certificate")
	}
	if c.Introduces == nil {
		c.Introduces = func(netip.Addr) bool { return false }
	}
	d := Defaults()
	c.Sockets = cmp.Or(c.Sockets, runtime.GOMAXPROCS(0))
	c.Realm = cmp.Or(c.Realm, d.Realm)
	c.FirstFrame = cmp.Or(c.FirstFrame, d.FirstFrame)
	c.Idle = cmp.Or(c.Idle, d.Idle)
	if c.PortMin == 0 && c.PortMax == 0 {
		c.PortMin, c.PortMax = d.PortMin, d.PortMax
	}
	if c.PortMin == 0 || c.PortMax < c.PortMin {
		return fmt.Errorf("turnd: %d–%d is no range of ports", c.PortMin, c.PortMax)
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return nil
}
