package load

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// Arm is an arm that has registered.
type Arm struct {
	Name        string
	Cores       int
	MaxSessions int
	PID         int // of the arm's machine; 0: it did not say

	c    *Controller
	conn *wsconn.Conn
	late *time.Timer
	gone chan struct{} // closed when the arm is

	mu         sync.Mutex
	registered bool                            // guarded by mu
	next       int64                           // guarded by mu: transaction
	waiting    map[string]chan armwire.Message // guarded by mu
	sessions   map[string]*Session             // guarded by mu
	err        error                           // guarded by mu: why it is gone
	heard      func(*Arm, armwire.Message)     // guarded by mu: sees events
	statistics armwire.StatisticsBody          // guarded by mu: the last
	stray      int64                           // guarded by mu: replies and events that fit nothing
}

func newArm(c *Controller, conn *wsconn.Conn) *Arm {
	return &Arm{c: c, conn: conn, gone: make(chan struct{}), waiting: map[string]chan armwire.Message{}, sessions: map[string]*Session{}}
}

// Gone is closed when the arm is gone; Err says why.
func (a *Arm) Gone() <-chan struct{} { return a.gone }

// Err says why the arm is gone; nil while it is there.
func (a *Arm) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Listen has f see the arm's events from now on, in the order in which they come. f must not wait.
func (a *Arm) Listen(f func(*Arm, armwire.Message)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = f
}

// Statistics are the last that the arm sent.
func (a *Arm) Statistics() armwire.StatisticsBody {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.statistics
}

// Receive implements wsconn.Receiver. An arm that does not keep to the protocol is let go.
func (a *Arm) Receive(b []byte) bool {
	m, bad := armwire.Decode(b)
	a.mu.Lock()
	registered := a.registered
	a.mu.Unlock()
	switch {
	case bad != nil && m.Transaction == "" && bad.Code == armwire.UnknownCommand:
		return true // an event of a later version
	case bad != nil:
		return a.fail(bad)
	case !registered:
		return a.register(m)
	case m.IsReply():
		a.mu.Lock()
		reply := a.waiting[m.Transaction]
		delete(a.waiting, m.Transaction)
		a.mu.Unlock()
		if reply == nil {
			return a.strayed()
		}
		reply <- m
		return true
	case m.IsEvent():
		return a.event(m)
	}
	return a.fail(armwire.Fail(armwire.UnknownCommand, "%s is not for a controller", m.Kind))
}

// mostStray is how many replies and events that fit nothing an arm may send; sessions that have just ended leave a few.
const mostStray = 100_000

func (a *Arm) strayed() bool {
	a.mu.Lock()
	a.stray++
	most := a.stray > mostStray
	a.mu.Unlock()
	return !most || a.fail(armwire.Fail(armwire.BadMessage, "%d messages of sessions and transactions that are not there", mostStray))
}

// fail lets the arm go because of what it said.
func (a *Arm) fail(err error) bool {
	a.mu.Lock()
	if a.err == nil {
		a.err = err
	}
	a.mu.Unlock()
	a.conn.Close(wsconn.ClosePolicy, err.Error()[:min(len(err.Error()), 100)])
	return false
}

func (a *Arm) register(m armwire.Message) bool {
	a.late.Stop()
	if m.Kind != armwire.Register || m.Transaction == "" {
		return a.fail(armwire.Fail(armwire.BadMessage, "an arm registers first"))
	}
	b, bad := armwire.DecodeCommand[armwire.RegisterBody](m)
	if bad == nil {
		bad = a.c.admit(a, b)
	}
	if bad != nil {
		_ = a.say(armwire.Failure, m.Transaction, "", bad)
		return a.fail(bad)
	}
	a.mu.Lock()
	a.registered = true
	a.mu.Unlock()
	if a.say(armwire.Success, m.Transaction, "", nil) != nil {
		return false
	}
	select {
	case a.c.arrived <- a:
		return true
	default: // no run has taken the last maxArms that came: waiting for one would hold the controller's end
		return a.fail(armwire.Fail(armwire.Limit, "no more arms are taken"))
	}
}

func (a *Arm) say(kind armwire.Kind, transaction, id string, body any) error {
	b, err := armwire.Encode(kind, transaction, id, body)
	if err != nil {
		return err
	}
	return a.conn.Write(b)
}

// event deals with what an arm tells unasked.
func (a *Arm) event(m armwire.Message) bool {
	a.mu.Lock()
	s, heard := a.sessions[m.ID], a.heard
	a.mu.Unlock()
	switch {
	case m.Kind == armwire.Statistics:
		b, bad := armwire.DecodeBody[armwire.StatisticsBody](m)
		if bad != nil {
			return a.fail(bad)
		}
		a.mu.Lock()
		a.statistics = b
		a.mu.Unlock()
	case m.ID != "" && s == nil:
		return a.strayed()
	case s != nil:
		if bad := s.hear(m); bad != nil {
			return a.fail(bad)
		}
	}
	if heard != nil {
		heard(a, m)
	}
	return true
}

// End implements wsconn.Receiver.
func (a *Arm) End(err error) {
	a.late.Stop()
	a.mu.Lock()
	if a.err == nil {
		a.err = fmt.Errorf("%w: %w", ErrArm, err)
	}
	lost := a.sessions
	a.sessions = map[string]*Session{}
	a.mu.Unlock()
	close(a.gone)
	for _, s := range lost {
		s.end("arm-lost")
	}
	a.c.forget(a)
}

// Call sends a command and waits for its reply. What the arm refuses is an *armwire.Error.
func (a *Arm) Call(ctx context.Context, kind armwire.Kind, id string, body any) (armwire.Message, error) {
	reply := make(chan armwire.Message, 1)
	a.mu.Lock()
	a.next++
	transaction := "t" + strconv.FormatInt(a.next, 10)
	a.waiting[transaction] = reply
	a.mu.Unlock()
	forget := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, transaction)
	}
	if err := a.say(kind, transaction, id, body); err != nil {
		forget()
		return armwire.Message{}, fmt.Errorf("load: %s: %s: %w", a.Name, kind, err)
	}
	select {
	case m := <-reply:
		if m.Kind == armwire.Failure {
			e, bad := armwire.DecodeBody[armwire.ErrorBody](m)
			if bad != nil {
				return m, bad
			}
			return m, &e.Error
		}
		return m, nil
	case <-a.gone:
		return armwire.Message{}, fmt.Errorf("load: %s: %s: %w", a.Name, kind, a.Err())
	case <-ctx.Done():
		forget()
		return armwire.Message{}, fmt.Errorf("load: %s: %s: %w", a.Name, kind, ctx.Err())
	}
}
