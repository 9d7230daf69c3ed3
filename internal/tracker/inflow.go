package tracker

import (
	"time"
)

// allowance is what may be said: bytes and messages a second, and of each as much at once as if nothing had been said before.
type allowance struct{ bytes, bytesAtOnce, messages, messagesAtOnce int64 }

// Allowances of signals (spec/tracker-protocol.md, "Limits of signals"), at the default of 50 messages a second and session; they
// grow with it. The first two are charged where the sender's socket is, the others where the receiver's is.
var (
	// fromSession is what one session may say to all others.
	fromSession = allowance{256 << 10, 2 << 20, 1 << 20, 1 << 20} // the rate of its messages has a limit of its own
	// toPeer is what one session may say to one other: at once the largest answer and its candidates, or three attempts.
	toPeer = allowance{12 << 10, 96 << 10, 16, 200}
	// fromNetwork is what the sessions of one subnet together may say to one session: at once what 50 newcomers behind one
	// address do.
	fromNetwork = allowance{24 << 10, 320 << 10, 64, 1000}
	// toSession is what all may say to one session, in any 10 s less than 1 Mbit/s.
	toSession = allowance{85 << 10, 352 << 10, 256, 1500}
)

// signalRefusals is the closed set of allowances that a signal can exceed.
var signalRefusals = []string{"session", "pair", "network", "receiver"}

// maxNetworks bounds the subnets whose allowances a session keeps. Beyond it subnets share one.
const maxNetworks = 32

// at is the allowance where a session may send so many messages a second.
func (a allowance) at(messagesPerSecond int) *allowance {
	times := max(1, int64(messagesPerSecond)/defaultMessages)
	a.bytes *= times
	a.messages *= times
	return &a
}

// spent is what has been said of an allowance: for bytes and for messages, the time at which as much as ever may be said at
// once, in ns of Config.Steady.
type spent struct{ bytes, messages int64 }

// fits says whether a message is within the allowance.
func (s *spent) fits(of *allowance, size int, now int64) bool {
	return max(s.bytes, now)+int64(size)*int64(time.Second)/of.bytes <= now+of.bytesAtOnce*int64(time.Second)/of.bytes &&
		max(s.messages, now)+int64(time.Second)/of.messages <= now+of.messagesAtOnce*int64(time.Second)/of.messages
}

// charge takes a message from the allowance.
func (s *spent) charge(of *allowance, size int, now int64) {
	s.bytes = max(s.bytes, now) + int64(size)*int64(time.Second)/of.bytes
	s.messages = max(s.messages, now) + int64(time.Second)/of.messages
}

// Inflow is what others said to one session, or to one socket of an extension. The zero value has heard nothing. It is not locked.
type Inflow struct {
	all      spent
	networks map[string]*spent // by the keyed hash of the subnet; what does not fit in shares the one of ""
}

// Take charges a message of a subnet at a time of Config.Steady, or says which allowance it exceeds.
func (f *Inflow) Take(network string, size, messagesPerSecond int, now int64) (exceeded string) {
	of, one, all := f.network(network, now), fromNetwork.at(messagesPerSecond), toSession.at(messagesPerSecond)
	switch {
	case !of.fits(one, size, now):
		return "network"
	case !f.all.fits(all, size, now):
		return "receiver"
	}
	of.charge(one, size, now)
	f.all.charge(all, size, now)
	return ""
}

func (f *Inflow) network(name string, now int64) *spent {
	if of := f.networks[name]; of != nil {
		return of
	}
	if len(f.networks) >= maxNetworks {
		for n, of := range f.networks {
			if of.bytes <= now && of.messages <= now {
				delete(f.networks, n)
			}
		}
	}
	if len(f.networks) >= maxNetworks {
		name = ""
		if of := f.networks[name]; of != nil {
			return of
		}
	}
	if f.networks == nil {
		f.networks = map[string]*spent{}
	}
	of := &spent{}
	f.networks[name] = of
	return of
}
