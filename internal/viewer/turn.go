package viewer

import "time"

// longestSleep bounds how long the schedule sleeps.
const longestSleep = 30 * time.Second

// turn is when the schedule decides: once for all that happens in one turn of the loop, and when it asked to be woken.
type turn struct {
	loop         Loop
	decide       func()
	timer        func() // takes back the wake that is set; nil: none is
	due, stopped bool
}

// changed notes that something happened that the schedule may act on.
func (t *turn) changed() {
	if t.due || t.stopped {
		return
	}
	t.due = true
	t.loop.Post(t.run)
}

func (t *turn) run() {
	t.due = false
	if t.stopped {
		return
	}
	t.forget()
	t.decide()
}

// wake has the schedule decide again after some µs.
func (t *turn) wake(us int64) {
	d := min(max(time.Duration(us)*time.Microsecond, time.Millisecond), longestSleep)
	t.timer = t.loop.After(d, func() {
		t.timer = nil
		t.changed()
	})
}

func (t *turn) forget() {
	if t.timer != nil {
		t.timer()
		t.timer = nil
	}
}

func (t *turn) stop() {
	t.stopped = true
	t.forget()
}
