package tracker

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// shedAbove is from which share of its sockets on a tracker sheds sessions, permille.
	shedAbove = 900
	// shedShare of its sessions goes at a time at most, permille: what others have is known a beat later.
	shedShare = 50
	// shedSpread is the time over which those that were sent away come back.
	shedSpread = 5 * time.Second
)

// maxTurning is how many sockets are told at a time that there is no room. A handshake beyond it is refused without words.
const maxTurning = 64

// Crowded says whether there is not even room for saying so; or whether viewers are being handed over, for a handshake that
// is refused goes to another tracker where a balancer or a browser has several, and one that was accepted does not.
func (t *Tracker) Crowded() bool { return t.turning.Load() >= maxTurning || t.handing.Load() }

// budget is how many sockets an address may begin, and since when that is so.
type budget struct {
	left float64
	at   time.Time
}

// wideShare is how many times what one address may begin and hold is for the /48 around one in IPv6: who rents one has 65,536
// networks, and a provider may have as many customers in it.
const wideShare = 16

// mostConnects is what an address may begin at once; a session that is ended for what it did costs offence of those.
func (t *Tracker) mostConnects(of *address) float64 {
	return float64(5 * of.share * t.cfg.ConnectsPerSecond)
}
func (t *Tracker) offence() float64 { return float64(t.cfg.ConnectsPerSecond) }

// connects is the budget of an address now. Under mu.
func (t *Tracker) connects(of *address, now time.Time) float64 {
	b := &of.connects
	if passed := now.Sub(b.at); passed > 0 {
		b.left, b.at = min(t.mostConnects(of), b.left+passed.Seconds()*float64(of.share*t.cfg.ConnectsPerSecond)), now
	}
	return b.left
}

// addressOf knows an address from now on; nil says that there are too many. Under mu.
func (t *Tracker) addressOf(a netip.Addr, now time.Time) *address {
	of := t.networkOf(access.Network(a), 1, now)
	if around := access.Wide(a); of != nil && of.sockets == 0 && around.IsValid() { // with sockets, the one it has is known still
		if of.wide = t.networkOf(around, wideShare, now); of.wide == nil {
			return nil
		}
	}
	return of
}

func (t *Tracker) networkOf(p netip.Prefix, share int, now time.Time) *address {
	of := t.addresses[p]
	if of == nil && len(t.addresses) < 4*t.cfg.MaxSessions {
		of = &address{share: share}
		of.connects = budget{t.mostConnects(of), now}
		t.addresses[p] = of
	}
	return of
}

// begins takes a place from the budgets of an address, if all have one. Under mu.
func (t *Tracker) begins(of *address, now time.Time) bool {
	for n := of; n != nil; n = n.wide {
		if t.connects(n, now) < 1 {
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
func (t *Tracker) Knock(a netip.Addr) bool {
	now := t.cfg.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.addressOf(a, now)
	return of != nil && t.begins(of, now)
}

// Entered gives the place back: the request has come, and a socket that it asks for takes its own.
func (t *Tracker) Entered(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := t.addresses[access.Network(a)]; n != nil; n = n.wide {
		n.connects.left = min(t.mostConnects(n), n.connects.left+1)
	}
}

// offended has an address pay for a session that was ended for what it did: who comes back at once to do it again would cost
// a handshake each time. The debt is that of one second at most.
func (t *Tracker) offended(of *address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := of; n != nil; n = n.wide {
		n.connects.left = max(-t.offence(), n.connects.left-t.offence())
	}
}

// turned receives on behalf of a socket that was turned away.
type turned struct{ t *Tracker }

func (turned) Receive([]byte) bool { return false }
func (r turned) End(error)         { r.t.turning.Add(-1) }

// turnAway ends a socket for which there is no room; with words, where the protocol has some.
func (t *Tracker) turnAway(c Conn, words bool) Receiver {
	t.turning.Add(1)
	e, code := signal.Error{
		Code: "overloaded", Message: "This tracker takes no further connections now.", Hint: "Try again later.", RetryAfterMs: 5000,
	}, closeOverloaded
	if t.draining.Load() {
		e = signal.Error{Code: "draining", Message: "This tracker is going away.", Hint: "Reconnect.", RetryAfterMs: 1000}
		code = closeDraining
	}
	if words {
		t.cfg.Metrics.Add(defErrors, 1, e.Code)
		if b, err := signal.Encode(&e); err == nil {
			_ = c.Write(b)
		}
	}
	c.Close(code, e.Code)
	return turned{t}
}

// Room is how many connections to expect: sockets, those that are told that there is no room, and who asks for the script.
func (t *Tracker) Room() int { return t.cfg.MaxSessions + t.cfg.MaxSessions/4 + maxTurning }

// shed sends a share of the sessions away, each to come back after a time of its own, while there are nearly as many sockets
// as may be and other trackers have fewer. It is called once a beat.
func (t *Tracker) shed() {
	others, theirs := t.roster.load()
	t.mu.Lock()
	sockets, mine := t.sockets, len(t.sessions)
	t.mu.Unlock()
	if others == 0 || t.draining.Load() || sockets < max(1, t.cfg.MaxSessions*shedAbove/1000) {
		return
	}
	// Half of what is above the mean at a time: the others' own shedding is not known here.
	mean := (mine + theirs) / (others + 1)
	n := min((mine-mean+1)/2, max(1, mine*shedShare/1000))
	if n <= 0 {
		return
	}
	for _, s := range t.some(n) {
		s.sendAway(rand.N(shedSpread))
		t.cfg.Metrics.Add(defShed, 1)
	}
}

// some are up to n sessions, any.
func (t *Tracker) some(n int) []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*session, 0, n)
	for _, s := range t.sessions {
		if len(all) == n {
			break
		}
		all = append(all, s)
	}
	return all
}
