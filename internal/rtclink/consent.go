package rtclink

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"
)

// settleEvery is how long an open link waits before it lets its ICE agent go, and again as long as none of its pairs of
// addresses is chosen. Soon, so that the links that are made next have the memory.
const settleEvery = 50 * time.Millisecond

// consent is what is left of ICE on a settled link: it answers the other side's checks (RFC 7675), follows it to another of
// its addresses if it nominates one, knows when something last came, and asks when nothing does (rebind.go). Pion's agent
// would keep four goroutines and half of an idle link's memory for it.
type consent struct {
	ufrag      string // of this side
	user       string // of the requests that are ours to answer
	password   string // their key
	request    string // the user of requests to the other side
	theirs     string // their key
	controlled bool   // the other side nominates
	moved      func()

	port  atomic.Pointer[port]           // that packets go out by
	to    atomic.Pointer[netip.AddrPort] // where to
	heard atomic.Int64                   // when something came that is the other side's, of steady
	asked atomic.Pointer[question]       // this side's latest check, while it may be answered
	tried atomic.Pointer[question]       // the same, of another address than to: neither takes the other back

	mu     sync.Mutex
	relays []netip.AddrPort // where the other side says that its relays are
}

// mostRelays is how many addresses of relays are kept of another side.
const mostRelays = 8

// learn takes an address of the other side, which may be signaled late: the one that packets go to, now or after the other
// side has nominated another, may turn out to be a relay's.
func (c *consent) learn(candidate ice.Candidate) {
	addr, err := netip.ParseAddr(candidate.Address())
	if err != nil || candidate.Type() != ice.CandidateTypeRelay {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := netip.AddrPortFrom(addr.Unmap(), uint16(candidate.Port()))
	if len(c.relays) < mostRelays && !slices.Contains(c.relays, at) {
		c.relays = append(c.relays, at)
	}
}

// learnAll takes what an agent knows of the other side.
func (c *consent) learnAll(a *ice.Agent) {
	known, _ := a.GetRemoteCandidates()
	for _, candidate := range known {
		c.learn(candidate)
	}
}

// relayed says whether packets go to a relay of the other side.
func (c *consent) relayed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.relays, *c.to.Load())
}

// chosen is the address of the other side in the agent's pair; none says that none is chosen yet, err that this side's half of
// it is a relay or a server's socket, which the agent has to keep up. The other side's relay is the other side's to keep up.
func chosen(a *ice.Agent) (to netip.AddrPort, none bool, err error) {
	pair, err := a.GetSelectedCandidatePair()
	if err != nil || pair == nil {
		return netip.AddrPort{}, err == nil, err
	}
	if pair.Local.Type() != ice.CandidateTypeHost {
		return netip.AddrPort{}, false, errServed
	}
	addr, err := netip.ParseAddr(pair.Remote.Address())
	return netip.AddrPortFrom(addr.Unmap(), uint16(pair.Remote.Port())), false, err
}

var errServed = errors.New("rtclink: the pair needs a server")

// newConsent takes over from an agent whose link's other side is at to. It has a port once it is given one.
func newConsent(a *ice.Agent, controlled bool, to netip.AddrPort) (*consent, error) {
	own, password, err := a.GetLocalUserCredentials()
	if err != nil {
		return nil, err
	}
	other, theirs, err := a.GetRemoteUserCredentials()
	if err != nil {
		return nil, err
	}
	c := &consent{
		ufrag: own, user: own + ":" + other, password: password, request: other + ":" + own, theirs: theirs,
		controlled: controlled, moved: func() {},
	}
	c.to.Store(&to)
	c.heard.Store(steady(time.Now()))
	return c, nil
}

// Write sends a packet to where the other side is.
func (c *consent) Write(b []byte) (int, error) {
	p := c.port.Load()
	p.mux.write(p, b, *c.to.Load())
	return len(b), nil
}

// take deals with a STUN packet that came by p.
func (c *consent) take(p *port, b []byte, from netip.AddrPort) {
	m := &stun.Message{Raw: bytes.Clone(b)}
	if m.Decode() != nil {
		return
	}
	if m.Type == stun.BindingSuccess {
		c.answered(p, m, from)
		return
	}
	if m.Type != stun.BindingRequest {
		return
	}
	user, err := m.Get(stun.AttrUsername)
	key := stun.NewShortTermIntegrity(c.password)
	if err != nil || string(user) != c.user || key.Check(m) != nil || c.conflicts(m) {
		return
	}
	elsewhere := from != *c.to.Load()
	// A controlled side may send a check from another address while nothing comes from its old address any more. The new address counts
	// only once the side has answered from it: any host that has seen one check could send it again.
	lost := elsewhere && !c.controlled && c.silent() >= goneAfter
	if !lost {
		c.heard.Store(steady(time.Now()))
	}
	answer, err := stun.Build(m, stun.BindingSuccess, &stun.XORMappedAddress{IP: from.Addr().AsSlice(), Port: int(from.Port())}, key, stun.Fingerprint)
	if err != nil {
		return
	}
	p.mux.write(p, answer.Raw, from)
	switch {
	case lost:
		c.ask(p, from)
	case elsewhere && c.controlled && m.Contains(stun.AttrUseCandidate):
		c.follow(p, from)
	}
}

// conflicts says whether the other side believes to have this side's role, which is long settled.
func (c *consent) conflicts(m *stun.Message) bool {
	if c.controlled {
		return m.Contains(stun.AttrICEControlled)
	}
	return m.Contains(stun.AttrICEControlling)
}
