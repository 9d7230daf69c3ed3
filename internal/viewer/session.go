package viewer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Times of a session (spec/tracker-protocol.md).
const (
	answerTimeout = 10 * time.Second // for a welcome, and for the answer to a request
	settledAfter  = time.Minute      // of a session: the back-off starts from the beginning
	backoffBase   = 500 * time.Millisecond
	backoffCap    = 30 * time.Second
	lostSpread    = 6 * time.Second // over which a session comes back that was lost without a word: mostly others were lost with it
	tokenBackoff  = 2 * time.Second // the first, for another join token
	tokenTries    = 5               // of one that the tracker takes, for one session after the other
	queueLength   = 500             // outgoing messages kept while the tracker's rate limit holds them back
	reserved      = 4               // messages of a second that signals leave to all others: what strangers have this viewer say is not to hold up its own words
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

// session is the connection to a tracker: one socket at a time, hello and welcome, back-off with full jitter, resumption
// by ticket. Links do not depend on it once they are open.
type session struct {
	loop   Loop
	dialer Dialer
	random *rand.Rand
	events sessionEvents
	url    string
	origin string // of the handshake
	hello  signal.Hello
	token  func() string // gives join tokens; nil: none

	state      sessionState
	socket     Socket
	generation int // sockets are told apart by number: a late event of an old one is nobody's
	attempt    int // exponent of the back-off
	notBefore  time.Time
	readyAt    time.Time
	awokeAt    time.Time     // when this side ran again
	offset     time.Duration // what to add to the clock for the tracker's time
	ticket     string
	timer      func()
	pending    map[int]*joining
	nextID     int
	queue      [][]byte
	signals    [][]byte // wait for all others
	sent, rate int      // messages in this second, and how many may be
	second     func()
	reconnects int

	tokenEnd int64     // of the token in hand, ms in the tracker's time; 0: none is asked for
	renewAt  time.Time // until when it is shown again; then another is asked for
	renewals int       // tries without success
}

// joining is a join that waits for its answer.
type joining struct {
	then func(*signal.Joined, *signal.Error)
	stop func()
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

func (s *session) start() {
	s.state, s.pending = sessionIdle, map[int]*joining{}
	s.connect()
}

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
	if s.token != nil && !s.loop.Now().Before(s.renewAt) {
		s.hello.Token = s.token()
	}
	hello := s.hello
	hello.Ticket = s.ticket
	s.write(&hello)
	s.events.greeted()
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
	for _, stop := range []func(){s.timer, s.second} {
		if stop != nil {
			stop()
		}
	}
	s.timer, s.second, s.sent, s.queue, s.signals = nil, nil, 0, nil, nil
	if s.socket != nil {
		s.socket.Close()
		s.socket = nil
	}
	ids := make([]int, 0, len(s.pending))
	for id := range s.pending {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if j := s.settle(id); j != nil {
			j.then(nil, &signal.Error{Code: "lost"})
		}
	}
}

// vanish is the loss of a socket of which nobody said that it would end.
func (s *session) vanish() {
	switch {
	case s.state != sessionReady:
		s.lose(0, 0)
	case s.loop.Now().Sub(s.awokeAt) < asleepAfter:
		s.hurry()
	default:
		s.lose(0, lostSpread)
	}
}

// hurry has another socket come soon: not the tracker has gone, but this side's network.
func (s *session) hurry() {
	switch s.state {
	case sessionReady:
		s.attempt = 0
		s.lose(0, 0)
	case sessionConnecting: // from the network that is gone
		s.lose(0, 0)
	case sessionWaiting:
		soon := time.Duration(s.random.Float64() * float64(backoffBase))
		s.after(max(soon, s.notBefore.Sub(s.loop.Now())), s.connect)
	}
}

// awoke notes that this side did not run for a while: a session that is lost now, or was lost then, was lost for that.
func (s *session) awoke() {
	if s.awokeAt = s.loop.Now(); s.state == sessionWaiting {
		s.hurry()
	}
}

// lose backs off and tries again, over spread at least: the socket is of no use any more.
func (s *session) lose(after, spread time.Duration) {
	now := s.loop.Now()
	s.hold(after)
	if s.state == sessionReady && now.Sub(s.readyAt) >= settledAfter {
		s.attempt = 0
	}
	s.drop(sessionWaiting)
	jitter := time.Duration(s.random.Float64() * float64(max(spread, min(backoffCap, backoffBase<<s.attempt))))
	s.attempt = min(s.attempt+1, 16)
	s.reconnects++
	s.after(max(jitter, s.notBefore.Sub(now)), s.connect)
	s.events.lost()
}

// hold keeps the next attempt off for a while.
func (s *session) hold(d time.Duration) {
	if until := s.loop.Now().Add(d); until.After(s.notBefore) {
		s.notBefore = until
	}
}

func (s *session) settle(id int) *joining {
	j := s.pending[id]
	delete(s.pending, id)
	if j != nil {
		j.stop()
	}
	return j
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
		s.granted(m.TokenExpires)
	case *signal.Joined:
		if s.state != sessionReady {
			return // nobody is joined before the welcome, whatever went out ahead of it
		}
		if j := s.settle(m.Request); j != nil {
			j.then(m, nil)
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
	s.state, s.readyAt = sessionReady, now
	s.offset = time.UnixMilli(m.ServerTime).Sub(now)
	s.ticket = m.Ticket
	// One below the tracker's limit, so that its own clock never sees one too many.
	s.rate = max(1, m.Limits.MessagesPerSecond-1)
	s.tokenEnd, s.renewAt, s.renewals = 0, time.Time{}, 0
	s.granted(m.TokenExpires)
	s.events.welcome(m)
}

func (s *session) failed(m *signal.Error) {
	s.hold(time.Duration(m.RetryAfterMs) * time.Millisecond)
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
		s.sent = s.rate
	}
	if j := s.settle(m.Request); j != nil {
		j.then(nil, m)
		return
	}
	s.events.pushed(m)
}

// send sends a message within the tracker's rate, or at once: last words do not wait. It says whether there is a session.
func (s *session) send(m signal.Message, atOnce bool) bool {
	if s.state != sessionReady {
		return false
	}
	b, err := signal.Encode(m)
	line := &s.queue
	if _, is := m.(*signal.Signal); is {
		line = &s.signals
	}
	switch {
	case err != nil:
		return false
	case atOnce:
		s.socket.Send(b)
		return true
	case len(*line) < queueLength:
		*line = append(*line, b)
	}
	s.flush()
	return true
}

// flush sends what this second allows, and the rest in the next.
func (s *session) flush() {
	for s.sent < s.rate && len(s.queue) > 0 {
		s.sent++
		s.socket.Send(s.queue[0])
		s.queue = s.queue[1:]
	}
	for s.sent < max(1, s.rate-reserved) && len(s.signals) > 0 {
		s.sent++
		s.socket.Send(s.signals[0])
		s.signals = s.signals[1:]
	}
	if s.second == nil {
		s.second = s.loop.After(time.Second, func() {
			s.second, s.sent = nil, 0
			if len(s.queue)+len(s.signals) > 0 {
				s.flush()
			}
		})
	}
}

// join asks to join a swarm; ahead of the welcome too, if it says so. then comes once, with either.
func (s *session) join(m signal.Join, then func(*signal.Joined, *signal.Error)) {
	s.nextID++
	id := s.nextID
	m.Request = id
	if m.Ahead && s.state == sessionConnecting {
		s.write(&m)
	} else if !s.send(&m, false) {
		then(nil, &signal.Error{Code: "lost"})
		return
	}
	s.pending[id] = &joining{then, s.loop.After(answerTimeout, func() {
		if j := s.settle(id); j != nil {
			j.then(nil, &signal.Error{Code: "timeout"})
		}
	})}
}

// stop sends what is still queued and closes the socket.
func (s *session) stop() {
	if s.state == sessionReady {
		for _, b := range slices.Concat(s.queue, s.signals) {
			s.socket.Send(b)
		}
	}
	s.drop(sessionStopped)
}
