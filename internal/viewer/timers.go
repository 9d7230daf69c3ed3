package viewer

import "time"

// timers are a part's timers by name: setting one again stops the one before.
type timers struct {
	loop  Loop
	stops map[string]func()
}

func newTimers(loop Loop) timers { return timers{loop: loop, stops: map[string]func(){}} }

func (t *timers) set(name string, d time.Duration, f func()) {
	t.clear(name)
	t.stops[name] = t.loop.After(d, func() {
		delete(t.stops, name)
		f()
	})
}

// isSet says whether a timer has yet to go off.
func (t *timers) isSet(name string) bool { return t.stops[name] != nil }

func (t *timers) clear(names ...string) {
	for _, name := range names {
		if stop := t.stops[name]; stop != nil {
			stop()
			delete(t.stops, name)
		}
	}
}
