package app

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/turnd"
)

// stunPort is where up answers STUN, and mostSTUN how many of its own names it tells viewers.
const (
	stunPort = "3478"
	mostSTUN = 2
)

// startSTUN has viewers on other machines learn the address that they are seen at, without which two of them behind NATs do not meet. It is
// a relay whose secret no client is told, so that a relay's bounds hold. Behind a proxy the machine does not know what viewers call it.
func (u *upRun) startSTUN(public place) error {
	if loopback(public.addr.String()) || len(u.config.Tracker.ICEServers) > 0 || u.proxied() {
		return nil
	}
	names, err := public.reached()
	if err != nil || len(names) == 0 {
		return err
	}
	text, err := newSecret()
	if err != nil {
		return err
	}
	secret, err := access.NewRelaySecret(text)
	if err != nil {
		return err
	}
	answers, err := relay.New(relay.Config{Secrets: access.RelaySecrets{secret}, MaxAllocations: 1, MaxConnections: 1, Log: u.log, Metrics: u.metrics})
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(public.addr.String())
	if err != nil {
		return fmt.Errorf("up: read the public address: %w", err)
	}
	var server *turnd.Server
	listen := net.JoinHostPort(host, stunPort)
	if err := tryPorts(listen, true, func(at string) (err error) {
		server, err = turnd.Listen(turnd.Config{
			Listen: at, Sockets: 1, Announce: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Policy: relayPolicy{answers}, Log: u.log,
		})
		return err
	}); err != nil {
		return listenError("up: STUN", listen, err)
	}
	u.onClose(func() { _ = server.Close() })
	_, port, err := net.SplitHostPort(server.Addr().String())
	if err != nil {
		return err
	}
	own := ICEServer{}
	for _, name := range names {
		own.URLs = append(own.URLs, "stun:"+net.JoinHostPort(name, port))
	}
	u.stun = server.Addr().String()
	u.config.Tracker.ICEServers = []ICEServer{own}
	return nil
}

// reached lists what viewers on other machines call the place: the names of its certificate, or else addresses.
func (p place) reached() ([]string, error) {
	hosts, err := p.hosts()
	if err != nil {
		return nil, err
	}
	var names, addresses []string
	for _, host := range hosts {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = strings.Trim(host, "[]") // the scheme's own port
		}
		switch {
		case loopback(net.JoinHostPort(name, "0")):
		case net.ParseIP(name) == nil:
			names = append(names, name)
		default:
			addresses = append(addresses, name)
		}
	}
	if names == nil {
		names = addresses
	}
	return names[:min(len(names), mostSTUN)], nil
}
