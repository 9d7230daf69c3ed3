package tracker

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/cluster"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// join enters a swarm through its home and hands over whom the home picked.
func (s *session) join(m *signal.Join) {
	if m.Ahead && !s.plain() {
		s.fail(m.Request, "bad-title", "The site has rules of its own for names.", "Join again by the rules of the welcome.", 0)
		return
	}
	if problem, hint := s.checkTitle(m); problem != "" {
		s.fail(m.Request, "bad-title", problem, hint, 0)
		return
	}
	policy := s.allowed()
	if m.Ahead && !s.mayOfferAhead(policy.Role) || policy.Role == configured.RoleRelayOnly {
		m.Offers = nil // who is relayed to viewers alone has to know whom it offers to
	}
	id := s.t.swarmID(s.site.Name(), m.Title)
	r := bus.HomeRequest{
		Op: bus.OpJoin, Tracker: s.t.id, Session: s.id, Swarm: id, Site: s.site.Name(), Title: m.Title, Manifest: m.Manifest,
		Group: s.group(), Address: s.t.hashed(s.visitor.Address, 32, 128), Subnet: s.t.hashed(s.visitor.Address, 24, 48), Region: s.visitor.Region, Subject: s.subjectHash(),
		Range: m.Range, Want: m.Want, Offers: len(m.Offers), RTTMs: s.rttMs(),
	}
	now := s.t.cfg.Now()
	s.mu.Lock()
	old := s.swarms[id]
	if old == nil && len(s.swarms) >= s.t.cfg.MaxSwarms {
		s.mu.Unlock()
		s.fail(m.Request, "too-many-swarms", "The session is in too many swarms.", "Leave one first.", 10_000)
		return
	}
	r.Role = roleOf(s.policy, m.Role)
	again := r
	again.Offers, again.Rejoin = 0, true
	member := &membership{join: again, asked: m.Role, stats: now, seen: now}
	if s.policy.Role == configured.RoleOff {
		member.asked = configured.RoleFull // it said what it was told, and not what it would be
	}
	if old != nil {
		member.stats, member.started, member.part = old.stats, old.started, old.part
	}
	member.home = s.t.HomeOf(member.key())
	s.swarms[id] = member
	s.mu.Unlock()
	answer, ok := s.askHome(member, &r)
	if answer.Code != "" {
		s.mu.Lock()
		delete(s.swarms, id)
		s.mu.Unlock()
		s.fail(m.Request, answer.Code, "The swarm takes nobody in now.", "Play from the origin and try again later.", 10_000)
		return
	}
	s.mu.Lock()
	member.viewers, member.banned, member.manifest = answer.Viewers, answer.Banned, answer.Manifest
	if !ok {
		member.home = signal.ID{} // joined again at the next beat
	}
	s.mu.Unlock()
	joined := &signal.Joined{Request: m.Request, Swarm: id, Viewers: answer.Viewers, Seeds: answer.Seeds}
	targets := s.introducible(answer.Offers[:min(len(answer.Offers), len(m.Offers))])
	for i, target := range targets {
		s.meet(target)
		joined.Offered = append(joined.Offered, signal.Offered{Link: m.Offers[i].Link, Peer: target.Peer, Role: target.Role})
	}
	s.send(joined)
	for i, target := range targets {
		o := m.Offers[i]
		if s.says(target.Peer, len(o.SDP)) != "" {
			s.send(&signal.Signal{Swarm: id, From: target.Peer, Role: target.Role, Link: o.Link, Kind: "fail", Reason: "busy"})
			continue
		}
		s.route(target, &signal.Signal{Swarm: id, To: target.Peer, Link: o.Link, Kind: "offer", SDP: o.SDP, Plan: o.Plan, Early: o.Early, Wanted: o.Wanted})
	}
	s.introduce(id, answer.Peers)
}

// plain says whether the site names its content as every site does that is not told otherwise.
func (s *session) plain() bool {
	c := s.site.Config()
	return len(c.Key.IgnoreQuery) == 0 && c.Key.Path == "" && c.Title.Drop == 0
}

// mayOfferAhead says whether offers that were made before the welcome may go on. They show the viewer's addresses, which
// the site may not want, and none that the site's ICE servers would have told: there, offers made after an introduction are
// worth more.
func (s *session) mayOfferAhead(role string) bool {
	return len(s.t.cfg.ICEServers)+len(s.t.cfg.TURNServers) == 0 && (role == configured.RoleFull || role == configured.RoleLeech)
}

// checkTitle says what is wrong with a join's title and manifest, if anything. A title is bound to its manifest, so that nobody
// can bring another manifest into its swarm: by the title rule, or an explicit one by the site's configuration or a token.
func (s *session) checkTitle(m *signal.Join) (problem, hint string) {
	if title, err := s.site.Title(m.Manifest, m.Title); err != nil || title != m.Title {
		return "The title is not valid.", "Send 1 to 512 bytes of UTF-8 without control characters."
	}
	if key, err := s.site.KeyOfPath(m.Manifest); m.Manifest != "" && (err != nil || key != m.Manifest || strings.Contains(key, "?")) {
		return "The manifest is not a key of this site.", "Send the manifest's key under the site's key rule, without a query."
	}
	bound := m.Manifest == "" || s.site.Binds(m.Title, m.Manifest)
	if !bound && !configured.IsExplicit(m.Title) {
		return "The title is not that of the manifest.", "Send the manifest's title by the title rule. An explicit title begins with something else than a slash."
	}
	s.mu.Lock()
	grant := s.grant
	s.mu.Unlock()
	if grant == nil && !bound {
		return "The site does not bind this title to this manifest.", "Add both to title.explicit of the site, or leave the explicit title out."
	}
	if err := s.permits(grant, m.Title, m.Manifest); err != nil {
		s.t.cfg.Metrics.Add(defTokens, 1, string(err.Reason))
		return err.Problem, err.Hint
	}
	return "", ""
}

// introducible are those of the peers that the session may get to know: seeds, and viewers as far as its share goes.
func (s *session) introducible(targets []bus.Target) []bus.Target {
	return slices.DeleteFunc(slices.Clone(targets), func(target bus.Target) bool {
		return target.Role == "viewer" && !s.learns(target.Peer)
	})
}

// introduce tells the viewer whom to offer to.
func (s *session) introduce(id signal.ID, targets []bus.Target) {
	targets = s.introducible(targets)
	if len(targets) == 0 {
		return
	}
	m := signal.Introduce{Swarm: id}
	for _, target := range targets {
		s.meet(target)
		m.Peers = append(m.Peers, signal.Peer{Peer: target.Peer, Role: target.Role})
		s.t.cfg.Metrics.Add(defIntroductions, 1, target.Role)
	}
	s.send(&m)
}

func (s *session) update(m *signal.Update) {
	s.mu.Lock()
	member := s.swarms[m.Swarm]
	if member == nil {
		s.mu.Unlock()
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "Join first.", 0)
		return
	}
	j := &member.join
	if m.Range != nil {
		j.Range = m.Range
	}
	j.Saturated, j.Links, j.Want, j.RTTMs = m.Saturated, m.Links, m.Want, s.rttMs()
	member.seen = s.t.cfg.Now()
	r := member.updateRequest()
	s.mu.Unlock()
	answer, ok := s.askHome(member, &r)
	switch {
	case !ok || answer.Unknown:
		s.rejoin(member, "unknown")
		return
	case answer.Split != nil:
		s.mu.Lock()
		member.part = cluster.Part{Number: answer.Split.Part, Level: answer.Split.Level}
		s.mu.Unlock()
		s.rejoin(member, "split")
		return
	}
	s.mu.Lock()
	member.viewers, member.banned, member.manifest = answer.Viewers, answer.Banned, answer.Manifest
	s.mu.Unlock()
	s.introduce(m.Swarm, answer.Peers)
}

func (s *session) leave(m *signal.Leave) {
	s.mu.Lock()
	member := s.swarms[m.Swarm]
	delete(s.swarms, m.Swarm)
	s.mu.Unlock()
	if member == nil {
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "", 0)
		return
	}
	s.tellHome(member, &bus.HomeRequest{Op: bus.OpLeave})
}

// keyOf is what the home of a part of a swarm is found by.
func keyOf(id signal.ID, part cluster.Part) signal.ID { return signal.ID(part.Key(swarm.ID(id))) }

// key is what the member's home is found by. Under session.mu.
func (m *membership) key() signal.ID { return keyOf(m.join.Swarm, m.part) }

// rejoin registers a member with its home again; introductions come by delivery.
func (s *session) rejoin(member *membership, reason string) {
	s.mu.Lock()
	member.home = s.t.HomeOf(member.key())
	r := member.join
	s.mu.Unlock()
	s.t.Moved(reason)
	s.tellHome(member, &r)
}

// updateRequest says to the home what the viewer said last. Under session.mu.
func (m *membership) updateRequest() bus.HomeRequest {
	j := &m.join
	return bus.HomeRequest{
		Op: bus.OpUpdate, Tracker: j.Tracker, Session: j.Session, Swarm: j.Swarm, Range: j.Range, Saturated: j.Saturated,
		Links: j.Links, Want: j.Want, RTTMs: j.RTTMs,
	}
}

// askHome asks a swarm's home and waits; where the swarm is parted, the home of the member's part. A home that does not answer
// counts as silent, and the next in rank is asked. ok is false when nobody answered: the viewer plays on, and the swarm is
// joined again once there is a home.
func (s *session) askHome(member *membership, r *bus.HomeRequest) (answer bus.HomeAnswer, ok bool) {
	for silent, parted := 0, 0; silent < 2 && parted <= cluster.MaxLevel; {
		home := s.address(member, r)
		answer = bus.HomeAnswer{}
		switch err := s.askOnce(home, r, &answer); {
		case err != nil:
			silent++
			s.t.cfg.Log.Warn("home did not answer", "op", r.Op, "error", err)
			s.t.roster.silent(home)
			s.mu.Lock()
			member.home = s.t.HomeOf(member.key())
			again := member.home == home
			s.mu.Unlock()
			if again {
				return bus.HomeAnswer{}, false
			}
		case r.Op == bus.OpJoin && answer.Split != nil:
			parted++
			s.mu.Lock()
			member.part = cluster.Part{Number: answer.Split.Part, Level: answer.Split.Level}
			member.home = s.t.HomeOf(member.key())
			s.mu.Unlock()
		default:
			return answer, true
		}
	}
	return bus.HomeAnswer{}, false
}

// address writes on a request who asks about what, and says where it goes.
func (s *session) address(member *membership, r *bus.HomeRequest) (home signal.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Tracker, r.Session, r.Swarm = s.t.id, s.id, member.join.Swarm
	r.Part, r.Level = member.part.Number, member.part.Level
	if !s.t.bus.Connected() {
		return s.t.id
	}
	return member.home
}

// askOnce asks one home: again when no answer came in time, for messages of the bus can be lost.
func (s *session) askOnce(home signal.ID, r *bus.HomeRequest, answer *bus.HomeAnswer) error {
	s.serial++
	r.Serial = s.serial
	if home == s.t.id {
		*answer = s.t.home.handle(r)
		return nil
	}
	err := s.t.request(bus.SubjectHome(home), r, answer)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.t.request(bus.SubjectHome(home), r, answer)
	}
	return err
}

// tellHome tells a swarm's home what wants no answer.
func (s *session) tellHome(member *membership, r *bus.HomeRequest) {
	s.tell(s.address(member, r), r)
}
