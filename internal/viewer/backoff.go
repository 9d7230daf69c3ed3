package viewer

import (
	"math/rand/v2"
	"time"
)

const (
	settledAfter = time.Minute // of a session: the back-off starts from the beginning
	backoffBase  = 500 * time.Millisecond
	backoffCap   = 30 * time.Second
	// lostSpread is the time over which sessions come back that were lost without a word: usually many were lost together.
	lostSpread = 6 * time.Second
)

// backoff says how long a session waits before it connects again: exponentially longer with full jitter, and not before a
// moment that the tracker named.
type backoff struct {
	loop      Loop
	random    *rand.Rand
	attempt   int       // exponent
	notBefore time.Time // the tracker asked for it
	readyAt   time.Time // when the last session began
	awokeAt   time.Time // when this side ran again
}

// hold keeps the next attempt off for a while.
func (b *backoff) hold(d time.Duration) {
	if until := b.loop.Now().Add(d); until.After(b.notBefore) {
		b.notBefore = until
	}
}

// next is the wait after a lost socket, at random over spread at least. ready says whether the socket carried a session.
func (b *backoff) next(ready bool, spread time.Duration) time.Duration {
	now := b.loop.Now()
	if ready && now.Sub(b.readyAt) >= settledAfter {
		b.attempt = 0
	}
	jitter := time.Duration(b.random.Float64() * float64(max(spread, min(backoffCap, backoffBase<<b.attempt))))
	b.attempt = min(b.attempt+1, 16)
	return max(jitter, b.notBefore.Sub(now))
}

// soon is the wait where the loss was not the tracker's.
func (b *backoff) soon() time.Duration {
	jitter := time.Duration(b.random.Float64() * float64(backoffBase))
	return max(jitter, b.notBefore.Sub(b.loop.Now()))
}

// awake says whether this side began to run again just now: a session that is lost now was lost for that.
func (b *backoff) awake() bool { return b.loop.Now().Sub(b.awokeAt) < asleepAfter }
