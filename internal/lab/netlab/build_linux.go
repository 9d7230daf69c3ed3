package netlab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/leeway-video/leeway/internal/lab/netlab/emulator"
	"github.com/leeway-video/leeway/internal/lab/netlab/namespace"
)

// transmitQueue is how many packets may wait in a TUN device for the emulator, which looks every few microseconds; it
// is large so that a burst is dropped by the line's own queue or not at all.
const transmitQueue = 10_000

// Available says why this process cannot make a lab, or nil.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("netlab: making network namespaces needs root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Errorf("netlab: the kernel has no TUN devices: %w", err)
	}
	return nil
}

// build makes namespaces and devices and starts the emulator.
func (l *Lab) build(cfg emulator.Config) error {
	var devices []*os.File
	defer func() {
		for _, d := range devices {
			_ = d.Close() // the emulator has its own
		}
	}()
	for _, s := range l.spots {
		if err := l.makeSpot(s, &devices); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, g := range l.gateways {
		if err := g.build(); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	var err error
	l.emu, err = emulator.Start(cfg, devices)
	return err
}

func (l *Lab) makeSpot(s *spot, devices *[]*os.File) error {
	var err error
	if s.space, err = namespace.Create(l.owner.Space(s.name)); err != nil {
		return err
	}
	for _, kv := range append([][2]string{
		{"net.ipv6.conf.default.disable_ipv6", zeroOrOne(!s.addr6.IsValid())}, // ::1 stays
		{"net.ipv6.conf.default.addr_gen_mode", "1"},                          // no link-local address, and no router to be asked for one
		{"net.ipv6.conf.default.accept_dad", "0"},
		{"net.ipv6.conf.default.router_solicitations", "0"},
		{congestionControl, l.opts.CongestionControl},
		{"net.ipv4.tcp_no_metrics_save", "1"}, // a connection does not learn from the one before
	}, s.settings...) {
		if err := s.set(kv[0], kv[1]); err != nil {
			return err
		}
	}
	if s.node != nil {
		var tun *os.File
		if err := s.space.Do(func() (err error) { tun, err = openTUN(device); return err }); err != nil {
			return err
		}
		*devices = append(*devices, tun)
	}
	return s.withLinks(func(h *netlink.Handle) error {
		if err := up(h, "lo"); err != nil {
			return err
		}
		if s.node == nil {
			return nil
		}
		return l.configure(h, s.own())
	})
}

// zeroOrOne is a switch as the kernel's settings have it.
func zeroOrOne(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// withLinks lends a netlink handle in the spot's namespace.
func (s *spot) withLinks(fn func(*netlink.Handle) error) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(s.space.FD()))
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer h.Close()
	return fn(h)
}

// configure gives the TUN device its addresses and the default routes.
func (l *Lab) configure(h *netlink.Handle, addrs []netip.Addr) error {
	link, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("device %s: %w", device, err)
	}
	each := func(do func(netip.Addr) error) func() error {
		return func() error {
			for _, a := range addrs {
				if err := do(a); err != nil {
					return fmt.Errorf("%v: %w", a, err)
				}
			}
			return nil
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"mtu", func() error { return h.LinkSetMTU(link, l.opts.MTU) }},
		{"queue", func() error { return h.LinkSetTxQLen(link, transmitQueue) }},
		{"up", func() error { return h.LinkSetUp(link) }},
		{"address", each(func(a netip.Addr) error {
			return h.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen()))})
		})},
		{"route", each(func(a netip.Addr) error {
			way := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(netip.PrefixFrom(netip.IPv6Unspecified(), 0))}
			if a.Is4() {
				way.Dst, way.Scope, way.Src = ipNet(netip.PrefixFrom(netip.IPv4Unspecified(), 0)), netlink.SCOPE_LINK, a.AsSlice()
			}
			return h.RouteAdd(way)
		})},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("device %s: %s: %w", device, step.what, err)
		}
	}
	return nil
}

func up(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("device %s: %w", name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// openTUN makes a TUN device in the namespace of the calling thread. It lives as long as a process has the file. Without
// offloads (no virtio header), packets come in the size that a line would carry.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("TUN device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), "tun"), nil
}

// deviceDrops counts packets that a TUN device dropped because the emulator did not fetch them in time.
func (l *Lab) deviceDrops() (uint64, error) {
	var drops uint64
	for _, s := range l.spots {
		if s.node == nil {
			continue
		}
		err := s.withLinks(func(h *netlink.Handle) error {
			link, err := h.LinkByName(device)
			if err != nil {
				return fmt.Errorf("%s: device %s: %w", s.name, device, err)
			}
			if stats := link.Attrs().Statistics; stats != nil {
				drops += stats.TxDropped
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return drops, nil
}
