package netlab

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab/emulator"
	"github.com/leeway-video/leeway/internal/lab/netlab/namespace"
)

// Link is what one direction of a line does to packets.
type Link = emulator.Link

// kind begins the names of everything on the machine that belongs to a lab.
const kind = "leeway"

// Options of a lab; the zero value is fine.
type Options struct {
	// Seed of all random events on links that have none of their own. The same seed gives the same losses to the same
	// sequence of packets.
	Seed uint64
	// MTU of all devices, 1500 by default, at most 2048.
	MTU int
	// CongestionControl of the hosts' TCP: cubic by default, whatever the machine's own default is.
	CongestionControl string
	// Network is where addresses of hosts and gateways come from, 198.18.0.0/15 by default.
	Network netip.Prefix
	// IPv6 gives every host with a line an IPv6 address too, of 2001:2::/48, for which it is in a lab what 198.18.0.0/15
	// is for IPv4. Gateways and what is behind them stay without.
	IPv6 bool
}

// network6 is where IPv6 addresses come from (RFC 5180).
var network6 = netip.MustParsePrefix("2001:2::/48")

func (o *Options) complete() error {
	o.MTU = cmp.Or(o.MTU, 1500)
	o.CongestionControl = cmp.Or(o.CongestionControl, "cubic")
	if !o.Network.IsValid() {
		o.Network = netip.MustParsePrefix("198.18.0.0/15")
	}
	if o.MTU < 576 || o.MTU > emulator.MaxPacket {
		return fmt.Errorf("MTU %d is not between 576 and %d", o.MTU, emulator.MaxPacket)
	}
	if !o.Network.Addr().Is4() {
		return fmt.Errorf("network %v is not IPv4", o.Network)
	}
	return nil
}

// Lab is a network. It is first described (Host, Router, Gateway, Connect), then started. Mistakes of the description
// are kept and returned by Start. Description and Start belong to one goroutine; afterwards everything is safe for
// concurrent use.
type Lab struct {
	opts     Options
	addr     netip.Addr // the last one given away
	addr6    netip.Addr // likewise
	nodes    []*node
	lines    []*Line
	links    []Link // two per line: from the first node to the second, and back
	spots    []*spot
	gateways []*Gateway
	errs     []error

	owner *namespace.Owner
	emu   *emulator.Process

	mu      sync.Mutex
	running bool
	mark    mark // guarded by mu
}

// node is a place where lines meet.
type node struct {
	name  string
	leaf  bool // carries nothing through: a host or a gateway
	port  int  // number of its device, for leaves
	lines []*Line
}

func (n *node) self() *node { return n }

// Node is a Host, a Router or a Gateway.
type Node interface{ self() *node }

// Router joins lines. It forwards at once and without limit; what a network does to packets is on its lines.
type Router struct{ *node }

// New prepares a lab. It needs root on Linux, see Available, and sweeps what earlier labs left if they were killed.
func New(opts Options) (*Lab, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("netlab: %w", err)
	}
	if err := namespace.Sweep(kind); err != nil {
		return nil, fmt.Errorf("netlab: sweep: %w", err)
	}
	owner, err := namespace.Own(kind)
	if err != nil {
		return nil, fmt.Errorf("netlab: %w", err)
	}
	return &Lab{opts: opts, addr: opts.Network.Masked().Addr(), addr6: network6.Addr(), owner: owner}, nil
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

func (l *Lab) node(name string, leaf bool) *node {
	if !validName.MatchString(name) {
		l.fail("name %q: lower-case letters, digits and hyphens, 32 at most", name)
	}
	for _, other := range l.nodes {
		if other.name == name {
			l.fail("there are two nodes called %q", name)
		}
	}
	n := &node{name: name, leaf: leaf, port: -1}
	l.nodes = append(l.nodes, n)
	return n
}

func (l *Lab) fail(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

// Router adds a router.
func (l *Lab) Router(name string) *Router { return &Router{l.node(name, false)} }

// nextAddr gives out an address of the lab's network.
func (l *Lab) nextAddr() netip.Addr {
	l.addr = l.addr.Next()
	if !l.opts.Network.Contains(l.addr) {
		l.fail("network %v has no more addresses", l.opts.Network)
	}
	return l.addr
}

// Path is a line's two directions, seen from the node that is named first: Down is what comes to it, Up what it sends.
type Path struct{ Down, Up Link }

// Both is a path with the same properties in both directions.
func Both(l Link) Path { return Path{Down: l, Up: l} }

// BDP returns the bytes that a rate in bits per second carries in a round-trip time: the bandwidth-delay product.
func BDP(rate int64, rtt time.Duration) int {
	return int(float64(rate) / 8 * rtt.Seconds())
}

// Line is a connection between two nodes.
type Line struct {
	Down, Up *Direction
	a, b     *node
}

// Connect joins two nodes. A host and a gateway have one line each; Down goes from b to a.
func (l *Lab) Connect(a, b Node, path Path) *Line {
	from, to := a.self(), b.self()
	line := &Line{a: from, b: to}
	line.Up = l.direction(from, to, path.Up)
	line.Down = l.direction(to, from, path.Down)
	for _, n := range []*node{from, to} {
		if n.leaf && len(n.lines) > 0 {
			l.fail("%s has a line already", n.name)
		}
		n.lines = append(n.lines, line)
	}
	if from == to {
		l.fail("%s cannot be connected to itself", from.name)
	}
	l.lines = append(l.lines, line)
	return line
}

// Direction is one direction of a line.
type Direction struct {
	// Name is "from→to".
	Name string

	lab   *Lab
	index int
	mu    sync.Mutex
	link  Link // guarded by mu
}

func (l *Lab) direction(from, to *node, link Link) *Direction {
	d := &Direction{Name: from.name + "→" + to.name, lab: l, index: len(l.links)}
	if err := link.Check(); err != nil {
		l.fail("%s: %w", d.Name, err)
	}
	if link.Seed == 0 {
		link.Seed = l.opts.Seed*1_000_003 + uint64(d.index) + 1
	}
	d.link = link
	l.links = append(l.links, link)
	return d
}

// Link returns the present properties.
func (d *Direction) Link() Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.link
}

// Set changes the properties of a running lab's line from now on: packets on the way keep their times, those that wait
// are sent by the new properties. Loss: 1 cuts the line.
func (d *Direction) Set(link Link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	link.Seed = cmp.Or(link.Seed, d.link.Seed)
	if d.lab.emu == nil {
		return fmt.Errorf("netlab: %s: not started", d.Name)
	}
	if err := d.lab.emu.Set(d.index, link); err != nil {
		return fmt.Errorf("netlab: %s: %w", d.Name, err)
	}
	d.link = link
	return nil
}

// Start makes what was described. After an error the lab is good for Close only.
func (l *Lab) Start() error {
	if err := errors.Join(l.errs...); err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	if l.running {
		return errors.New("netlab: started already")
	}
	cfg, err := l.config()
	if err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	if err := l.build(cfg); err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	l.running = true
	return l.Mark()
}

// Close ends every process in the lab and removes it. Calling it twice is harmless.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner == nil {
		return nil
	}
	var errs []error
	for _, s := range l.spots {
		if s.space != nil {
			s.space.Release()
		}
	}
	errs = append(errs, l.owner.Close()) // processes first, while their packets still go somewhere
	if l.emu != nil {
		errs = append(errs, l.emu.Close())
	}
	l.owner = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("netlab: close: %w", err)
	}
	return nil
}
