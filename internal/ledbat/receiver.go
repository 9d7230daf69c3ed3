package ledbat

// Receiver is the requesting side of a host: the bytes that it has asked for in the background lane over all its links
// and that have not come yet are its flight, and the controller bounds them. Many senders to one line yield together that way.
type Receiver struct {
	host
	cfg  Config
	held bool // the window was full, and a quarter of it was not free since

	came, lately int64 // bytes of requests that came in this stretch, and in the last one
	since        int64 // when this stretch began
}

// Source is one link of a Receiver.
type Source struct {
	r       *Receiver
	delays  delays
	flight  int64
	highest uint32
	started bool
}

// NewReceiver makes the receiving side of a host.
func NewReceiver(cfg Config) *Receiver {
	if cfg.Controller == nil {
		cfg.Controller = NewController
	}
	return &Receiver{host: newHost(cfg.Controller(true)), cfg: cfg}
}

// SetParts says among how many receivers the host's line is divided from now on.
func (r *Receiver) SetParts(n int64) { r.parts = max(1, n) }

// Window is the number of bytes that may be asked for and not come.
func (r *Receiver) Window() int64 { return r.controller.Window() }

// Stats tells how the host stands.
func (r *Receiver) Stats() Stats { return r.stats() }

// MayRequest says whether another size bytes may be asked for now, over any link: the window may be passed by less than
// one request. If not, at is when to try again, or 0 when the window is full: then data say. A window that was full counts as full
// until a quarter of it is free, if a quarter is more than one request. One message then asks for all that fits into it.
func (r *Receiver) MayRequest(now, size int64) (ok bool, at int64) {
	most := r.controller.Window()
	if r.held && most/4 > size {
		most -= most / 4
	}
	r.held = r.flight > 0 && r.flight >= most
	switch {
	case r.held:
		r.limitedAt = now
		return false, 0
	case now < r.next:
		return false, r.next
	}
	return true, 0
}

// Open adds a link.
func (r *Receiver) Open(now int64) *Source {
	s := &Source{r: r, delays: newDelays(now, 0)}
	r.members = append(r.members, &s.delays)
	return s
}

// Close takes the link from the host; what it still owes no longer counts.
func (s *Source) Close() {
	s.r.leave(&s.delays, s.flight)
	s.flight = 0
}

// Reset forgets what was measured of the link, as Path.Reset does.
func (s *Source) Reset(now int64) {
	s.delays = newDelays(now, 0)
	if s.r.alone(now, &s.delays) {
		s.r.restart(s.r.cfg.Controller(true))
	}
}

// OnRequest notes that size bytes were asked for in the background lane.
func (s *Source) OnRequest(now, size int64) {
	r := s.r
	r.wake(now)
	s.flight += size
	r.flight += size
	if r.flight >= r.controller.Window() {
		r.limitedAt = now
	}
	if w := r.controller.Window(); w < size && r.view.RTT > 0 {
		r.next = now + min(r.view.RTT*size/w, maxRequestInterval)
	}
}

// OnGone notes that size bytes that were asked for will not come in the background lane: rejected, canceled, promoted.
func (s *Source) OnGone(size int64) {
	size = min(size, s.flight)
	s.flight -= size
	s.r.flight -= size
}

// OnData notes a background message with size bytes of a request. As with acks, only the highest sequence so far gives a
// delay sample. It returns whether it did.
func (s *Source) OnData(now, size int64, t Stamp) bool {
	r := s.r
	s.OnGone(size)
	sampled := false
	if !s.started || int32(t.Sequence-s.highest) > 0 {
		s.highest, s.started = t.Sequence, true
		if rtt := int64(int32(uint32(now) - t.Echo)); t.Echoes && rtt > 0 && rtt <= mostRTT {
			s.delays.sample(now, rtt, uint32(now)-t.SentAt)
			sampled = true
		}
	}
	r.lastAt = now
	r.look(now)
	v, used := r.view, r.used(now, size)
	v.Acked, v.Limited = size, v.Limited && used
	r.act(r.controller.OnAck, v)
	return sampled
}

// used says whether what came in this stretch or in the last one is half of the window. What waits at its senders is in no queue that
// delays show, and a window full of that would grow for as long as it is asked for (RFC 7661: a window grows by what comes of it).
func (r *Receiver) used(now, size int64) bool {
	if now-r.since >= max(r.view.RTT, rateTime) {
		r.lately, r.came, r.since = r.came, 0, now
	}
	r.came += size
	return r.controller.Window() <= 2*max(r.came, r.lately)
}
