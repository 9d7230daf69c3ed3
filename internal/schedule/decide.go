package schedule

// Decide says what to do now. It keeps nothing of its input, and changes nothing in it; the same input gives the same
// actions, in the same order. Its last action is a wake if anything waits.
func Decide(in Input) []Action {
	d := newDecision(&in)
	for i := range in.Segments {
		s, before := &in.Segments[i], len(d.plan.actions)
		d.timer.waiting = false
		d.segment(s)
		idle := !d.timer.waiting && len(d.plan.actions) == before && !d.requests.any(s)
		if idle && s.asked() && s.Origin == OriginFailed && !s.complete() {
			d.plan.act(Action{Type: DoFail, Segment: s.ID}) // rule 9
		}
	}
	if d.timer.set() {
		d.plan.act(Action{Type: DoWake, AtUs: d.timer.wakeUs})
	}
	return d.plan.actions
}

// decision is one call of Decide on its way: what has been found so far, and the parts that each know some of the rules.
type decision struct {
	in       *Input
	plan     plan
	timer    timer
	peers    peers
	requests requests

	waiting      waiting
	certificates certificates
	assignment   assignment
	urgent       urgent
}

func newDecision(in *Input) *decision {
	d := &decision{in: in, timer: newTimer(in.NowUs), peers: newPeers(in)}
	d.requests = newRequests(in, &d.peers, &d.timer, &d.plan)
	d.waiting = waiting{in, &d.timer, &d.peers}
	d.certificates = certificates{&d.plan, &d.timer, &d.peers, &in.Policy}
	d.assignment = assignment{in.Self, &in.Policy, &d.timer, &d.peers, &d.requests}
	d.urgent = urgent{in, &d.timer, &d.peers, &d.requests}
	return d
}

// segment decides for one segment (rules 0 and 2 to 5).
func (d *decision) segment(s *Segment) {
	switch {
	case s.complete():
		if s.Origin == OriginRunning {
			d.plan.act(Action{Type: DoStopOrigin, Segment: s.ID})
		}
	case d.in.Off != "":
		if s.asked() {
			d.plan.origin(s, d.in.Off)
		}
	case !s.asked():
		if s.Certificate == CertNone {
			d.certificates.ask(s)
		} else if s.Certificate == CertHeld && d.in.Policy.Background {
			d.assignment.assign(s, WhyBackground)
		}
	default:
		d.requests.promote(s)
		turn := s.turnUs(d.in.Policy.UrgentPermille)
		until := d.waiting.until(s, turn)
		if d.in.NowUs > until && s.Origin != OriginFailed {
			d.late(s, turn)
		} else if s.Origin != OriginRunning {
			d.near(s, until)
		}
	}
}

// late is rule 3, for a segment that is not held any longer.
func (d *decision) late(s *Segment, turn int64) {
	certified, proven := s.Certificate == CertHeld, d.waiting.proven()
	if certified && proven && s.Origin == OriginIdle && d.urgent.rescue(s) {
		return
	}
	switch {
	case !d.peers.offered(s):
		d.plan.origin(s, NoHolder)
	case !certified && s.CertAskedUs >= 0:
		d.plan.origin(s, NoCert)
	default:
		d.plan.origin(s, Urgent)
	}
	switch {
	case s.Certificate == CertNone:
		d.certificates.ask(s)
	case !certified:
	case proven || d.urgent.deep(s):
		d.urgent.race(s, turn)
	default:
		d.urgent.prove(s)
	}
}

// near is rules 4 and 5, for a segment whose origin does not run.
func (d *decision) near(s *Segment, until int64) {
	if s.Origin == OriginIdle {
		d.timer.waits(until + 1)
	}
	switch {
	case s.Certificate == CertHeld:
		d.nearCertified(s)
	case s.Certificate == CertRefused:
		d.plan.origin(s, NoCert)
	case d.certificates.asked(s):
		d.certificates.await(s)
	case d.certificates.ask(s):
	case len(s.CertPeers) > 0 && len(d.peers.all) > 0:
		d.plan.origin(s, NoCert)
	case d.waiting.holder(s):
	default:
		d.plan.origin(s, NoHolder)
	}
}

func (d *decision) nearCertified(s *Segment) {
	if !d.assignment.assign(s, WhyNear) {
		return
	}
	if len(d.peers.interested(s)) == 0 && s.Origin != OriginFailed || !d.timer.waits(s.AskedUs+d.in.Policy.PatienceUs) {
		d.plan.origin(s, NoHolder)
	}
}
