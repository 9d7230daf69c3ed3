package schedule

import "math"

// timer is when a decision is to be made again: at the earliest end of all that is waited for.
type timer struct {
	nowUs   int64
	wakeUs  int64
	waiting bool // for something that the segment at hand needs
}

func newTimer(nowUs int64) timer { return timer{nowUs: nowUs, wakeUs: math.MaxInt64} }

// waits remembers when a wait ends and says whether it still lasts.
func (t *timer) waits(until int64) bool {
	if t.nowUs >= until {
		return false
	}
	t.wakeUs = min(t.wakeUs, until)
	t.waiting = true
	return true
}

// set says whether anything is waited for.
func (t *timer) set() bool { return t.wakeUs < math.MaxInt64 }
