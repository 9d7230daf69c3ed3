package tracker

import (
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// signal passes one of so many bytes on to a peer that the session knows, and says whether the session goes on.
func (s *session) signal(m *signal.Signal, size int) bool {
	member := s.swarms.get(m.Swarm)
	target, known, tooMany := s.peers.addressed(m)
	switch {
	case member == nil:
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "Join first.", 0)
	case m.To.IsZero() || !known:
		s.fail(m.Request, "not-introduced", "The tracker did not introduce this peer.", "Wait for introduce, or for a signal from the peer.", 0)
	case tooMany:
		s.fail(m.Request, "bad-message", "A link has at most 64 candidates.", "", 0)
	case s.peers.says(m.To, size) != "":
		return s.exceeds(m.Request, "Too many signals to one peer.", "Offer again later; see limits of signals in spec/tracker-protocol.md.")
	default:
		// A viewer that is off refuses every other: that says nothing of the pair.
		if m.Kind == "fail" && m.Reason != "busy" && m.Reason != "gone" && s.rule.allowed().Role != configured.RoleOff {
			s.swarms.tellHome(member, &bus.HomeRequest{Op: bus.OpFailed, Peer: m.To})
		}
		s.route(target, m)
	}
	return true
}

// route sends a signal of this session to where the peer is.
func (s *session) route(target bus.Target, m *signal.Signal) {
	out := bus.Signal{Tracker: s.t.id, Signal: *m}
	out.From, out.Role, out.Request = s.id, "viewer", 0
	if target.Role == "viewer" {
		out.Subnet = s.visitor.network(&s.t.secrets)
	}
	s.t.cfg.Metrics.Add(defSignals, 1, m.Kind)
	if m.Kind == "offer" {
		s.peers.offers(target.Peer, m.Link)
	}
	part, banned, title := s.swarms.told(m.Swarm)
	out.Part = part
	switch {
	case banned && target.Role == "viewer" && m.Kind == "offer": // to a viewer that it met before the ban
		s.send(&signal.Signal{Swarm: m.Swarm, From: m.To, Role: target.Role, Link: m.Link, Kind: "fail", Reason: "refused"})
	case target.Role == "seed" && !s.t.roster.serves(target.Peer):
		s.t.signals.seedGone(&out)
	case target.Role == "seed":
		d := bus.SeedDelivery{Kind: bus.KindSignal, Signal: &out}
		if m.Kind == "offer" {
			d.Title, d.Subnet, d.Subject = title, s.visitor.network(&s.t.secrets), s.place.hash()
		}
		s.t.deliveries.toSeed(target.Peer, &d)
	case s.t.roster.lives(target.Tracker):
		s.t.deliveries.Send(target.Tracker, &bus.Delivery{Kind: bus.KindSignal, Signal: &out})
	default:
		s.t.signals.seek(&out)
	}
}
