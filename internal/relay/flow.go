package relay

import (
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Flow is one allocation's traffic.
type Flow struct {
	relay  *Relay
	user   string
	rate   *rate.Limiter // bytes/s; nil: unlimited
	closed atomic.Bool
}

// Send says whether n bytes of the client may go to a peer. own says that it is on an address of this relay, open that it is
// the relayed address of an allocation: nothing is asked of its range then.
func (f *Flow) Send(to netip.AddrPort, own, open bool, n int) bool {
	if !open && !f.relay.reaches(to, own) {
		f.relay.traffic.dropped[2].Add(1)
		return false
	}
	return f.pass(0, n)
}

// Receive says whether n bytes of a peer may go to the client.
func (f *Flow) Receive(n int) bool { return f.pass(1, n) }

// pass polices; what is not let through is dropped, for a queue here would only hide from the ends how fast the way is.
func (f *Flow) pass(direction, n int) bool {
	if f.rate != nil || f.relay.rate != nil {
		now := f.relay.cfg.Now()
		if !allows(f.rate, now, n) {
			f.relay.traffic.dropped[0].Add(1)
			return false
		}
		if !allows(f.relay.rate, now, n) {
			f.relay.traffic.dropped[1].Add(1)
			return false
		}
	}
	f.relay.traffic.bytes[direction].Add(int64(n))
	f.relay.traffic.packets[direction].Add(1)
	return true
}

func allows(l *rate.Limiter, now time.Time, n int) bool { return l == nil || l.AllowN(now, n) }

// Close ends the allocation.
func (f *Flow) Close() {
	if f.closed.Swap(true) {
		return
	}
	r := f.relay
	r.mu.Lock()
	r.allocations--
	change(r.users, f.user, -1)
	r.mu.Unlock()
	r.cfg.Metrics.Add(mAllocations, -1)
}
