package viewer

import (
	"math/rand/v2"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	tokenBackoff = 2 * time.Second // the first, for another join token
	tokenTries   = 5               // of one that the tracker takes, for one session after the other
)

// joinTokens are the join tokens of a session (spec/access.md): the tracker says how long one is good, and another is shown
// before that on the open socket.
type joinTokens struct {
	loop   Loop
	random *rand.Rand
	source func() string                   // gives join tokens; nil: none
	after  func(d time.Duration, f func()) // sets the session's timer, which is that of the next token while there is a session
	show   func(token string)              // on the open socket

	inHand   string
	end      int64     // of the token in hand, ms in the tracker's time; 0: none is asked for
	renewAt  time.Time // until when it is shown again; then another is asked for
	renewals int       // tries without success
}

// current is the token to greet the tracker with.
func (t *joinTokens) current() string {
	if t.source != nil && !t.loop.Now().Before(t.renewAt) {
		t.inHand = t.source()
	}
	return t.inHand
}

// welcomed begins a session whose token is good until a moment of the tracker's time.
func (t *joinTokens) welcomed(endMs int64, offset time.Duration) {
	t.end, t.renewAt, t.renewals = 0, time.Time{}, 0
	t.granted(endMs, offset)
}

// granted is told that the token in hand is good until a moment of the tracker's time. A token that brings no more time is
// as good as none.
func (t *joinTokens) granted(endMs int64, offset time.Duration) {
	if t.source == nil || endMs <= t.end {
		return
	}
	now := t.loop.Now()
	left := time.UnixMilli(endMs).Sub(now.Add(offset))
	in := time.Duration(float64(left) * (0.5 + t.random.Float64()/4)) // viewers that came together do not renew together
	t.end, t.renewAt, t.renewals = endMs, now.Add(in), 0
	t.after(in, t.renew)
}

// renew shows another token, again and again until the tracker grants it or ends the session.
func (t *joinTokens) renew() {
	wait := min(backoffCap, tokenBackoff<<min(t.renewals, 8))
	t.renewals++
	t.after(time.Duration(float64(wait)*(0.5+t.random.Float64()/2)), t.renew)
	if token := t.source(); token != "" {
		t.inHand = token
		t.show(token)
	}
}

// expired asks for another token at once if the one in hand is what the tracker refuses on the open socket. A refusal with
// a request's number is of the token that was shown just now.
func (t *joinTokens) expired(m *signal.Error) {
	if m.Code == "token-expired" && m.Request == 0 {
		t.after(0, t.renew)
	}
}

// another says whether the next session may show another token, after so many attempts.
func (t *joinTokens) another(attempt int) bool {
	if attempt >= tokenTries-1 && t.renewAt.IsZero() {
		return false
	}
	t.renewAt = time.Time{}
	return true
}
