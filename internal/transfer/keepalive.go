package transfer

import "time"

// keepalive says when a side of a link pings, and when the other side counts as gone. It counts rounds and not time: a side whose own
// timers stood still then blames no peer for messages that it could not hear. Its owner guards it.
type keepalive struct {
	ready bool      // the other hello is here
	round time.Time // when this round began; zero before the link is open
	spoke bool      // something was sent in this round
	quiet int       // rounds without a message, this one included
}

// meet notes the other side's hello.
func (k *keepalive) meet() { k.ready, k.quiet = true, 0 }

// hear notes that the other side lives; false before its hello, when nothing counts.
func (k *keepalive) hear() bool {
	if k.ready {
		k.quiet = 0
	}
	return k.ready
}

// tick says whether the link is over, or this side pings.
func (k *keepalive) tick(now time.Time) (over, ping bool) {
	if k.round.IsZero() || now.Sub(k.round) < PingAfter {
		return false, false
	}
	k.round = now
	k.quiet++
	over = k.quiet >= SilentRounds || !k.ready && k.quiet >= HelloRounds
	ping = !over && k.ready && (k.quiet > 1 || !k.spoke)
	k.spoke = false
	return over, ping
}
