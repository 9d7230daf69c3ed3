package tracker

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cluster"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	maxBad      = 8   // malformed messages that end a session
	maxRateOver = 100 // refused messages that end a session
	ticketHalf  = 5 * time.Minute
	// maxKnown bounds the peers that a session may signal to: what it was introduced to and who signaled to it.
	maxKnown = 512
	// maxCandidates of one session to one peer and link (spec).
	maxCandidates = 64
)

// session is one viewer's socket and what the tracker knows of it. Receive handles its messages; deliveries from the bus
// come from other goroutines.
type session struct {
	t       *Tracker
	conn    *Socket
	visitor Visitor
	greeted *time.Timer // ends a socket without hello; nil once the session is open. Only Receive and End
	id      signal.ID
	site    *configured.Site

	limiter  *rate.Limiter
	serial   uint64 // of requests to homes; only Receive
	bad      int    // malformed so far; only Receive
	over     int    // refused for a rate so far; only Receive
	size     int    // bytes of the message at hand; only Receive
	ticketed time.Time
	minted   time.Time // when the credentials for relays were made; as ticketed
	subject  signal.ID // what the home of its token's subject is found by; zero: there is none. Set before the session is open
	entered  inside    // there; once the session is open only the ticker

	ruling sync.Mutex // held while a policy is made and said: the last one said is the one that holds

	mu       sync.Mutex
	policy   signal.Policy               // guarded by mu
	switched int64                       // guarded by mu: Tracker.switches as the policy knows them
	welcomed bool                        // guarded by mu: what is pushed is heard
	grant    *access.Grant               // guarded by mu: what its token allows; nil where the site asks for none
	lapsed   time.Time                   // guarded by mu: when it was told that the token has run out
	swarms   map[signal.ID]*membership   // guarded by mu
	known    map[signal.ID]*acquaintance // guarded by mu
	said     spent                       // guarded by mu: of fromSession
	heard    inflow                      // guarded by mu
	// What the trial of its site sees of it; nil: nothing, or not any more.
	watched *watched // guarded by mu
	// What a report of statistics may exceed the time since the one before.
	slack   time.Duration // guarded by mu
	slackAt time.Time     // guarded by mu: when slack was that
}

// membership is a session's part in one swarm. Guarded by session.mu.
type membership struct {
	join    bus.HomeRequest // as it was last sent, to be sent again when the home changes
	asked   string          // the role that the viewer asked for
	viewers int
	// manifest is the one that the swarm's seeds follow, as its home said last.
	manifest string
	home     signal.ID
	part     cluster.Part // of the swarm
	stats    time.Time    // of the last report, or of the first join
	started  bool         // its startup delay is known
	banned   bool         // its home said so last
	seen     time.Time    // when the home last heard of the member
}

// acquaintance is a peer that a session may signal to. Guarded by session.mu.
type acquaintance struct {
	bus.Target
	link       signal.ID // of the latest attempt
	candidates int       // of that link
	offered    signal.ID // link that this session offered and that was not answered yet
	said       spent     // of toPeer, by this session
	reported   bool      // by this session: said once in the log
}

// Accept takes a socket in, and says what receives its messages.
func (t *Tracker) Accept(c Conn, v Visitor) Receiver {
	conn, away := t.Admit(c, v, true)
	if conn == nil {
		return away
	}
	s := &session{
		t: t, conn: conn, visitor: v, swarms: map[signal.ID]*membership{}, known: map[signal.ID]*acquaintance{},
		limiter: rate.NewLimiter(rate.Limit(t.cfg.MessagesPerSecond), 2*t.cfg.MessagesPerSecond),
		slack:   reportSlack, slackAt: t.cfg.Now(),
	}
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
	s.conn.Gone(err)
	if s.greeted != nil {
		s.greeted.Stop()
	} else {
		s.end()
	}
	s.conn.Left()
}

// decode reads a message; nil stands for one that was refused. ok is false when the session is over.
func (s *session) decode(raw []byte) (m signal.Message, ok bool) {
	s.t.cfg.Metrics.Add(defSignaling, float64(len(raw)), "in")
	s.size = len(raw)
	if !s.limiter.AllowN(s.t.cfg.Now(), 1) {
		s.t.cfg.Metrics.Add(defMessages, 1, "unknown", "in")
		return nil, s.exceeds(0, "Too many messages.", "Send at most the number of messages a second that welcome names.")
	}
	m, err := signal.Decode(raw)
	var malformed *signal.MalformedError
	switch {
	case errors.As(err, &malformed):
		s.bad++
		s.t.cfg.Metrics.Add(defMessages, 1, "unknown", "in")
		s.fail(malformed.Request, "bad-message", "The "+malformed.Error()+".", "See spec/tracker-protocol.md.", 0)
		if s.bad >= maxBad {
			s.conn.Violates("bad-message")
			return nil, false
		}
		return nil, true
	case err != nil:
		return nil, false
	}
	if _, unknown := m.(*signal.Unknown); unknown {
		s.t.cfg.Metrics.Add(defMessages, 1, "unknown", "in")
		return nil, true
	}
	s.t.cfg.Metrics.Add(defMessages, 1, m.Type(), "in")
	return m, true
}

// exceeds refuses a message that is beyond a rate, and says whether the session goes on.
func (s *session) exceeds(request int, problem, hint string) bool {
	s.over++
	s.fail(request, "rate-limited", problem, hint, 1000)
	if s.over > maxRateOver {
		s.conn.Violates("rate-limited")
		return false
	}
	return true
}

// handle acts on one message and says whether the session goes on.
func (s *session) handle(m signal.Message) bool {
	began := s.t.cfg.Now()
	defer func() { s.t.cfg.Metrics.Observe(defHandle, s.t.cfg.Now().Sub(began).Seconds(), m.Type()) }()
	switch m := m.(type) {
	case *signal.Join:
		s.join(m)
	case *signal.Update:
		s.update(m)
	case *signal.Leave:
		s.leave(m)
	case *signal.Signal:
		return s.signal(m, s.size)
	case *signal.Stats:
		s.stats(m)
	case *signal.Token:
		return s.renew(m)
	case *signal.Hello:
		s.fail(m.Request, "bad-message", "The session has been opened already.", "Send hello once a connection.", 0)
	default:
		s.bad++
		s.fail(0, "bad-message", "A tracker sends messages of type "+m.Type()+", it does not take them.", "See spec/tracker-protocol.md.", 0)
		if s.bad >= maxBad {
			s.conn.Violates("bad-message")
			return false
		}
	}
	return true
}

var replyPool = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// send queues a message. A reader that is too slow loses its socket; what was not said it learns when it is back.
func (s *session) send(m signal.Message) {
	p := replyPool.Get().(*[]byte)
	defer replyPool.Put(p)
	if b := s.encode((*p)[:0], m); b != nil {
		*p = b
		s.write(m, b)
	}
}

// encode appends a message to a buffer; nil stands for one that cannot be said.
func (s *session) encode(to []byte, m signal.Message) []byte {
	b, err := signal.Append(to, m)
	if err != nil {
		s.t.cfg.Log.Error("message not sent", "type", m.Type(), "error", err)
		return nil
	}
	return b
}

// write queues an encoded message.
func (s *session) write(m signal.Message, b []byte) {
	s.t.cfg.Metrics.Add(defMessages, 1, m.Type(), "out")
	s.t.cfg.Metrics.Add(defSignaling, float64(len(b)), "out")
	s.conn.Send(b)
}

func (s *session) fail(request int, code, message, hint string, retryMs int64) {
	s.t.cfg.Metrics.Add(defErrors, 1, code)
	s.send(&signal.Error{Request: request, Code: code, Message: message, Hint: hint, RetryAfterMs: retryMs})
}

// end takes the session out of everything.
func (s *session) end() {
	s.unwatch(s.t.cfg.Now(), true)
	current := s.t.sessions.leave(s)
	s.t.cfg.Metrics.Add(defSessions, -1, s.site.Name())
	s.conn.Done()
	if !current {
		return // another socket took the session; its swarms are its own now
	}
	s.mu.Lock()
	left := s.swarms
	s.swarms = map[signal.ID]*membership{}
	s.mu.Unlock()
	s.quit()
	for _, m := range left {
		s.tellHome(m, &bus.HomeRequest{Op: bus.OpLeave})
	}
}

// maintain renews the ticket, and joins swarms again whose home has changed.
func (s *session) maintain(now time.Time) {
	s.lapse(now)
	s.obey()
	s.unwatch(now, false)
	s.stay(now)
	s.mu.Lock()
	renew := now.Sub(s.ticketed) >= ticketHalf
	if renew {
		s.ticketed = now
	}
	mint := s.mintsAgain(now)
	var again []*membership
	var keep []keepAlive
	for _, m := range s.swarms {
		switch home := s.t.HomeOf(m.key()); {
		case home != m.home:
			m.seen = now
			again = append(again, m)
		case now.Sub(m.seen) > s.t.cfg.UpdateInterval:
			// The socket lives (its pings are answered) and the page says nothing, as throttled tabs do.
			m.seen = now
			r := m.join
			r.Op, r.Rejoin = bus.OpUpdate, true
			keep = append(keep, keepAlive{m, r})
		}
	}
	s.mu.Unlock()
	if renew {
		s.send(&signal.Ticket{Ticket: s.ticket(now)})
	}
	if mint {
		ice, expire := s.iceServers(now)
		s.send(&signal.SetServers{ICEServers: ice, Expire: expire})
	}
	for _, m := range again {
		s.rejoin(m, "home")
	}
	for _, k := range keep {
		s.tellHome(k.member, &k.request)
	}
}

// keepAlive is an update that the tracker sends for a silent viewer. It says all that a join does, so that a home that
// forgot the member takes it in again.
type keepAlive struct {
	member  *membership
	request bus.HomeRequest
}

// rttMs is the round trip of the socket, 0 while it is unknown.
func (s *session) rttMs() int {
	if c, ok := s.conn.Conn.(interface{ RTT() time.Duration }); ok {
		return int(c.RTT().Milliseconds())
	}
	return 0
}

func (s *session) ticket(now time.Time) string {
	return s.t.tickets.issue(stub{session: s.id, tracker: s.t.id, expires: now.Add(s.t.cfg.TicketLife + ticketHalf), site: s.site.Name()})
}
