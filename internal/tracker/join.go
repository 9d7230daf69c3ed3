package tracker

import (
	"strings"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// join enters a swarm through its home and introduces the peers that the home picked.
func (s *session) join(m *signal.Join) {
	if m.Ahead && !plain(s.site) {
		s.fail(m.Request, "bad-title", "The site has rules of its own for names.", "Join again by the rules of the welcome.", 0)
		return
	}
	if problem, hint := s.checkTitle(m); problem != "" {
		s.fail(m.Request, "bad-title", problem, hint, 0)
		return
	}
	s.t.hints.title(s.site.Name(), m.Title)
	policy := s.rule.allowed()
	if m.Ahead && !mayOfferAhead(&s.t.cfg, policy.Role) || policy.Role == configured.RoleRelayOnly {
		m.Offers = nil // a viewer that is relayed to other viewers has to know which peer it offers to
	}
	id := s.t.swarmID(s.site.Name(), m.Title)
	r := bus.HomeRequest{
		Op: bus.OpJoin, Tracker: s.t.id, Session: s.id, Swarm: id, Site: s.site.Name(), Title: m.Title, Manifest: m.Manifest,
		Group: s.permit.group(), Address: s.t.hashed(s.visitor.Address, 32, 64), Subnet: s.visitor.network(&s.t.secrets), Region: s.visitor.Region, Subject: s.place.hash(),
		Range: m.Range, Want: m.Want, Learns: s.peers.room(m.Want), Offers: len(m.Offers), RTTMs: s.rttMs(),
	}
	member := s.swarms.enter(&r, m.Role, &s.rule, s.t.cfg.MaxSwarms, s.t.cfg.Now())
	if member == nil {
		s.fail(m.Request, "too-many-swarms", "The session is in too many swarms.", "Leave one first.", 10_000)
		return
	}
	answer, ok := s.swarms.askHome(member, &r)
	if answer.Code != "" {
		s.swarms.drop(id)
		s.fail(m.Request, answer.Code, "The swarm takes in no more viewers now.", "Play from the origin and try again later.", 10_000)
		return
	}
	s.swarms.answered(member, &answer, ok)
	joined := &signal.Joined{Request: m.Request, Swarm: id, Viewers: answer.Viewers, Seeds: answer.Seeds}
	targets := s.peers.introducible(answer.Offers[:min(len(answer.Offers), len(m.Offers))])
	for i, target := range targets {
		s.peers.meet(target)
		joined.Offered = append(joined.Offered, signal.Offered{Link: m.Offers[i].Link, Peer: target.Peer, Role: target.Role})
	}
	s.send(joined)
	for i, target := range targets {
		o := m.Offers[i]
		if s.peers.says(target.Peer, len(o.SDP)) != "" {
			s.send(&signal.Signal{Swarm: id, From: target.Peer, Role: target.Role, Link: o.Link, Kind: "fail", Reason: "busy"})
			continue
		}
		s.route(target, &signal.Signal{Swarm: id, To: target.Peer, Link: o.Link, Kind: "offer", SDP: o.SDP, Plan: o.Plan, Early: o.Early, Wanted: o.Wanted})
	}
	s.introduce(id, answer.Peers)
}

// plain says whether the site names its content as every site does that is not told otherwise.
func plain(site *configured.Site) bool {
	c := site.Config()
	return len(c.Key.IgnoreQuery)+len(c.Key.IgnorePath) == 0 && c.Key.Path == "" && c.Title.Drop == 0
}

// mayOfferAhead says whether offers that were made before the welcome may go on. They show the viewer's addresses, which
// the site may not want, and none that the site's ICE servers would have told: there, offers made after an introduction are
// worth more.
func mayOfferAhead(cfg *Config, role string) bool {
	return len(cfg.ICEServers)+len(cfg.TURNServers) == 0 && (role == configured.RoleFull || role == configured.RoleLeech)
}

// checkTitle says what is wrong with a join's title and manifest, if anything. A title is bound to its manifest, so that no viewer
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
		return "The title is not that of the manifest.", "Send the manifest's title by the title rule. An explicit title begins with something else than a slash. A file that pages fetch is named under the site's files."
	}
	grant := s.permit.granted()
	if grant == nil && !bound {
		return "The site does not bind this title to this manifest.", "Add both to title.explicit of the site, or leave the explicit title out."
	}
	if err := permits(s.site, grant, m.Title, m.Manifest); err != nil {
		s.t.cfg.Metrics.Add(defTokens, 1, string(err.Reason))
		return err.Problem, err.Hint
	}
	return "", ""
}

// introduce tells the viewer which peers to offer to.
func (s *session) introduce(id signal.ID, targets []bus.Target) {
	targets = s.peers.introducible(targets)
	if len(targets) == 0 {
		return
	}
	m := signal.Introduce{Swarm: id}
	for _, target := range targets {
		s.peers.meet(target)
		m.Peers = append(m.Peers, signal.Peer{Peer: target.Peer, Role: target.Role})
		s.t.cfg.Metrics.Add(defIntroductions, 1, target.Role)
	}
	s.send(&m)
}

func (s *session) update(m *signal.Update) {
	member, r := s.swarms.said(m, s.rttMs(), s.peers.room(m.Want), s.t.cfg.Now())
	if member == nil {
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "Join first.", 0)
		return
	}
	answer, ok := s.swarms.askHome(member, &r)
	switch {
	case !ok || answer.Unknown:
		s.swarms.rejoin(member, nil, "unknown")
		return
	case answer.Split != nil:
		s.swarms.rejoin(member, answer.Split, "split")
		return
	}
	s.swarms.answered(member, &answer, true)
	s.introduce(m.Swarm, answer.Peers)
}

func (s *session) leave(m *signal.Leave) {
	member := s.swarms.drop(m.Swarm)
	if member == nil {
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "", 0)
		return
	}
	s.swarms.tellHome(member, &bus.HomeRequest{Op: bus.OpLeave})
}
