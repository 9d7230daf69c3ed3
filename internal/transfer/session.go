package transfer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Times of the protocol (spec/peer-protocol.md).
const (
	PingAfter    = 5 * time.Second // a round, after which a ping goes out when nothing else did, or nothing came
	HelloRounds  = 2               // without the other side's hello end a link
	SilentRounds = 4               // without a message end it
)

// LinkError is why a link must end: the reason to count and the one to tell.
type LinkError struct {
	Close peer.CloseReason
	Bye   peer.ByeReason
	Cause error
	Limit peer.Limit // that was overrun, "" if none was
}

func (e *LinkError) Error() string {
	if e.Limit != "" {
		return fmt.Sprintf("link ends (%s): %v: %s", e.Close, e.Cause, e.Limit)
	}
	return fmt.Sprintf("link ends (%s): %v", e.Close, e.Cause)
}

// Unwrap is the cause.
func (e *LinkError) Unwrap() error { return e.Cause }

// Handler receives what a session does not deal with itself: after the hellos, every message but hello, ping, pong
// and bye. An error ends the link; one that is no *LinkError as protocol-error.
type Handler interface {
	Ready(hello peer.Hello) error
	Message(peer.Message) error
	Piece(peer.Data) error
}

// Lane receives the messages of the background transport, from the goroutines that read the link. Errors are as with
// Handler.
type Lane interface {
	BackgroundData(b []byte) error
	Ack(b []byte) error
}

// Session is the life of one link above its transport: hello, version, keepalive, limits. Its methods are safe for
// concurrent use, except that Control must not run beside itself.
type Session struct {
	// Pong, if set before Open, hears of each pong: the nonce of its ping and the time that it took, as it claims.
	Pong func(nonce uint32, took time.Duration)
	// Lane, if set before Open, takes the messages of the background transport, and the hello must say so; without it they
	// are unknown.
	Lane Lane

	// Overrun, if set before Open, hears of the limit that ends the link.
	Overrun func(peer.Limit)

	// Said, if set before Open, is that the hello has gone out already, with the answer.
	Said bool

	link    Link
	hello   peer.Hello
	theirs  swarm.ID // the peer ID that the signal gave
	handler Handler
	now     func() time.Time

	mu      sync.Mutex
	alive   keepalive // guarded by mu
	unknown int       // guarded by mu
	nonce   uint32    // guarded by mu
	may     allowance // guarded by mu: what the other side may say
}

// NewSession makes the session of a link; hello is what this side says, theirs the other side's peer ID.
func NewSession(link Link, hello peer.Hello, theirs swarm.ID, handler Handler, now func() time.Time) *Session {
	return &Session{link: link, hello: hello, theirs: theirs, handler: handler, now: now}
}

// Open is called when the link has opened: the hello goes out, if it has not.
func (s *Session) Open() {
	now := s.now()
	s.mu.Lock()
	s.alive.round = now
	s.mu.Unlock()
	if !s.Said {
		s.Send(s.hello)
	}
}

// Send writes a control message. A message out of limits is a fault of the caller and is not sent.
func (s *Session) Send(m peer.Message) {
	b, err := peer.Append(nil, m)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.alive.spoke = true
	s.may.said(m.Type(), peer.Entries(m))
	s.mu.Unlock()
	s.link.SendControl(b)
}

// End closes the link and tells the other side why.
func (s *Session) End(reason peer.CloseReason, bye peer.ByeReason) {
	b, err := peer.Append(nil, peer.Bye{Reason: bye})
	if err != nil {
		b = nil
	}
	s.link.Close(reason, b)
}

// Control takes a message of the control channel.
func (s *Session) Control(b []byte) {
	var m peer.Message
	err := s.misplaced(b, 0)
	if err == nil {
		m, err = peer.Decode(peer.Control, b)
		if peer.IsUnknown(err) && s.hello.Flags&peer.SpeaksParts != 0 {
			m, err = peer.DecodeParts(peer.Control, b)
		}
	}
	if err == nil {
		err = s.handle(m)
	}
	s.judge(err)
}

// Data takes a message of a data channel.
func (s *Session) Data(b []byte) {
	if s.Lane != nil && len(b) > 0 && peer.Type(b[0]) == peer.TypeBackgroundData {
		if s.hear() {
			s.judge(s.Lane.BackgroundData(b))
		}
		return
	}
	var m peer.Data
	err := s.misplaced(b, peer.TypeBackgroundData)
	if err == nil {
		m, err = peer.DecodeData(b, s.link.MaxMessage())
	}
	if err == nil {
		if s.hear() {
			err = s.handler.Piece(m)
		}
	}
	s.judge(err)
}

// Ack takes a message of the ack channel.
func (s *Session) Ack(b []byte) {
	if s.Lane != nil && len(b) > 0 && peer.Type(b[0]) == peer.TypeAck {
		if s.hear() {
			s.judge(s.Lane.Ack(b))
		}
		return
	}
	err := s.misplaced(b, peer.TypeAck)
	if err == nil {
		_, err = peer.Decode(peer.Ack, b)
	}
	s.judge(err)
}

// misplaced refuses a message of the background transport on a channel that is not its own.
func (s *Session) misplaced(b []byte, own peer.Type) error {
	if s.Lane == nil || len(b) == 0 {
		return nil
	}
	if t := peer.Type(b[0]); t != own && (t == peer.TypeBackgroundData || t == peer.TypeAck) {
		return &peer.MalformedError{Type: t, Reason: peer.ReasonChannel}
	}
	return nil
}

// hear notes that the other side lives; false before its hello, when nothing else is acted on.
func (s *Session) hear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive.hear()
}

// allow counts a control message, and says which limit it is beyond.
func (s *Session) allow(m peer.Message) peer.Limit {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.may.heard(m.Type(), peer.Entries(m), now)
}

// served says that a request of the other side has been sent whole.
func (s *Session) served() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.may.served()
}

// Fail ends the link for an error as one of Handler.
func (s *Session) Fail(err error) { s.judge(err) }

func (s *Session) judge(err error) {
	var ending *LinkError
	switch {
	case err == nil:
	case peer.IsUnknown(err):
		s.mu.Lock()
		s.unknown++
		over := s.unknown > peer.MaxUnknown
		s.alive.hear()
		s.mu.Unlock()
		if over {
			s.End(peer.CloseProtocol, peer.ByeProtocolError)
		}
	case errors.As(err, &ending):
		if ending.Limit != "" && s.Overrun != nil {
			s.Overrun(ending.Limit)
		}
		s.End(ending.Close, ending.Bye)
	default:
		s.End(peer.CloseProtocol, peer.ByeProtocolError)
	}
}

func (s *Session) handle(m peer.Message) error {
	ready := s.hear()
	if over := s.allow(m); over != "" {
		return Overrun(over)
	}
	hello, isHello := m.(peer.Hello)
	switch {
	case isHello && ready:
		return errors.New("a second hello")
	case isHello:
		return s.meet(hello)
	}
	switch m := m.(type) {
	case peer.Bye:
		s.link.Close(peer.CloseClosed, nil)
		return nil
	case peer.Ping:
		s.Send(peer.Pong(m))
		return nil
	case peer.Pong:
		if s.Pong != nil {
			s.Pong(m.Nonce, time.Duration(uint32(s.now().UnixMicro())-m.SentAt)*time.Microsecond)
		}
		return nil
	}
	if !ready {
		return errors.New("a message before hello")
	}
	return s.handler.Message(m)
}

func (s *Session) meet(hello peer.Hello) error {
	if _, err := peer.Negotiate(s.hello, hello); err != nil {
		return &LinkError{Close: peer.CloseVersion, Bye: peer.ByeProtocolError, Cause: err}
	}
	if hello.Peer != s.theirs || hello.Swarm != s.hello.Swarm {
		return errors.New("hello with another peer or swarm than the signal")
	}
	s.mu.Lock()
	s.alive.meet()
	s.mu.Unlock()
	return s.handler.Ready(hello)
}

// Tick keeps the link alive or ends it; call it about once a second.
func (s *Session) Tick() {
	now := s.now()
	s.mu.Lock()
	over, ping := s.alive.tick(now)
	s.mu.Unlock()
	switch {
	case over:
		s.End(peer.CloseTimeout, peer.ByeOverLimit)
	case ping:
		s.Ping()
	}
}

// Ping asks for a pong and returns the nonce that it will carry, which no other does.
func (s *Session) Ping() (nonce uint32) {
	s.mu.Lock()
	s.nonce++
	nonce = s.nonce
	s.mu.Unlock()
	s.Send(peer.Ping{Nonce: nonce, SentAt: uint32(s.now().UnixMicro())})
	return nonce
}
