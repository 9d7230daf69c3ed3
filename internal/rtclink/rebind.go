package rtclink

import (
	"net/netip"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"
)

const (
	// checkAfter is how long nothing may come on a settled link before this side asks whether the other one is still there:
	// sessions say something every five seconds (transfer.PingAfter). A NAT that has forgotten its mapping makes another for
	// the question, and the other side learns from where it came that packets have to go there now.
	checkAfter = 8 * time.Second
	// checkEvery is how often it asks then.
	checkEvery = time.Second
	// goneAfter is how long nothing may have come before an address from which the other side asks may take the old one's place: it
	// asks from elsewhere because it has moved.
	goneAfter = time.Second
	// reflexivePriority is that of an address that was not signaled (RFC 8445, 5.1.2.1).
	reflexivePriority = 110<<24 | 65535<<8 | 255
)

// question is a check of a settled link's own that may be answered.
type question struct {
	id [stun.TransactionIDSize]byte
	to netip.AddrPort
}

// longAgo is where steady counts from: 0 is before all that is heard.
var longAgo = time.Now().Add(-time.Hour)

// steady is a moment as ns of a clock that is neither set nor goes on while the machine sleeps. By a clock that is, all links on which
// nothing comes for a few seconds would end when it is put forward by LostAfter, or when the machine wakes up.
func steady(at time.Time) int64 { return int64(at.Sub(longAgo)) }

// silent is how long nothing has come that is the other side's.
func (c *consent) silent() time.Duration { return time.Duration(steady(time.Now()) - c.heard.Load()) }

// ask sends a check to an address of the other side. A controlling side nominates by it.
func (c *consent) ask(p *port, to netip.AddrPort) {
	setters := []stun.Setter{
		stun.TransactionID, stun.BindingRequest, stun.NewUsername(c.request), ice.PriorityAttr(reflexivePriority),
	}
	if c.controlled {
		setters = append(setters, ice.AttrControlled(1))
	} else {
		setters = append(setters, ice.AttrControlling(1), ice.UseCandidate())
	}
	m, err := stun.Build(append(setters, stun.NewShortTermIntegrity(c.theirs), stun.Fingerprint)...)
	if err != nil {
		return
	}
	slot := &c.asked
	if to != *c.to.Load() {
		slot = &c.tried
	}
	slot.Store(&question{m.TransactionID, to})
	p.mux.write(p, m.Raw, to)
}

// answered takes the answer to a check: the other side is there. A controlling side goes where the check went.
func (c *consent) answered(p *port, m *stun.Message, from netip.AddrPort) {
	slot := &c.asked
	if q := c.tried.Load(); q != nil && q.id == m.TransactionID {
		slot = &c.tried
	}
	q := slot.Load()
	if q == nil || q.id != m.TransactionID || q.to != from || stun.NewShortTermIntegrity(c.theirs).Check(m) != nil {
		return
	}
	slot.Store(nil)
	c.heard.Store(steady(time.Now()))
	if !c.controlled && from != *c.to.Load() {
		c.follow(p, from)
	}
}

// follow has packets go to another address of the other side from now on.
func (c *consent) follow(p *port, to netip.AddrPort) {
	c.port.Store(p)
	c.to.Store(&to)
	c.moved()
}
