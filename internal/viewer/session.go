package viewer

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// sessionState of the connection to the tracker.
type sessionState string

const (
	sessionIdle       sessionState = "idle"
	sessionConnecting sessionState = "connecting"
	sessionReady      sessionState = "ready"
	sessionWaiting    sessionState = "waiting"
	sessionRefused    sessionState = "refused"
	sessionStopped    sessionState = "stopped"
)

// sessionEvents hears of a session.
type sessionEvents interface {
	greeted()                // hello is out; a join may follow it at once
	welcome(*signal.Welcome) // a session is open: the first, a resumed one, or a new one after the old was forgotten
	pushed(signal.Message)   // introduce, signal, keys, revoke, policy, and errors that answer no request
	lost()                   // the socket is gone; another comes after a while
	refused(*signal.Error)   // the tracker does not take this viewer; nothing is tried again
}

// sessionOptions is what a session is made with.
type sessionOptions struct {
	loop   Loop
	dialer Dialer
	random *rand.Rand
	events sessionEvents
	url    string
	origin string // of the handshake
	hello  signal.Hello
	token  func() string // gives join tokens; nil: none
}

// session is the connection to a tracker: one socket at a time, hello and welcome, back-off with full jitter, resumption
// by ticket. Links do not depend on it once they are open.
type session struct {
	sessionOptions
	backoff  backoff
	outbox   outbox
	requests requests
	tokens   joinTokens

	state      sessionState
	socket     Socket
	generation int           // sockets are told apart by number: a late event of an old one is dropped
	offset     time.Duration // what to add to the clock for the tracker's time
	ticket     string
	timer      func()
	reconnects int
}

func newSession(o sessionOptions) *session {
	s := &session{sessionOptions: o, state: sessionIdle, backoff: backoff{loop: o.loop, random: o.random}}
	s.outbox = outbox{loop: o.loop, write: func(b []byte) { s.socket.Send(b) }}
	s.requests = requests{loop: o.loop, pending: map[int]*pendingJoin{}}
	s.tokens = joinTokens{loop: o.loop, random: o.random, source: o.token, after: s.after, show: s.showToken}
	return s
}

// heard is the socket's way into the loop. It satisfies SocketEvents.
type heard struct {
	s          *session
	generation int
}

func (h heard) on(f func()) {
	h.s.loop.Post(func() {
		if h.generation == h.s.generation {
			f()
		}
	})
}

// Opened implements SocketEvents.
func (h heard) Opened() { h.on(h.s.greet) }

// Message implements SocketEvents.
func (h heard) Message(text []byte) { h.on(func() { h.s.receive(text) }) }

// Lost implements SocketEvents.
func (h heard) Lost() { h.on(h.s.vanish) }

func (s *session) start() { s.connect() }

func (s *session) connect() {
	s.generation++
	s.state = sessionConnecting
	s.after(answerTimeout, s.vanish)
	s.socket = s.dialer.Dial(s.url, s.origin, heard{s, s.generation})
}

// after sets the session's one timer.
func (s *session) after(d time.Duration, f func()) {
	if s.timer != nil {
		s.timer()
	}
	s.timer = s.loop.After(d, f)
}

func (s *session) greet() {
	hello := s.hello
	hello.Token, hello.Ticket = s.tokens.current(), s.ticket
	s.write(&hello)
	s.events.greeted()
}

func (s *session) showToken(token string) {
	s.send(&signal.Token{Request: s.requests.id(), Token: token})
}

func (s *session) write(m signal.Message) {
	if b, err := signal.Encode(m); err == nil && s.socket != nil {
		s.socket.Send(b)
	}
}

// drop closes the socket and ends what hangs on it.
func (s *session) drop(next sessionState) {
	s.state = next
	s.generation++
	if s.timer != nil {
		s.timer()
		s.timer = nil
	}
	s.outbox.clear()
	if s.socket != nil {
		s.socket.Close()
		s.socket = nil
	}
	s.requests.lose()
}

// vanish is the loss of a socket without a word of the tracker.
func (s *session) vanish() {
	switch {
	case s.state != sessionReady:
		s.lose(0, 0)
	case s.backoff.awake():
		s.hurry()
	default:
		s.lose(0, lostSpread)
	}
}

// hurry has another socket come soon: not the tracker has gone, but this side's network.
func (s *session) hurry() {
	switch s.state {
	case sessionReady:
		s.backoff.attempt = 0
		s.lose(0, 0)
	case sessionConnecting: // from the network that is gone
		s.lose(0, 0)
	case sessionWaiting:
		s.after(s.backoff.soon(), s.connect)
	}
}

// awoke notes that this side did not run for a while: a session that is lost now, or was lost then, was lost for that.
func (s *session) awoke() {
	if s.backoff.awokeAt = s.loop.Now(); s.state == sessionWaiting {
		s.hurry()
	}
}

// lose backs off and tries again, over spread at least: the socket is of no use any more.
func (s *session) lose(after, spread time.Duration) {
	s.backoff.hold(after)
	ready := s.state == sessionReady
	s.drop(sessionWaiting)
	s.reconnects++
	s.after(s.backoff.next(ready, spread), s.connect)
	s.events.lost()
}

func (s *session) receive(text []byte) {
	m, err := signal.Decode(text)
	if err != nil {
		return // a message that is not understood is the tracker's fault, and nothing hangs on it alone
	}
	switch m := m.(type) {
	case *signal.Welcome:
		s.welcomed(m)
	case *signal.Error:
		s.failed(m)
	case *signal.Reconnect:
		s.lose(time.Duration(m.AfterMs)*time.Millisecond, 0)
	case *signal.Ticket:
		s.ticket = m.Ticket
	case *signal.Granted:
		if s.state == sessionReady {
			s.tokens.granted(m.TokenExpires, s.offset)
		}
	case *signal.Joined:
		if s.state == sessionReady { // no join counts before the welcome, also one that went out ahead of it
			s.requests.settle(m.Request, m, nil)
		}
	default:
		if s.state == sessionReady {
			s.events.pushed(m)
		}
	}
}

func (s *session) welcomed(m *signal.Welcome) {
	if s.state != sessionConnecting {
		return
	}
	s.timer()
	s.timer = nil
	now := s.loop.Now()
	s.state, s.backoff.readyAt = sessionReady, now
	s.offset = time.UnixMilli(m.ServerTime).Sub(now)
	s.ticket = m.Ticket
	s.outbox.limit(m.Limits.MessagesPerSecond)
	s.tokens.welcomed(m.TokenExpires, s.offset)
	s.events.welcome(m)
}

func (s *session) failed(m *signal.Error) {
	s.backoff.hold(time.Duration(m.RetryAfterMs) * time.Millisecond)
	switch {
	case strings.Contains(m.Code, "token") && s.token != nil && s.retry(m):
		return
	case m.Code == "bad-version", m.Code == "bad-site", m.Code == "bad-origin", m.Code == "bad-token", strings.HasPrefix(m.Code, "token-"):
		s.drop(sessionRefused)
		s.events.refused(m)
		return
	case m.Code == "replaced":
		s.ticket = ""
	case m.Code == "rate-limited":
		s.outbox.exhaust()
	}
	if !s.requests.settle(m.Request, nil, m) {
		s.events.pushed(m)
	}
}

// retry says whether there may be another token for what a tracker refused: for this session, or a few times for the next.
func (s *session) retry(m *signal.Error) bool {
	if s.state == sessionReady {
		s.tokens.expired(m)
		return true
	}
	if !s.tokens.another(s.backoff.attempt) {
		return false
	}
	s.lose(0, 0)
	return true
}

// send sends a message within the tracker's rate. It says whether there is a session.
func (s *session) send(m signal.Message) bool {
	if s.state != sessionReady {
		return false
	}
	b, err := signal.Encode(m)
	if err != nil {
		return false
	}
	_, is := m.(*signal.Signal)
	s.outbox.put(b, is)
	return true
}

// join asks to join a swarm; ahead of the welcome too, if it says so. then comes once, with either.
func (s *session) join(m signal.Join, then func(*signal.Joined, *signal.Error)) {
	m.Request = s.requests.id()
	if m.Ahead && s.state == sessionConnecting {
		s.write(&m)
	} else if !s.send(&m) {
		then(nil, &signal.Error{Code: "lost"})
		return
	}
	s.requests.await(m.Request, then)
}

// stop sends what is still queued and closes the socket.
func (s *session) stop() {
	if s.state == sessionReady {
		s.outbox.rush()
	}
	s.drop(sessionStopped)
}
