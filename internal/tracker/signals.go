package tracker

import (
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// meet notes a peer that the session may signal to. The oldest knowledge is not kept apart: a session that met too many
// forgets any one of them, and is introduced anew when it asks for more.
func (s *session) meet(target bus.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.known[target.Peer]; old != nil {
		old.Target = target
		return
	}
	for id := range s.known {
		if len(s.known) < maxKnown {
			break
		}
		delete(s.known, id)
	}
	s.known[target.Peer] = &acquaintance{Target: target}
}

// signal passes one on to a peer that the session knows.
func (s *session) signal(m *signal.Signal) {
	s.mu.Lock()
	member, peer := s.swarms[m.Swarm], s.known[m.To]
	var target bus.Target
	tooMany := false
	if peer != nil {
		target = peer.Target
		if peer.link != m.Link {
			peer.link, peer.candidates = m.Link, 0
		}
		if m.Kind == "candidate" {
			peer.candidates++
			tooMany = peer.candidates > maxCandidates
		}
	}
	s.mu.Unlock()
	switch {
	case member == nil:
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "Join first.", 0)
	case m.To.IsZero() || peer == nil:
		s.fail(m.Request, "not-introduced", "The tracker did not introduce this peer.", "Wait for introduce, or for a signal from the peer.", 0)
	case tooMany:
		s.fail(m.Request, "bad-message", "A link has at most 64 candidates.", "", 0)
	default:
		if m.Kind == "fail" && m.Reason != "busy" && m.Reason != "gone" {
			s.tellHome(member, &bus.HomeRequest{Op: bus.OpFailed, Tracker: s.t.id, Session: s.id, Swarm: m.Swarm, Peer: m.To})
		}
		s.route(target, m)
	}
}

// route sends a signal of this session to where the peer is.
func (s *session) route(target bus.Target, m *signal.Signal) {
	out := bus.Signal{Tracker: s.t.id, Signal: *m}
	out.From, out.Role, out.Request = s.id, "viewer", 0
	s.t.cfg.Metrics.Add(defSignals, 1, m.Kind)
	if !s.t.roster.reachable(target) {
		if m.Kind == "offer" || m.Kind == "answer" {
			s.send(&signal.Signal{Swarm: m.Swarm, From: target.Peer, Role: target.Role, Link: m.Link, Kind: "fail", Reason: "gone"})
		}
		return
	}
	if target.Role != "seed" {
		s.t.publish(bus.SubjectDeliver(target.Tracker), &bus.Delivery{Kind: bus.KindSignal, Signal: &out})
		return
	}
	d := bus.SeedDelivery{Kind: bus.KindSignal, Signal: &out}
	if m.Kind == "offer" {
		s.mu.Lock()
		if member := s.swarms[m.Swarm]; member != nil {
			d.Title = &bus.Title{
				Site: member.join.Site, Title: member.join.Title, Manifest: member.join.Manifest, Swarm: m.Swarm, Viewers: max(1, member.viewers),
			}
		}
		s.mu.Unlock()
	}
	s.t.publish(bus.SubjectSeedDeliver(target.Peer), &d)
}

// deliver hands a signal to the session that it is for. To an offer or answer for a session that is not here any more the
// answer is fail, gone; whatever else comes late has nobody to miss it.
func (t *Tracker) deliver(m *bus.Signal) {
	s := t.session(m.To)
	member := false
	if s != nil {
		s.mu.Lock()
		member = s.swarms[m.Swarm] != nil
		s.mu.Unlock()
	}
	if !member {
		if (m.Kind == "offer" || m.Kind == "answer") && !m.Tracker.IsZero() {
			back := bus.Signal{Tracker: t.id, Signal: signal.Signal{
				Swarm: m.Swarm, From: m.To, To: m.From, Role: "viewer", Link: m.Link, Kind: "fail", Reason: "gone",
			}}
			t.publish(bus.SubjectDeliver(m.Tracker), &bus.Delivery{Kind: bus.KindSignal, Signal: &back})
		}
		return
	}
	if m.Role == "viewer" && !m.Tracker.IsZero() {
		s.meet(bus.Target{Peer: m.From, Role: "viewer", Tracker: m.Tracker})
	}
	out := m.Signal
	out.To = signal.ID{}
	s.send(&out)
}
