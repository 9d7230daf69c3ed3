package qualitylink

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/wire/quality"
)

// maxRemotes is how many addresses of its other side a line hears: as many as a seed checks of a link (spec/peer-protocol.md).
const maxRemotes = 16

// maxChecks is how many connectivity checks a line hears at once, and checksEach the time in which it may hear another. Each costs the agent
// a signature and an answer, which take longer than to read it, and what the agent has not taken waits in a queue of pion's mux that has no
// bound. Browsers make 20 to 50 a second until a pair is chosen, and one in a few seconds afterwards.
const (
	maxChecks  = 128
	checksEach = time.Second / 64
)

// Socket is a UDP socket that may tell and set the DSCP of packets.
type Socket interface {
	net.PacketConn
	// ReadMarked reads a packet; dscp is below 0 where it cannot be told.
	ReadMarked(b []byte) (n, dscp int, from net.Addr, err error)
	WriteMarked(b []byte, dscp int, to net.Addr) error
}

// gate lets packets of those through that have asked. It is what pion takes for the socket.
type gate struct {
	Socket

	mu    sync.Mutex
	asked []*pass // guarded by mu
}

// pass is of one line.
type pass struct {
	networks []netip.Prefix // nil: all
	dscp     int

	mu     sync.Mutex
	remote []netip.AddrPort           // guarded by mu: its other side, at most maxRemotes
	marks  [quality.MaxDSCP + 1]int64 // guarded by mu: packets that came
	marked bool                       // guarded by mu
	next   time.Time                  // guarded by mu: when a check comes in its time
}

func (g *gate) open(networks []netip.Prefix, dscp int) *pass {
	p := &pass{networks: networks, dscp: dscp}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, p)
	return p
}

func (g *gate) shut(p *pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.asked {
		if other == p {
			g.asked = append(g.asked[:i:i], g.asked[i+1:]...)
			return
		}
	}
}

// passes says whether packets may come from and go to an address. owner is the pass of the line that has written to it, if one has.
func (g *gate) passes(at netip.AddrPort) (owner *pass, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.asked {
		if p.networks != nil && !slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(at.Addr()) }) {
			continue
		}
		ok = true
		if p.owns(at) {
			return p, true
		}
	}
	return nil, ok
}

// ReadFrom implements net.PacketConn. Packets of strangers are not seen.
func (g *gate) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, dscp, from, err := g.ReadMarked(b)
		if err != nil {
			return n, from, err
		}
		at := addrPort(from)
		owner, ok := g.passes(at)
		if !ok || owner != nil && stun.IsMessage(b[:n]) && !owner.hears(time.Now()) {
			continue
		}
		if owner != nil {
			owner.count(dscp)
		}
		return n, net.UDPAddrFromAddrPort(at), nil
	}
}

// WriteTo implements net.PacketConn. Packets to strangers are lost.
func (g *gate) WriteTo(b []byte, to net.Addr) (int, error) {
	owner, ok := g.passes(addrPort(to))
	if !ok {
		return len(b), nil
	}
	dscp := 0
	if owner != nil {
		dscp = owner.dscp
	}
	return len(b), g.WriteMarked(b, dscp, to)
}

func addrPort(a net.Addr) netip.AddrPort {
	udp, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := udp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

func (p *pass) owns(at netip.AddrPort) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.remote, at)
}

// own notes an address of the other side; false: there are as many as may be, without it.
func (p *pass) own(at netip.AddrPort) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := slices.Contains(p.remote, at)
	if !known && len(p.remote) < maxRemotes {
		p.remote = append(p.remote, at)
		return true
	}
	return known
}

// hears says whether a check of the other side is heard now.
func (p *pass) hears(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	if p.next.Sub(now) >= maxChecks*checksEach {
		return false
	}
	p.next = p.next.Add(checksEach)
	return true
}

func (p *pass) count(dscp int) {
	if dscp < 0 || dscp > quality.MaxDSCP {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks[dscp]++
	p.marked = true
}

// counted is how many packets came with each mark; false: it cannot be told.
func (p *pass) counted() ([quality.MaxDSCP + 1]int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marks, p.marked
}

// written is what a line has of the mux's connection: it hears few addresses, and notes where the line's packets go. The agent keeps each
// address that asks with the line's password as a candidate until the line ends, and looks through all of them for each request. A
// client with a /64 has any number of them, and pays for none.
type written struct {
	net.PacketConn
	pass *pass
}

// ReadFrom implements net.PacketConn.
func (w written) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := w.PacketConn.ReadFrom(b)
		if err != nil || w.pass.own(addrPort(from)) {
			return n, from, err
		}
	}
}

// WriteTo implements net.PacketConn.
func (w written) WriteTo(b []byte, to net.Addr) (int, error) {
	w.pass.own(addrPort(to))
	return w.PacketConn.WriteTo(b, to)
}
