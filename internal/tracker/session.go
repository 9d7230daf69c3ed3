package tracker

import (
	"slices"
	"time"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// ticketEvery is how often a session gets another ticket. A browser sees no pings: it takes a tracker for gone that sends nothing
// for two and a half times as long (spec/tracker-protocol.md).
const ticketEvery = time.Minute

// session is one viewer: its socket, and the parts that know of it what the tracker has to. Receive handles its messages; deliveries
// from the bus come from other goroutines, and so does the ticker. What the session itself has is set before it is open.
type session struct {
	t *Tracker
	connection
	visitor  visit
	greeted  *time.Timer // ends a socket without hello; nil once the session is open. Only Receive and End
	id       signal.ID
	site     *configured.Site
	ticketed time.Time // once the session is open only the ticker

	permit permit
	rule   ruling
	place  place
	swarms memberships
	peers  acquaintances
	relays relays
	slack  slack
	fares  Observer
}

// visit is where a session comes from. Only Receive asks for its network.
type visit struct {
	Visitor
	subnet string
}

// network is the visitor's subnet as replicas may know it. Every signal to a viewer names it.
func (v *visit) network(k *secrets) string {
	if v.subnet == "" {
		v.subnet = k.Subnet(v.Visitor)
	}
	return v.subnet
}

func (t *Tracker) newSession(conn *Socket, v Visitor) *session {
	homes := &asker{replica: t.replica, home: t.home}
	return &session{
		t: t, connection: newConnection(conn, &t.cfg), visitor: visit{Visitor: v},
		permit: permit{cfg: &t.cfg}, place: place{asker: homes}, swarms: memberships{asker: homes, all: map[signal.ID]*membership{}},
		peers:  acquaintances{cfg: &t.cfg, learned: t.learned, known: map[signal.ID]*acquaintance{}},
		relays: relays{replica: t.replica}, slack: slack{reportSlack, t.cfg.Now()}, fares: t.judge.Observer(),
	}
}

// Accept takes a socket in, and says what receives its messages.
func (t *Tracker) Accept(c Conn, v Visitor) Receiver {
	conn, away := t.Admit(c, v, true)
	if conn == nil {
		return away
	}
	s := t.newSession(conn, v)
	s.greeted = conn.Silent(t.cfg.HelloTimeout, "no hello")
	return s
}

// Receive implements Receiver.
func (s *session) Receive(raw []byte) bool {
	m, ok := s.decode(raw)
	switch {
	case !ok || m == nil:
		return ok
	case s.greeted != nil:
		return s.greet(m)
	}
	return s.handle(m)
}

// End implements Receiver.
func (s *session) End(err error) {
	s.Gone(err)
	if s.greeted != nil {
		s.greeted.Stop()
	} else {
		s.end()
	}
	s.Left()
}

// noLink is what is wrong with a message about the link zero, which is none.
const noLink = "The link is zero."

// handle acts on one message and says whether the session goes on.
func (s *session) handle(m signal.Message) bool {
	began := s.t.cfg.Now()
	defer func() { s.t.cfg.Metrics.Observe(defHandle, s.t.cfg.Now().Sub(began).Seconds(), m.Type()) }()
	switch m := m.(type) {
	case *signal.Join:
		if slices.ContainsFunc(m.Offers, func(o signal.Offer) bool { return o.Link.IsZero() }) {
			return s.misuses(m.Request, noLink)
		}
		s.join(m)
	case *signal.Update:
		s.update(m)
	case *signal.Leave:
		s.leave(m)
	case *signal.Signal:
		if m.Link.IsZero() {
			return s.misuses(m.Request, noLink)
		}
		return s.signal(m, s.size)
	case *signal.Stats:
		s.stats(m)
	case *signal.Token:
		return s.renew(m)
	case *signal.Hello:
		s.fail(m.Request, "bad-message", "The session has been opened already.", "Send hello once a connection.", 0)
	default:
		return s.misuses(0, "A tracker sends messages of type "+m.Type()+", it does not take them.")
	}
	return true
}

// end takes the session out of everything.
func (s *session) end() {
	s.fares.Look(s.site.Name(), s.t.cfg.Now(), true)
	current := s.t.sessions.leave(s)
	s.t.cfg.Metrics.Add(defSessions, -1, s.site.Name())
	s.Done()
	left := s.swarms.clear()
	if !current {
		return // another socket took the session; its swarms are its own now
	}
	s.place.quit()
	for _, m := range left {
		s.swarms.tellHome(m, &bus.HomeRequest{Op: bus.OpLeave})
	}
}

// maintain does what time brings, once a beat.
func (s *session) maintain(now time.Time) {
	s.lapse(now)
	// Sessions take turns at being maintained, so that not all viewers of a large site that is switched close their links, or come for
	// new ones, in one moment.
	if s.rule.stale(s.t.switches) {
		s.abide("switch")
	}
	s.fares.Look(s.site.Name(), now, false)
	s.place.stay(now)
	if now.Sub(s.ticketed) >= ticketEvery {
		s.ticketed = now
		s.send(&signal.Ticket{Ticket: s.ticket(now)})
	}
	if s.relays.due(now) {
		s.sendServers(now)
	}
	s.swarms.maintain(now)
}

// sendServers tells the viewer its ICE servers anew.
func (s *session) sendServers(now time.Time) {
	ice, expire := s.relays.servers(s.site.Name(), s.id, &s.permit, now)
	s.send(&signal.SetServers{ICEServers: ice, Expire: expire})
}

func (s *session) ticket(now time.Time) string {
	return s.t.tickets.issue(stub{session: s.id, tracker: s.t.id, expires: now.Add(s.t.cfg.TicketLife + ticketEvery), site: s.site.Name()})
}
