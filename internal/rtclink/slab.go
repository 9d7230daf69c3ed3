package rtclink

import (
	"net/netip"
	"sync"
	"sync/atomic"
)

// slabSize is what one read may bring: the kernel joins packets of one sender up to this size.
const slabSize = 65536

// slab is memory that one read filled with one or more packets; the last reader of its packets gives it back. Sockets
// share the pool and hold none while nothing arrives, so that an idle link costs no buffers.
type slab struct {
	buf  [slabSize]byte
	refs atomic.Int32
}

var slabs = sync.Pool{New: func() any { return new(slab) }}

func (s *slab) release() {
	if s.refs.Add(-1) == 0 {
		slabs.Put(s)
	}
}

// arrival is what one read brought: packets of size bytes each from one sender, the last one perhaps shorter.
type arrival struct {
	slab *slab
	n    int // bytes
	size int // bytes of a packet
	from netip.AddrPort
}

// each hands on the packets between two offsets.
func (a arrival) each(from, to int, take func(packet)) {
	for at := from; at < to; at += a.size {
		take(packet{a.slab, a.slab.buf[at:min(at+a.size, to)], a.from})
	}
}
