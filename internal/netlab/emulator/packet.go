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

	flow   flowKey
	route  *route
	hop    int           // index into route.links of the link it is on
	seq    uint64        // order in which the present link sent it
	queued time.Duration // when it came into the present queue
	next   *Packet       // in a queue or in the pool
}

// flowKey tells flows apart: addresses, protocol and, where there are any, ports.
type flowKey struct {
	src, dst uint32
	ports    uint32
	protocol byte
}

const (
	protocolTCP = 6
	protocolUDP = 17
)

// parse reads what routing and per-flow queues need; false means that this is no IPv4 packet.
func (p *Packet) parse() bool {
	d := p.Data[:p.Size]
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
