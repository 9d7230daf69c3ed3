package emulator

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Config of a network: its links, the ports where packets enter and leave, and the way between each two.
type Config struct {
	Links []Link
	Ports []Port
	// Namespaces are ended by the emulator when the process that started it has gone without a word.
	Namespaces []string
}

// Port is one place where packets enter and leave: a TUN device.
type Port struct {
	Name string
	// Addresses behind the port.
	Addresses []netip.Addr
	// Routes lists, for each other port's number, the links on the way there.
	Routes map[int][]int
}

type route struct {
	links []int
	port  int
}

// Engine moves packets over links in the order of their times. It is pure: the caller says what time it is, hands in
// what came, and is told what leaves, with the time at which it should have. What happens does not depend on how often
// it is asked.
type Engine struct {
	links    []*link
	order    timetable
	ports    map[uint32]int // IPv4 address → port
	ports6   map[[16]byte]int
	routes   [][]*route // from port, to port
	pool     *Packet
	unrouted uint64
	out      func(port int, p *Packet, due time.Duration)
}

// NewEngine prepares a network. out is called for each packet that leaves at a port, in order of due; the packet is the
// engine's again when it returns.
func NewEngine(cfg Config, out func(port int, p *Packet, due time.Duration)) (*Engine, error) {
	e := &Engine{ports: map[uint32]int{}, ports6: map[[16]byte]int{}, out: out}
	for i, c := range cfg.Links {
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("link %d: %w", i, err)
		}
		e.links = append(e.links, newLink(c, e.Free))
	}
	e.order = newTimetable(len(e.links))
	for i, p := range cfg.Ports {
		for _, a := range p.Addresses {
			switch {
			case a.Is4():
				e.ports[number(a)] = i
			case a.Is6() && !a.Is4In6():
				e.ports6[a.As16()] = i
			default:
				return nil, fmt.Errorf("port %s: %v is no address", p.Name, a)
			}
		}
		row := make([]*route, len(cfg.Ports))
		for to, links := range p.Routes {
			if to < 0 || to >= len(cfg.Ports) || len(links) == 0 {
				return nil, fmt.Errorf("port %s: route to %d over %v", p.Name, to, links)
			}
			for _, l := range links {
				if l < 0 || l >= len(cfg.Links) {
					return nil, fmt.Errorf("port %s: route to %d over link %d, which is not there", p.Name, to, l)
				}
			}
			row[to] = &route{links: links, port: to}
		}
		e.routes = append(e.routes, row)
	}
	return e, nil
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// Packet returns an empty packet.
func (e *Engine) Packet() *Packet {
	p := e.pool
	if p == nil {
		return &Packet{}
	}
	e.pool = p.next
	p.next = nil
	return p
}

// Free takes a packet back.
func (e *Engine) Free(p *Packet) {
	p.route, p.next = nil, e.pool
	e.pool = p
}

// Arrive takes in what came to a port, after letting happen what was due before.
func (e *Engine) Arrive(port int, p *Packet, now time.Duration) {
	e.Run(now)
	if !p.parse() {
		e.Free(p) // neighbor discovery and the like
		return
	}
	to, known := e.portOf(p)
	if !known || e.routes[port][to] == nil {
		e.unrouted++
		e.Free(p)
		return
	}
	p.route, p.hop = e.routes[port][to], 0
	e.enter(p, now)
}

// portOf is the port of a packet's destination.
func (e *Engine) portOf(p *Packet) (port int, known bool) {
	if p.six {
		port, known = e.ports6[[16]byte(p.Data[24:header6])]
		return port, known
	}
	port, known = e.ports[p.flow.dst]
	return port, known
}

func (e *Engine) enter(p *Packet, now time.Duration) {
	i := p.route.links[p.hop]
	e.links[i].arrive(p, now)
	e.plan(i)
}

// plan notes when the link will have something to do.
func (e *Engine) plan(i int) {
	at, ok := e.links[i].next()
	e.order.set(i, at, ok)
}

// Run lets happen, in order, what is due up to now.
func (e *Engine) Run(now time.Duration) {
	for {
		i, at, ok := e.order.first()
		if !ok || at > now {
			return
		}
		l := e.links[i]
		l.transmit(at)
		for {
			p, due := l.leave(at)
			if p == nil {
				break
			}
			if p.hop++; p.hop < len(p.route.links) {
				e.enter(p, due)
				continue
			}
			e.out(p.route.port, p, due)
			e.Free(p)
		}
		e.plan(i)
	}
}

// Next returns when Run has something to do again.
func (e *Engine) Next() (time.Duration, bool) {
	_, at, ok := e.order.first()
	return at, ok
}

// Set changes a link; its random numbers go on.
func (e *Engine) Set(i int, cfg Link, now time.Duration) error {
	if i < 0 || i >= len(e.links) {
		return fmt.Errorf("no link %d", i)
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	e.Run(now)
	e.links[i].transmit(now)
	e.links[i].set(cfg, now)
	e.plan(i)
	return nil
}

// Ledger returns which packets a link with a ledger has lost, in the order in which it sent them.
func (e *Engine) Ledger(i int, now time.Duration) ([]bool, error) {
	if i < 0 || i >= len(e.links) {
		return nil, fmt.Errorf("no link %d", i)
	}
	e.Run(now)
	e.links[i].transmit(now)
	return slices.Clone(e.links[i].ledger), nil
}

// Counters returns what the links counted; mark begins new maxima.
func (e *Engine) Counters(now time.Duration, mark bool) []Counters {
	e.Run(now)
	all := make([]Counters, len(e.links))
	for i, l := range e.links {
		l.transmit(now)
		all[i] = l.snapshot()
		if mark {
			l.counts.MaxQueueBytes, l.counts.MaxQueuePackets = l.queue.size()
		}
		e.plan(i)
	}
	return all
}
