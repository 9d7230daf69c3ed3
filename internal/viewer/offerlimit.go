package viewer

import "time"

const (
	offersAtOnce    = 64 // are heard, and then offersPerSecond: newcomers to a popular viewer are fewer, and what is beyond is dropped
	offersPerSecond = 16
)

// offerLimit bounds the offers that are heard.
type offerLimit struct {
	loop  Loop
	quiet time.Time // when as many offers as ever may be heard at once
}

// hears says whether one more offer is heard now.
func (o *offerLimit) hears() bool {
	now, next := o.loop.Now(), o.quiet.Add(time.Second/offersPerSecond)
	if next.Before(now) {
		next = now.Add(time.Second / offersPerSecond)
	}
	if next.After(now.Add(time.Second / offersPerSecond * offersAtOnce)) {
		return false
	}
	o.quiet = next
	return true
}
