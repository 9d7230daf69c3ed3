package tracker

import (
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// signals finds the session that a signal is for, here or at another tracker, and tells the sender where there is none.
type signals struct {
	*replica
	sessions   *sessions
	home       *home
	deliveries *deliveries
}

// deliver hands a signal to the session that it is for.
func (r *signals) deliver(m *bus.Signal) {
	s := r.sessions.session(m.To)
	if s == nil || s.swarms.get(m.Swarm) == nil {
		r.seek(m)
		return
	}
	out := m.Signal
	out.To = signal.ID{}
	p := replyPool.Get().(*[]byte)
	defer replyPool.Put(p)
	b := s.encode((*p)[:0], &out)
	if b == nil {
		return
	}
	*p = b
	if s.peers.hears(m, len(b)) != "" {
		r.busy(m)
		return
	}
	if m.Role == "viewer" && !s.peers.learns(m.From) {
		r.busy(m)
		return
	}
	if m.Role == "viewer" && !m.Tracker.IsZero() {
		s.peers.meet(bus.Target{Peer: m.From, Role: "viewer", Tracker: m.Tracker})
	}
	s.write(&out, b)
}

// seek passes on a signal for a session that is not where it was looked for: to the home of its swarm, and from there to the
// tracker that the member is registered at. From a seed, which is no member, it goes no further.
func (r *signals) seek(m *bus.Signal) {
	next := *m
	key := cluster.Part{Number: m.Part}.Key(m.Swarm)
	home := r.HomeOf(key)
	switch {
	case m.Role != "viewer" || m.Hops >= 2:
		r.gone(m)
	case home != r.id && m.Hops == 0:
		next.Hops = 1
		r.deliveries.Send(home, &bus.Delivery{Kind: bus.KindSignal, Signal: &next})
	default:
		next.Hops = 2
		holder, ok := r.home.holder(key, m.To)
		if !ok || holder == r.id && r.sessions.session(m.To) == nil || !r.roster.lives(holder) {
			r.gone(m)
			return
		}
		r.deliveries.Send(holder, &bus.Delivery{Kind: bus.KindSignal, Signal: &next})
	}
}

// gone answers an offer or an answer for a session that is not there any more with fail, gone; whatever else comes late
// is missed by no side.
func (r *signals) gone(m *bus.Signal) {
	if m.Kind == "offer" || m.Kind == "answer" {
		r.fail(m, "gone")
	}
}

// fail answers a signal of a viewer with fail.
func (r *signals) fail(m *bus.Signal, reason string) {
	if m.Tracker.IsZero() || !r.roster.lives(m.Tracker) {
		return
	}
	r.deliveries.Send(m.Tracker, &bus.Delivery{Kind: bus.KindSignal, Signal: &bus.Signal{Hops: 2, Signal: signal.Signal{
		Swarm: m.Swarm, From: m.To, To: m.From, Role: "viewer", Link: m.Link, Kind: "fail", Reason: reason,
	}}})
}

// seedGone answers an offer or an answer of a session here for a seed that cannot be reached.
func (r *signals) seedGone(m *bus.Signal) {
	if s := r.sessions.session(m.From); s != nil && (m.Kind == "offer" || m.Kind == "answer") {
		s.send(&signal.Signal{Swarm: m.Swarm, From: m.To, Role: "seed", Link: m.Link, Kind: "fail", Reason: "gone"})
	}
}

// busy answers an offer that the session that it is for is not to hear now. No side waits for anything else.
func (r *signals) busy(m *bus.Signal) {
	if m.Kind == "offer" {
		r.fail(m, "busy")
	}
}
