package emulator

import (
	"encoding/binary"
	"time"
)

// MaxPacket is the largest IP packet that the emulator carries, in bytes.
const MaxPacket = 2048

// Packet is an IP packet on its way through the emulated network.
type Packet struct {
	Data [MaxPacket]byte
	Size int

	flow  flowKey
	six   bool // IPv6
	route *route
	hop   int     // index into route.links of the link it is on
	seq   uint64  // order in which the present link sent it
	next  *Packet // in a queue or in the pool
}

// flowKey tells flows apart: addresses (IPv6 ones folded), protocol and, where there are any, ports.
type flowKey struct {
	src, dst uint32
	ports    uint32
	protocol byte
}

const (
	protocolTCP = 6
	protocolUDP = 17
)

// parse reads what routing and per-flow queues need; false means that this is nothing that a lab carries.
func (p *Packet) parse() bool {
	d := p.Data[:p.Size]
	if p.six = len(d) >= header6 && d[0]>>4 == 6; p.six {
		return p.parse6(d)
	}
	if len(d) < 20 || d[0]>>4 != 4 {
		return false
	}
	header := int(d[0]&0x0f) * 4
	p.flow = flowKey{
		src:      binary.BigEndian.Uint32(d[12:]),
		dst:      binary.BigEndian.Uint32(d[16:]),
		protocol: d[9],
	}
	fragment := binary.BigEndian.Uint16(d[6:])&0x3fff != 0 // more to come, or not the first
	if (d[9] == protocolTCP || d[9] == protocolUDP) && !fragment && len(d) >= header+4 && header >= 20 {
		p.flow.ports = binary.BigEndian.Uint32(d[header:])
	}
	return true
}

// header6 is how long IPv6's header is, in bytes.
const header6 = 40

// parse6 reads an IPv6 packet. What goes to groups stays where it is: neighbor discovery, mostly.
func (p *Packet) parse6(d []byte) bool {
	const group = 0xff
	if d[24] == group {
		return false
	}
	p.flow = flowKey{src: fold(d[8:24]), dst: fold(d[24:header6]), protocol: d[6]}
	if (d[6] == protocolTCP || d[6] == protocolUDP) && len(d) >= header6+4 {
		p.flow.ports = binary.BigEndian.Uint32(d[header6:])
	}
	return true
}

// fold makes a number of an IPv6 address.
func fold(a []byte) uint32 {
	return binary.BigEndian.Uint32(a)*31 ^ binary.BigEndian.Uint32(a[4:])*17 ^ binary.BigEndian.Uint32(a[8:])*7 ^ binary.BigEndian.Uint32(a[12:])
}

// line holds the packets that were sent and have not arrived, ordered by arrival and then by when they were added. It
// is a binary heap; where packets stay in order, adding one costs one comparison.
type line struct {
	packets []flying
	added   uint64
	last    time.Duration // latest arrival given so far
}

type flying struct {
	at    time.Duration
	order uint64
	p     *Packet
}

func (f flying) before(g flying) bool {
	return f.at < g.at || f.at == g.at && f.order < g.order
}

func (l *line) next() (time.Duration, bool) {
	if len(l.packets) == 0 {
		return 0, false
	}
	return l.packets[0].at, true
}

func (l *line) add(p *Packet, at time.Duration) {
	l.last = max(l.last, at)
	l.added++
	h := append(l.packets, flying{at, l.added, p})
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	l.packets = h
}

func (l *line) pop() *Packet {
	h := l.packets
	p := h[0].p
	n := len(h) - 1
	h[0], h[n] = h[n], flying{}
	h = h[:n]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < n && h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	l.packets = h
	return p
}
