package rtclink

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// gather is how long packets wait for company while the socket is busy; the first after a lull waits for
	// nothing. Links with data in flight have a round-trip time of many times that; others do not wait.
	gather = 300 * time.Microsecond
	lull   = time.Millisecond
	// batchPackets and batchBytes are when a batch goes out without waiting further.
	batchPackets = 48
	batchBytes   = 60000
	// joinedBytes and joinedPackets bound what one system call hands to the kernel to be cut into packets.
	joinedBytes   = 65000
	joinedPackets = 64
)

// outbox sends packets in batches, joined where the kernel can cut them: a system call, the way through the kernel and
// often the receiver's wake-up then serve dozens of packets. It has no goroutine of its own: the writer that fills a batch
// sends it, and a timer sends what is left. Nothing ticks while nothing is written.
//
// Lock order: sending before mu.
type outbox struct {
	conn *net.UDPConn
	sent counter

	sending sync.Mutex // held while a batch is handed to the kernel, so that order is kept
	cut     bool       // guarded by sending: the kernel cuts joined packets
	control cutMessage // guarded by sending

	mu     sync.Mutex
	batch  *batch      // guarded by mu; nil while empty
	last   time.Time   // guarded by mu: when a batch was begun or sent
	timer  *time.Timer // guarded by mu
	armed  int         // guarded by mu: runs of the timer that are to come
	closed bool        // guarded by mu
	idle   sync.Cond   // signaled when armed falls to 0
}

// batch is packets in the order in which they were written.
type batch struct {
	bytes   []byte
	packets []addressed
}

type addressed struct {
	to  netip.AddrPort
	end int // in bytes
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newOutbox(conn *net.UDPConn) *outbox {
	o := &outbox{conn: conn, cut: canCut(conn)}
	o.idle.L = &o.mu
	return o
}

// write sends a packet, now or with others; it waits while the socket is behind.
func (o *outbox) write(b []byte, to netip.AddrPort) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	now := false
	if o.batch == nil {
		o.batch = batches.Get().(*batch)
		at := time.Now()
		now = at.Sub(o.last) > lull
		o.last = at
		if !now && o.armed == 0 {
			o.arm()
		}
	}
	o.batch.bytes = append(o.batch.bytes, b...)
	o.batch.packets = append(o.batch.packets, addressed{to, len(o.batch.bytes)})
	now = now || len(o.batch.packets) >= batchPackets || len(o.batch.bytes) >= batchBytes
	o.mu.Unlock()
	if now {
		o.flush()
	}
}

// arm has the rest sent. Under mu.
func (o *outbox) arm() {
	o.armed++
	if o.timer == nil {
		o.timer = time.AfterFunc(gather, o.late)
		return
	}
	o.timer.Reset(gather)
}

func (o *outbox) late() {
	o.flush()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.armed--; o.armed == 0 && o.batch != nil && !o.closed {
		o.arm() // begun while the last one was sent
	}
	if o.armed == 0 {
		o.idle.Broadcast()
	}
}

// flush sends what is there.
func (o *outbox) flush() {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	b := o.batch
	o.batch = nil
	o.mu.Unlock()
	if b == nil {
		return
	}
	o.send(b)
	o.sent.add(len(b.packets), len(b.bytes))
	b.bytes, b.packets = b.bytes[:0], b.packets[:0]
	batches.Put(b)
}

// send hands a batch to the kernel, packets of one size to one address together.
func (o *outbox) send(b *batch) {
	start := 0
	for i := 0; i < len(b.packets); {
		n, end := b.run(i, start)
		if n == 1 || !o.cut || !o.join(b.bytes[start:end], b.packets[i].end-start, b.packets[i].to) {
			o.each(b, i, n, start)
		}
		i, start = i+n, end
	}
}

// run counts the packets from i on that can be joined: one address, one size, but for a shorter last one.
func (b *batch) run(i, start int) (n, end int) {
	first := b.packets[i]
	size, end := first.end-start, first.end
	for n = 1; i+n < len(b.packets) && n < joinedPackets; n++ {
		p := b.packets[i+n]
		length := p.end - end
		if p.to != first.to || length > size || p.end-start > joinedBytes {
			break
		}
		end = p.end
		if length < size {
			n++
			break
		}
	}
	return n, end
}

// join sends packets of size bytes with one call; false says to send them one by one.
func (o *outbox) join(b []byte, size int, to netip.AddrPort) bool {
	_, _, err := o.conn.WriteMsgUDPAddrPort(b, o.control.into(size), to)
	if err != nil && cannotCut(err) {
		o.cut = false
	}
	return err == nil
}

// each sends n packets one by one. What the kernel refuses is lost, as on the way.
func (o *outbox) each(b *batch, i, n, start int) {
	for _, p := range b.packets[i : i+n] {
		_, _ = o.conn.WriteToUDPAddrPort(b.bytes[start:p.end], p.to)
		start = p.end
	}
}

// close drops what waits and returns when the timer runs no more. The socket is closed before, which ends a send.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.batch = true, nil
	if o.timer != nil && o.timer.Stop() {
		o.armed--
	}
	for o.armed > 0 {
		o.idle.Wait()
	}
}
