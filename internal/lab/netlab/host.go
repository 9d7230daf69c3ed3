package netlab

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/leeway-video/leeway/internal/lab/netlab/namespace"
)

// device is what a host's way out is called inside. Browsers take a name that begins with tun for a VPN.
const device = "eth0"

// spot is a namespace of the lab: a host or a gateway.
type spot struct {
	*node    // nil behind a gateway
	name     string
	addr     netip.Addr
	addr6    netip.Addr   // not valid without IPv6
	routed   []netip.Addr // further addresses that are reached through it
	settings [][2]string  // sysctl, value
	space    *namespace.Namespace
}

func (s *spot) public() []netip.Addr { return append(s.own(), s.routed...) }

// own are the addresses of the spot itself.
func (s *spot) own() (all []netip.Addr) {
	for _, a := range []netip.Addr{s.addr, s.addr6} {
		if a.IsValid() {
			all = append(all, a)
		}
	}
	return all
}

// Host is a machine of the lab: a namespace with lo and one device.
type Host struct {
	*spot
	lab     *Lab
	gateway *Gateway // nil for a host with a line of its own
}

// Host adds a host with a public address. It needs a line.
func (l *Lab) Host(name string) *Host {
	h := &Host{lab: l, spot: &spot{node: l.node(name, true), name: name, addr: l.nextAddr()}}
	if l.opts.IPv6 {
		l.addr6 = l.addr6.Next()
		h.addr6 = l.addr6
	}
	l.spots = append(l.spots, h.spot)
	return h
}

// OnlyIPv6 takes the host's IPv4 address away.
func (h *Host) OnlyIPv6() *Host {
	if !h.addr6.IsValid() {
		h.lab.fail("%s: only hosts with a line in a lab with IPv6 have such an address", h.name)
	}
	h.addr = netip.Addr{}
	return h
}

// Name of the host.
func (h *Host) Name() string { return h.name }

// Addr is the host's IPv4 address: behind a NAT, its address there. A host that has none has its IPv6 address here.
func (h *Host) Addr() netip.Addr { return h.own()[0] }

// Addr6 is the host's IPv6 address, not valid if it has none.
func (h *Host) Addr6() netip.Addr { return h.addr6 }

// Namespace is the file of the host's network namespace, for nsenter --net=.
func (h *Host) Namespace() string { return h.space.Path() }

// Sysctl has a kernel setting of the host's namespace set when the lab starts, for example
// "net.ipv4.tcp_congestion_control" to "bbr".
func (h *Host) Sysctl(name, value string) *Host {
	h.settings = append(h.settings, [2]string{name, value})
	return h
}

// Do calls fn on a thread inside the host. Sockets that fn makes belong to the host for good. Goroutines that fn starts
// run outside, so libraries that make sockets in goroutines of their own need Listen and Dial functions instead.
func (h *Host) Do(fn func() error) error {
	if h.space == nil {
		return fmt.Errorf("netlab: host %s: not started", h.name)
	}
	return h.space.Do(fn)
}

// Listen is net.ListenConfig.Listen inside the host.
func (h *Host) Listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	err = h.Do(func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(ctx, network, address)
		return err
	})
	return l, err
}

// ListenPacket is net.ListenConfig.ListenPacket inside the host.
func (h *Host) ListenPacket(ctx context.Context, network, address string) (c net.PacketConn, err error) {
	err = h.Do(func() (err error) {
		c, err = (&net.ListenConfig{}).ListenPacket(ctx, network, address)
		return err
	})
	return c, err
}

// ListenUDP makes a UDP socket of the host, on its address and a port that the kernel chooses.
func (h *Host) ListenUDP() (*net.UDPConn, error) {
	c, err := h.ListenPacket(context.Background(), "udp", netip.AddrPortFrom(h.Addr(), 0).String())
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// DialContext is net.Dialer.DialContext inside the host. The address must be numeric: there are no name servers. A
// thread waits as long as the connection is being made.
func (h *Host) DialContext(ctx context.Context, network, address string) (c net.Conn, err error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("netlab: host %s: dial: %w", h.name, err)
	}
	if _, err := netip.ParseAddr(name); err != nil {
		return nil, fmt.Errorf("netlab: host %s: dial %q: a lab has no name server, dial an IP address", h.name, address)
	}
	err = h.Do(func() (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}
