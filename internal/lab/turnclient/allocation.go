// Package turnclient is what benches and tests ask a TURN relay with: an allocation as pion's client has it (Allocate), and a bare one
// that costs next to nothing (OpenLine).
package turnclient

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/pion/logging"
	"github.com/pion/turn/v5"
)

// Allocation is a client's relayed socket, for benches and tests: what is written goes to a peer by way of the relay.
type Allocation struct {
	net.PacketConn
	client *turn.Client
	socket net.PacketConn
}

// Allocate asks a relay over UDP for an allocation.
func Allocate(relay, username, password string) (*Allocation, error) {
	to, err := net.ResolveUDPAddr("udp", relay)
	if err != nil {
		return nil, fmt.Errorf("turnclient: %w", err)
	}
	network := "udp4" // a socket of both families would ask for an address of IPv6
	if to.IP.To4() == nil {
		network = "udp6"
	}
	socket, err := net.ListenPacket(network, ":0")
	if err != nil {
		return nil, fmt.Errorf("turnclient: %w", err)
	}
	a := &Allocation{socket: socket}
	a.client, err = turn.NewClient(&turn.ClientConfig{
		TURNServerAddr: relay, Conn: socket, Username: username, Password: password, LoggerFactory: &logging.DefaultLoggerFactory{Writer: io.Discard},
	})
	if err == nil {
		err = a.client.Listen()
	}
	if err == nil {
		a.PacketConn, err = a.client.Allocate()
	}
	if err != nil {
		_ = a.Close()
		return nil, fmt.Errorf("turnclient: allocation at %s: %w", relay, err)
	}
	return a, nil
}

// Close gives the allocation back.
func (a *Allocation) Close() error {
	var err error
	if a.PacketConn != nil {
		err = a.PacketConn.Close()
	}
	if a.client != nil {
		a.client.Close()
	}
	return errors.Join(err, a.socket.Close())
}
