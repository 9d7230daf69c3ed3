package tracker

import (
	configured "github.com/leeway-video/leeway/internal/site"
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

// signal passes one of so many bytes on to a peer that the session knows, and says whether the session goes on.
func (s *session) signal(m *signal.Signal, size int) bool {
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
	case s.says(m.To, size) != "":
		return s.exceeds(m.Request, "Too many signals to one peer.", "Offer again later; see limits of signals in spec/tracker-protocol.md.")
	default:
		// Who is off refuses everybody: that says nothing of the pair.
		if m.Kind == "fail" && m.Reason != "busy" && m.Reason != "gone" && s.allowed().Role != configured.RoleOff {
			s.tellHome(member, &bus.HomeRequest{Op: bus.OpFailed, Peer: m.To})
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
		out.Subnet = s.t.hashed(s.visitor.Address, 24, 48)
	}
	s.t.cfg.Metrics.Add(defSignals, 1, m.Kind)
	s.mu.Lock()
	if peer := s.known[target.Peer]; peer != nil && m.Kind == "offer" {
		peer.offered = m.Link
	}
	member := s.swarms[m.Swarm]
	var title *bus.Title
	banned := false
	if member != nil {
		out.Part, banned = member.part.Number, member.banned
		if member.manifest != "" { // the home's word, not the viewer's
			title = &bus.Title{
				Site: member.join.Site, Title: member.join.Title, Manifest: member.manifest, Swarm: m.Swarm, Viewers: max(1, member.viewers),
			}
		}
	}
	s.mu.Unlock()
	switch {
	case banned && target.Role == "viewer" && m.Kind == "offer": // to whom it met before the ban
		s.send(&signal.Signal{Swarm: m.Swarm, From: m.To, Role: target.Role, Link: m.Link, Kind: "fail", Reason: "refused"})
	case target.Role == "seed" && !s.t.roster.serves(target.Peer):
		s.t.signals.seedGone(&out)
	case target.Role == "seed":
		d := bus.SeedDelivery{Kind: bus.KindSignal, Signal: &out}
		if m.Kind == "offer" {
			d.Title, d.Subnet, d.Subject = title, s.t.hashed(s.visitor.Address, 24, 48), s.subjectHash()
		}
		s.t.deliveries.toSeed(target.Peer, &d)
	case s.t.roster.lives(target.Tracker):
		s.t.deliveries.Send(target.Tracker, &bus.Delivery{Kind: bus.KindSignal, Signal: &out})
	default:
		s.t.signals.seek(&out)
	}
}
