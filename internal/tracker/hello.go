package tracker

import (
	"cmp"
	"encoding/json"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// greet takes the first messages, of which hello opens the session; false when there is none.
func (s *session) greet(m signal.Message) bool {
	hello, _ := m.(*signal.Hello)
	if hello == nil {
		s.fail(0, "not-ready", "The session is not open yet.", "Send hello first and wait for welcome.", 0)
		return true
	}
	if !s.greeted.Stop() {
		return false
	}
	code, message, hint := s.identify(hello)
	if code != "" {
		s.fail(hello.Request, code, message, hint, 0)
		s.Close(closePolicy, code)
		return false
	}
	if !s.welcome(hello) {
		return false
	}
	s.greeted = nil
	return true
}

// identify settles the site and the ID; the answer is empty or the error to send.
func (s *session) identify(h *signal.Hello) (code, message, hint string) {
	if h.Version != signal.Version {
		return "bad-version", "This tracker speaks version 1.", "Load the script from this tracker."
	}
	for _, c := range s.t.cfg.Sites {
		// A program sends no Origin, could send any, and has to say which site it means.
		program := s.visitor.Origin == "" && c.Name() == h.Site
		if program || (h.Site == "" || c.Name() == h.Site) && c.AllowsOrigin(s.visitor.Origin) {
			s.site = c
			break
		}
	}
	switch {
	case s.site == nil && h.Site != "" && s.t.sites[h.Site] == nil:
		return "bad-site", "This tracker has no such site.", "Check data-site against the tracker's configuration."
	case s.site == nil:
		return "bad-origin", "Pages of this origin do not belong to the site.", "Add the page's origin to page_origins of the site."
	}
	return s.permit.authorize(s.site, h.Token)
}

// welcome registers the session and answers hello.
func (s *session) welcome(h *signal.Hello) bool {
	now := s.t.cfg.Now()
	s.id = newID()
	resumed := false
	if h.Ticket != "" {
		if old, err := s.t.tickets.open(h.Ticket, now); err == nil && old.site == s.site.Name() {
			s.id, resumed = old.session, true
			if old.tracker != s.t.id {
				s.t.Publish(bus.SubjectDeliver(old.tracker), &bus.Delivery{Kind: bus.KindReplaced, Session: s.id, Tracker: s.t.id})
			}
		}
	}
	policy := s.rule.decide(s.site, s.id, s.permit.granted(), s.t.heldBack(s.site, s.permit.subject(), s.visitor.Visitor), s.t.switches)
	s.ticketed = now
	config, err := json.Marshal(s.site.Config())
	if err != nil {
		s.fail(h.Request, "internal", "The site's configuration cannot be sent.", "Look at the tracker's log.", 0)
		s.t.cfg.Log.Error("site configuration", "site", s.site.Name(), "error", err)
		return false
	}
	if subject := s.permit.subject(); subject != "" {
		if code := s.place.enter(s.id, s.t.subjectID(s.site.Name(), subject), now); code != "" {
			s.fail(h.Request, code, "The token's subject has as many sessions as it may.", "Close another page first.", 10_000)
			s.Close(closePolicy, code)
			return false
		}
	}
	s.peers.learners = learnersOf(s.id, s.visitor.Address, s.place.subject)
	if !s.register() {
		s.place.quit()
		return false
	}
	if !resumed {
		s.fares.Begin(s.site.Name(), s.visitor.Address, &policy, now)
	}
	ice, expire := s.relays.servers(s.site.Name(), s.id, &s.permit, now)
	trust := s.t.trust.changes.Load()
	said := s.opens(&signal.Welcome{
		Request: h.Request, Session: s.id, Ticket: s.ticket(now), Resumed: resumed, ServerTime: now.UnixMilli(), Site: config,
		ICEServers: ice, Expire: expire, VerifyKeys: s.t.trust.keysFor(s.site.Name()), Policy: policy,
		Limits: signal.Limits{
			MessageBytes: signal.MaxMessage, Swarms: s.t.cfg.MaxSwarms, MessagesPerSecond: s.t.cfg.MessagesPerSecond, Links: policy.MaxLinks,
		},
		UpdateEvery: s.t.cfg.UpdateInterval.Milliseconds(), StatsInterval: s.t.cfg.StatsInterval.Milliseconds(),
		TokenExpires: s.permit.end(),
	}, parts(s.t.trust.revoked.forSite(s.site.Name())))
	if !said { // what was registered goes when the socket has ended
		s.fail(h.Request, "internal", "What the tracker tells each viewer is larger than a message may be.", "Shorten the site's key rules or tracker.ice_servers.", 0)
		s.Close(closePolicy, "internal")
		return true
	}
	if s.t.trust.changes.Load() != trust { // told before the welcome, when the client did not listen yet: once more
		s.send(&signal.Keys{VerifyKeys: s.t.trust.keysFor(s.site.Name())})
		s.revoke(parts(s.t.trust.revoked.forSite(s.site.Name())))
	}
	s.rule.welcome()
	return true
}

// register makes the session reachable; an older socket of the same session is replaced.
func (s *session) register() bool {
	old, ok := s.t.sessions.enter(s)
	if !ok {
		s.fail(0, "draining", "This tracker is going away.", "Reconnect.", 1000)
		s.Drain()
		return false
	}
	s.t.cfg.Metrics.Add(defSessions, 1, s.site.Name())
	if old != nil {
		old.replaced()
	}
	return true
}

func (s *session) replaced() {
	s.fail(0, "replaced", "Another connection took this session.", "", 0)
	s.Close(closePolicy, "replaced")
}

// policyOf is what the site, and the token where it asks for one, allow one viewer. The control group is drawn from the session,
// the same at every tracker.
func policyOf(c *configured.Site, session signal.ID, grant *access.Grant) signal.Policy {
	p := c.Config().Policy
	role, unknown, upload, disk := p.Role, p.UnknownLine, p.UploadKbps, p.DiskBytes
	if grant != nil {
		if grant.Upload != 0 && (upload == 0 || grant.Upload < upload) {
			upload = grant.Upload
		}
		role, unknown, disk = configured.NarrowRole(role, grant.Role), cmp.Or(grant.Unknown, unknown), cmp.Or(grant.Disk, disk)
	}
	return signal.Policy{
		Role: role, ControlGroup: swarm.Draw(session) < p.ControlGroupPermille, Prefetch: p.Prefetch == configured.PrefetchAllow, WasteBytes: p.WasteBytes,
		MaxLinks: p.MaxLinks, Relay: p.Relay, Local: p.Local, SignedManifests: p.SignedManifests, UploadKbps: upload, UnknownLine: unknown,
		DiskBytes: disk,
	}
}
