package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// Session is a session of an arm.
type Session struct {
	ID  string
	Arm *Arm

	up   chan struct{} // closed when it has come up
	down chan struct{} // closed when it is down again, or never came up, or its arm is gone
	gone chan struct{} // closed when it is destroyed, or its arm is gone

	mu     sync.Mutex
	isUp   bool          // guarded by mu
	took   time.Duration // guarded by mu: from the peer's description until it was up, by the arm
	reason string        // guarded by mu: why it is down; empty: it is not
}

// Create has an arm make a session.
func (a *Arm) Create(ctx context.Context, id string, body armwire.SessionBody) (*Session, error) {
	s := &Session{ID: id, Arm: a, up: make(chan struct{}), down: make(chan struct{}), gone: make(chan struct{})}
	a.mu.Lock()
	known := a.sessions[id] != nil
	if !known {
		a.sessions[id] = s
	}
	a.mu.Unlock()
	if known {
		return nil, armwire.Fail(armwire.Exists, "session %s of %s", id, a.Name)
	}
	if _, err := a.Call(ctx, armwire.CreateSession, id, body); err != nil {
		a.mu.Lock()
		delete(a.sessions, id)
		a.mu.Unlock()
		if ctx.Err() != nil { // the arm makes it yet, and no client would end it; what it answers is passed over
			_ = a.say(armwire.DestroySession, "late", id, nil)
		}
		return nil, err
	}
	return s, nil
}

// Destroy ends the session, and returns when its arm has nothing of it any more.
func (s *Session) Destroy(ctx context.Context) error {
	_, err := s.Arm.Call(ctx, armwire.DestroySession, s.ID, nil)
	var refused *armwire.Error
	if err != nil && !(errors.As(err, &refused) && refused.Code == armwire.UnknownSession) {
		return err
	}
	select {
	case <-s.gone:
		return nil
	case <-s.Arm.Gone():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Down is closed when the session has ended; Reason says why.
func (s *Session) Down() <-chan struct{} { return s.down }

// Reason says why the session is down: of the event hangup, or arm-lost; empty while it is not.
func (s *Session) Reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Took is how long it took to come up from the peer's description on; 0 if it has not.
func (s *Session) Took() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took
}

// ErrDown says that a session ended before it came up.
var ErrDown = errors.New("load: the session did not come up")

// WaitUp waits until the session is up.
func (s *Session) WaitUp(ctx context.Context) error {
	select {
	case <-s.up:
		return nil
	case <-s.down:
		return s.downError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) downError() error {
	return fmt.Errorf("%w: %s of %s: %s", ErrDown, s.ID, s.Arm.Name, s.Reason())
}

// WaitBothUp waits until both ends of a connection are up, or one of them is down.
func WaitBothUp(ctx context.Context, one, two *Session) error {
	for _, s := range []*Session{one, two} {
		select {
		case <-s.up:
		case <-one.down:
			return one.downError()
		case <-two.down:
			return two.downError()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// hear takes an event of the session.
func (s *Session) hear(m armwire.Message) *armwire.Error {
	switch m.Kind {
	case armwire.WebRTCUp:
		b, bad := armwire.DecodeBody[armwire.UpBody](m)
		if bad != nil {
			return bad
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.isUp && s.reason == "" {
			s.isUp, s.took = true, time.Duration(b.Took)*time.Microsecond
			close(s.up)
		}
	case armwire.Hangup:
		b, bad := armwire.DecodeBody[armwire.HangupBody](m)
		if bad != nil {
			return bad
		}
		s.end(b.Reason)
	case armwire.Destroyed:
		s.end("destroyed")
		s.Arm.mu.Lock()
		delete(s.Arm.sessions, s.ID)
		s.Arm.mu.Unlock()
		close(s.gone) // once: the arm does not know the session any more
	}
	return nil
}

func (s *Session) end(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason == "" {
		s.reason = reason
		close(s.down)
	}
}

// describe asks for a description.
func (s *Session) describe(ctx context.Context, kind armwire.Kind, b armwire.OfferBody) (armwire.DescriptionBody, error) {
	whole := false
	b.Trickle = &whole
	m, err := s.Arm.Call(ctx, kind, s.ID, b)
	if err != nil {
		return armwire.DescriptionBody{}, err
	}
	d, bad := armwire.DecodeBody[armwire.DescriptionBody](m)
	if bad != nil {
		return d, bad
	}
	return d, nil
}

// Connect negotiates a connection between two sessions of arms; Session.WaitUp says when it is there.
func Connect(ctx context.Context, offerer, answerer *Session, offer armwire.OfferBody) error {
	d, err := offerer.describe(ctx, armwire.GenerateOffer, offer)
	if err != nil {
		return err
	}
	if _, err := answerer.Arm.Call(ctx, armwire.HandleOffer, answerer.ID, d); err != nil {
		return err
	}
	if d, err = answerer.describe(ctx, armwire.GenerateAnswer, armwire.OfferBody{}); err != nil {
		return err
	}
	_, err = offerer.Arm.Call(ctx, armwire.HandleAnswer, offerer.ID, d)
	return err
}
