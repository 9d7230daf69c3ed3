package tracker

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// maxTurning is how many sockets are told at a time that there is no room. A handshake beyond it is refused without words.
const maxTurning = 64

// wideShare is how many times what one address may begin and hold is for the /48 around one in IPv6. A customer that rents a /48
// has 65,536 networks, and a provider may have as many customers in it.
const wideShare = 16

// admission decides which sockets this tracker takes, by their number and by where they come from, and counts those that it has.
type admission struct {
	limits   *Config
	draining atomic.Bool    // set once, under mu
	handing  atomic.Bool    // viewers over, to other trackers
	turning  atomic.Int64   // sockets that are being told that there is no room
	open     sync.WaitGroup // sockets; none is added once draining is set

	mu        sync.Mutex
	sockets   int                       // guarded by mu: being served, those without a session yet among them
	addresses map[netip.Prefix]*address // guarded by mu: by network, and in IPv6 by the wider one too; the ticker removes the idle
}

// keptPart is which part of a connection's place is not given back when its request comes. A client that asks for anything over a new
// connection each time would else have hands shaken with it without an end.
const keptPart = 20

// address is what comes from one network: an address, or a /64 in IPv6 and beside it the /48 around that. Guarded by admission.mu.
type address struct {
	connects budget
	sockets  int
	share    int      // of budgets: how many times what one address may
	wide     *address // around it; nil in IPv4, and for one that is wide itself
}

// budget is how many sockets an address may begin, and since when that is so.
type budget struct {
	left float64
	at   time.Time
}

func newAdmission(cfg *Config) *admission {
	return &admission{limits: cfg, addresses: map[netip.Prefix]*address{}}
}

// Ready says whether new viewers are welcome, and if not why.
func (a *admission) Ready() error {
	if a.draining.Load() {
		return errors.New("tracker: draining")
	}
	return nil
}

// drain refuses all sockets from now on. It says whether it was called for the first time.
func (a *admission) drain() (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.draining.Swap(true)
}

// Crowded says whether a handshake is to be refused without words: there is not even room for saying that there is none, or viewers
// are being handed over. A client that is refused goes to another tracker where a balancer or a browser has several; one that was
// accepted does not.
func (a *admission) Crowded() bool { return a.turning.Load() >= maxTurning || a.handing.Load() }

// Room is how many connections to expect: sockets, those that are told that there is no room, and requests for the script.
func (a *admission) Room() int { return a.limits.MaxSessions + a.limits.MaxSessions/4 + maxTurning }

// AllowsOrigin says whether any site takes pages of this origin; which one is settled by hello.
func (a *admission) AllowsOrigin(origin string) bool {
	return slices.ContainsFunc(a.limits.Sites, func(s *configured.Site) bool { return s.AllowsOrigin(origin) })
}

// Rejected counts a handshake that was refused before there was a session: reason is origin, version or token.
func (a *admission) Rejected(reason string) { a.limits.Metrics.Add(defRejected, 1, reason) }

// Admit takes a socket in, or turns it away; with words, where its protocol has some. Then socket is nil, and away receives on its
// behalf.
func (a *admission) Admit(c Conn, v Visitor, words bool) (socket *Socket, away Receiver) {
	of, reason := a.admit(v.Address)
	if of == nil {
		a.Rejected(reason)
		return nil, a.TurnAway(c, words)
	}
	return &Socket{c, a, of}, nil
}

// admit says whether one more socket may come from an address, and if not under which reason it is counted. What it let in
// ends with leave.
func (a *admission) admit(from netip.Addr) (of *address, reason string) {
	now := a.limits.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining.Load() || a.sockets >= a.limits.MaxSessions {
		return nil, "total"
	}
	if of = a.addressOf(from, now); of == nil {
		return nil, "total"
	}
	if !a.begins(of, now) {
		return nil, "rate"
	}
	for n := of; n != nil; n = n.wide {
		if n.sockets >= a.mostSockets(n) {
			return nil, "rate"
		}
	}
	for n := of; n != nil; n = n.wide {
		n.sockets++
	}
	a.sockets++
	a.open.Add(1)
	return of, ""
}

func (a *admission) leave(of *address) {
	a.mu.Lock()
	for n := of; n != nil; n = n.wide {
		n.sockets--
	}
	a.sockets--
	a.mu.Unlock()
	a.open.Done()
}

func (a *admission) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sockets
}

// forget drops the addresses that have no sockets and have begun none for so long that it makes no difference.
func (a *admission) forget(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for network, of := range a.addresses {
		if of.sockets == 0 && a.connects(of, now) >= a.mostConnects(of) {
			delete(a.addresses, network)
		}
	}
}

// mostSockets is what an address may hold. Half of all are for others than one /48, unless a single address may have more than that.
func (a *admission) mostSockets(of *address) int {
	most := of.share * a.limits.MaxPerAddress
	if of.share == 1 {
		return most
	}
	return min(most, max(a.limits.MaxPerAddress, a.limits.MaxSessions/2))
}

// mostConnects is what an address may begin at once; a session that is ended for what it did costs offence of those.
func (a *admission) mostConnects(of *address) float64 {
	return float64(5 * of.share * a.limits.ConnectsPerSecond)
}
func (a *admission) offence() float64 { return float64(a.limits.ConnectsPerSecond) }

// connects is the budget of an address now. Under mu.
func (a *admission) connects(of *address, now time.Time) float64 {
	b := &of.connects
	if passed := now.Sub(b.at); passed > 0 {
		b.left, b.at = min(a.mostConnects(of), b.left+passed.Seconds()*float64(of.share*a.limits.ConnectsPerSecond)), now
	}
	return b.left
}

// addressOf knows an address from now on. In IPv6 it is the network around it where that may begin none now, or there are too many to know
// one more: what begins nothing is not worth being remembered. nil says that there are too many. Under mu.
func (a *admission) addressOf(from netip.Addr, now time.Time) *address {
	network, around := access.Network(from), access.Wide(from)
	of := a.addresses[network]
	if of != nil && of.sockets > 0 || !around.IsValid() { // with sockets, the one around it is known still
		return a.networkOf(network, 1, now)
	}
	wide := a.networkOf(around, wideShare, now)
	if wide == nil || of == nil && a.connects(wide, now) < 1 {
		return wide
	}
	if of = a.networkOf(network, 1, now); of == nil {
		return wide
	}
	of.wide = wide
	return of
}

func (a *admission) networkOf(p netip.Prefix, share int, now time.Time) *address {
	of := a.addresses[p]
	if of == nil && len(a.addresses) < 4*a.limits.MaxSessions {
		of = &address{share: share}
		of.connects = budget{a.mostConnects(of), now}
		a.addresses[p] = of
	}
	return of
}

// begins takes a place from the budgets of an address, if all have one. Under mu.
func (a *admission) begins(of *address, now time.Time) bool {
	for n := of; n != nil; n = n.wide {
		if a.connects(n, now) < 1 {
			return false
		}
	}
	for n := of; n != nil; n = n.wide {
		n.connects.left--
	}
	return true
}

// Knock takes a place from an address's budget before hands are shaken with it, which costs more than all that its sockets
// may say in a second; false is for an address that has none left.
func (a *admission) Knock(from netip.Addr) bool {
	now := a.limits.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.addressOf(from, now)
	return of != nil && a.begins(of, now)
}

// Entered gives the place back, but for a part: the request has come, and a socket that it asks for takes its own.
func (a *admission) Entered(from netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.addresses[access.Network(from)]
	if around := access.Wide(from); of == nil && around.IsValid() {
		of = a.addresses[around]
	}
	for n := of; n != nil; n = n.wide {
		n.connects.left = min(a.mostConnects(n), n.connects.left+1-1.0/keptPart)
	}
}

// offended has an address pay for a session that was ended for what it did: a client that comes back at once to do it again would
// cost a handshake each time. The debt is that of one second at most.
func (a *admission) offended(of *address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := of; n != nil; n = n.wide {
		n.connects.left = max(-a.offence(), n.connects.left-a.offence())
	}
}

// turned receives on behalf of a socket that was turned away.
type turned struct{ a *admission }

func (turned) Receive([]byte) bool { return false }
func (r turned) End(error)         { r.a.turning.Add(-1) }

// TurnAway ends a socket for which there is no room; with words, where the protocol has some.
func (a *admission) TurnAway(c Conn, words bool) Receiver {
	a.turning.Add(1)
	e, code := signal.Error{
		Code: "overloaded", Message: "This tracker takes no further connections now.", Hint: "Try again later.", RetryAfterMs: 5000,
	}, closeOverloaded
	if a.draining.Load() {
		e = signal.Error{Code: "draining", Message: "This tracker is going away.", Hint: "Reconnect.", RetryAfterMs: 1000}
		code = closeDraining
	}
	if words {
		a.limits.Metrics.Add(defErrors, 1, e.Code)
		if b, err := signal.Encode(&e); err == nil {
			_ = c.Write(b)
		}
	}
	c.Close(code, e.Code)
	return turned{a}
}
