package tracker

import "github.com/leeway-video/leeway/internal/wire/signal"

// maxTurning is how many sockets are told at a time that there is no room. A handshake beyond it is refused without words.
const maxTurning = 64

// Crowded says whether there is not even room for saying so.
func (t *Tracker) Crowded() bool { return t.turning.Load() >= maxTurning }

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
