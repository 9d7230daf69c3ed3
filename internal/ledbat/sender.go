package ledbat

// Sender is the sending side of a host: the window that all its links share.
type Sender struct {
	host
	cfg      Config
	paths    []*Path
	bears    tolerance
	ceiling  ceiling
	eager    bool  // foreground goes out under the controller
	held     bool  // what is sent next waited for the window, not for a timer
	paced    int64 // the earliest moment of the next message, as the last one set it
	losses   int64 // bytes
	timeouts int64
}

// NewSender makes the sending side of a host.
func NewSender(cfg Config) *Sender {
	if cfg.Controller == nil {
		cfg.Controller = NewController
	}
	return &Sender{host: newHost(cfg.Controller(true)), cfg: cfg}
}

// SetParts says among how many hosts the line is divided from now on.
func (h *Sender) SetParts(n int64) { h.parts = max(1, n) }

// Eager says whether foreground goes out under the controller: the host then bears more, up to eagerTarget, as a player waits for it.
// A host that sent in that time keeps to what its line carries.
func (h *Sender) Eager(on bool) { h.eager = on }

// Beside notes bytes that the host sends over the same line outside the controller: what acknowledges its own downloads, mostly. They
// have their part of what the ceiling lets out.
func (h *Sender) Beside(now, size int64) {
	if takes := h.ceiling.besides(size); takes > 0 && h.controller.Window() >= Packet {
		h.next = max(h.next, min(max(h.next, now-burstTime)+takes, h.paced+besideMost))
	}
}

// Window is the number of bytes that may be in flight over all links.
func (h *Sender) Window() int64 { return h.controller.Window() }

// PacingRate is the rate of all links together, in bytes/s.
func (h *Sender) PacingRate() int64 { return h.ceiling.of(pacing(h.controller, h.view.RTT)) }

// Stats tells how the host stands.
func (h *Sender) Stats() Stats {
	s := h.stats()
	s.PacingRate, s.Losses, s.Timeouts = h.PacingRate(), h.losses, h.timeouts
	return s
}

// pacing spreads a window over a round trip, with some to spare, so that it is the window that limits.
func pacing(l Controller, rtt int64) int64 {
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
