package rtclink

import (
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// Bounds of what a guarded host sends because a stranger names an address (spec/peer-protocol.md, Connectivity checks).
const (
	maxCandidates = 16 // addresses of a link that are checked
	maxPorts      = 2  // of one address
	linkChecks    = 32 // checks of a link that nothing was received for
	targetRate    = 10 // such checks a second to one address, all links together
	targetBurst   = 40
	totalRate     = 1000 // such checks a second in all
	maxTargets    = 1 << 14
	maxCredit     = 1024 // bytes received from an address that checks may be sent for
	maxCreditors  = maxCandidates
)

// Reasons for which a guarded host refuses a candidate of the other side; another one is the class of the address.
const (
	RefusedNumber = "number" // the link has as many as it may
	RefusedPorts  = "ports"  // the address has
)

// Reasons for which a guarded host does not send a check.
const (
	DroppedLink    = "link"    // the link has sent as many as it may to addresses that say nothing
	DroppedAddress = "address" // the address has had as many as it may
	DroppedTotal   = "total"   // all links together have sent as many as they may
)

// Guard bounds what a host sends to addresses that strangers name. A host that offers and answers among equals needs none: both ends
// have to send first for their NATs to open.
type Guard struct {
	Reach access.Reach // candidates obey it
	// Refused and Dropped are told of candidates and checks, with a reason.
	Refused, Dropped func(reason string)

	mu      sync.Mutex
	targets access.Buckets[netip.Prefix] // guarded by mu
	total   access.Buckets[struct{}]     // guarded by mu
}

func (g *Guard) complete() {
	g.targets = access.Buckets[netip.Prefix]{Rate: targetRate, Burst: targetBurst, Most: maxTargets}
	g.total = access.Buckets[struct{}]{Rate: totalRate, Burst: totalRate, Most: 1}
	if g.Refused == nil {
		g.Refused = func(string) {}
	}
	if g.Dropped == nil {
		g.Dropped = func(string) {}
	}
}

// takes says whether a check may go to an address that has sent nothing.
func (g *Guard) takes(to netip.Addr, now time.Time) (reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.targets.Take(access.Network(to), 1, now):
		return DroppedAddress
	case !g.total.Take(struct{}{}, 1, now):
		return DroppedTotal
	}
	return ""
}

// admission is what a link has taken of the other side's candidates.
type admission struct {
	guard *Guard // nil: all are taken

	mu    sync.Mutex
	ports map[netip.Addr][]uint16 // guarded by mu
	taken int                     // guarded by mu
}

// admits says whether a candidate may be checked.
func (a *admission) admits(c sdp.Candidate) bool {
	if a.guard == nil || c.Name != "" {
		return true // names are not looked up
	}
	reason := a.guard.Reach.RefusesPort(netip.AddrPortFrom(c.Addr, c.Port))
	if reason == "" {
		reason = a.take(c)
	}
	if reason != "" {
		a.guard.Refused(reason)
	}
	return reason == ""
}

func (a *admission) take(c sdp.Candidate) (reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ports := a.ports[c.Addr]
	for _, p := range ports {
		if p == c.Port {
			return "" // the agent knows it
		}
	}
	switch {
	case a.taken >= maxCandidates:
		return RefusedNumber
	case len(ports) >= maxPorts:
		return RefusedPorts
	}
	if a.ports == nil {
		a.ports = map[netip.Addr][]uint16{}
	}
	a.ports[c.Addr] = append(ports, c.Port)
	a.taken++
	return ""
}

// ledger is what a port has received from addresses and may send them checks for, byte for byte, and how many checks it has sent to
// addresses that nothing came from.
type ledger struct {
	credits []credit
	next    int // credit that makes room
	unpaid  int
}

type credit struct {
	from  netip.AddrPort
	bytes int
}

// receive notes a packet.
func (l *ledger) receive(from netip.AddrPort, n int) {
	for i := range l.credits {
		if c := &l.credits[i]; c.from == from {
			c.bytes = min(maxCredit, c.bytes+n)
			return
		}
	}
	if len(l.credits) < maxCreditors {
		l.credits = append(l.credits, credit{from, min(maxCredit, n)})
		return
	}
	l.credits[l.next] = credit{from, min(maxCredit, n)}
	l.next = (l.next + 1) % maxCreditors
}

// pays says whether a check of n bytes is paid for by what came from where it goes.
func (l *ledger) pays(to netip.AddrPort, n int) bool {
	for i := range l.credits {
		if c := &l.credits[i]; c.from == to && c.bytes >= n {
			c.bytes -= n
			return true
		}
	}
	return false
}
