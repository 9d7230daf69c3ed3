package ledbat

// Controller is the sending side of a host: the window that all its links share.
type Controller struct {
	host
	cfg      Config
	paths    []*Path
	bears    tolerance
	ceiling  ceiling
	eager    bool  // foreground goes out under the law
	held     bool  // what is sent next waited for the window, not for a timer
	paced    int64 // the earliest moment of the next message, as the last one set it
	losses   int64 // bytes
	timeouts int64
}

// New makes the controller of a host.
func New(cfg Config) *Controller {
	if cfg.Law == nil {
		cfg.Law = NewLaw
	}
	return &Controller{host: newHost(cfg.Law(true), cfg.Parts), cfg: cfg}
}

// SetParts says among how many controllers the host's line is divided from now on.
func (c *Controller) SetParts(n int64) { c.parts = max(1, n) }

// Eager says whether foreground goes out under the law: the host then bears more, up to eagerTarget, as somebody waits for it.
// A host that sent in that time keeps to what its line carries.
func (c *Controller) Eager(on bool) { c.eager = on }

// Beside notes bytes that the host sends over the same line outside the law: what acknowledges its own downloads, mostly. They
// have their part of what the ceiling lets out.
func (c *Controller) Beside(now, size int64) {
	if takes := c.ceiling.besides(size); takes > 0 && c.law.Window() >= Packet {
		c.next = max(c.next, min(max(c.next, now-burstTime)+takes, c.paced+besideMost))
	}
}

// Window is the number of bytes that may be in flight over all links.
func (c *Controller) Window() int64 { return c.law.Window() }

// PacingRate is the rate of all links together, in bytes/s.
func (c *Controller) PacingRate() int64 { return c.ceiling.of(pacing(c.law, c.view.RTT)) }

// Stats tells how the host stands.
func (c *Controller) Stats() Stats {
	s := c.stats()
	s.Suspended = interval(c.law.Window(), c.view.RTT) >= SuspendAfter
	s.PacingRate, s.Losses, s.Timeouts = c.PacingRate(), c.losses, c.timeouts
	return s
}

// pacing spreads a window over a round trip, with some to spare, so that it is the window that limits.
func pacing(l Law, rtt int64) int64 {
	if rtt == 0 {
		rtt = firstRTT
	}
	w := l.Window()
	switch {
	case w < 2*Packet:
		return w * 1e6 / rtt
	case l.State() == SlowStart || l.State() == Ramp:
		return 2 * w * 1e6 / rtt
	}
	return w * pacingGain * 1000 / rtt
}

// interval is the time between packets of a window that is below one packet.
func interval(window, rtt int64) int64 { return min(rtt*Packet/window, MaxInterval) }
