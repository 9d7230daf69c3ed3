package netstat

// A window is a mean over looks at a connection (spec/probe.md, Window).
const (
	windowTime  = 1_000_000 // µs of them at least
	windowLooks = 4         // of them at least
)

// InFlight is the largest window that looks at a connection saw in use for a second, in bytes. One look is no measure: a burst that was
// seen is no window, and the kernel counts a receiver's round trip in whole milliseconds.
func InFlight(d Direction, looks []TCPInfo) float64 {
	most, whole := 0.0, true
	for n := range looks {
		for k := n - windowLooks + 1; k >= 0; k-- {
			if looks[n].ElapsedTime-looks[k].ElapsedTime >= windowTime {
				most, whole = max(most, used(d, looks[k:n+1])), false
				break
			}
		}
	}
	if whole { // a short test
		return used(d, looks)
	}
	return most
}

// used is the mean of the window in some looks: of what was under way, as the sender saw it; or by Little's law, rate by round trip.
func used(d Direction, looks []TCPInfo) float64 {
	n, sum := 0, 0.0
	for _, i := range looks {
		v := i.Unacked * i.SndMSS
		if d == Up {
			v = i.RcvRTT
		}
		if v > 0 {
			n, sum = n+1, sum+float64(v)
		}
	}
	if n == 0 {
		return 0
	}
	mean := sum / float64(n)
	if d != Up {
		return mean
	}
	first, last := looks[0], looks[len(looks)-1]
	return Rate(last.BytesReceived-first.BytesReceived, last.ElapsedTime-first.ElapsedTime) / 8e6 * mean
}
