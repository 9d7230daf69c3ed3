// Package load is the controller of load arms (spec/arm-protocol.md): it takes the arms that dial in, has them hold sessions, runs
// scenarios over them, and judges what came of it.
//
// Lock order: Controller.mu, then Arm.mu, then Session.mu. No lock is held while something is sent.
package load

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// Config of a Controller.
type Config struct {
	Listen string // address that arms dial, such as 127.0.0.1:0
	Token  string // that arms have to say; empty: none
	Log    *slog.Logger
}

// errClosing is why an arm is gone that the controller let go.
var errClosing = errors.New("load: the controller is closed")

const (
	maxArms        = 256
	registerWithin = 10 * time.Second // of an arm that has dialed
	armPing        = 2 * time.Second
	armGone        = 10 * time.Second // without a sign of life
	writeBytes     = 32 << 20         // of commands that an arm has yet to read
)

// ErrArm says that an arm is gone.
var ErrArm = errors.New("load: the arm is gone")

// Controller takes arms.
type Controller struct {
	cfg      Config
	listener net.Listener
	server   *http.Server
	endpoint *wsconn.Endpoint
	arrived  chan *Arm
	served   chan struct{}

	mu     sync.Mutex
	arms   map[*Arm]struct{} // guarded by mu
	names  map[string]bool   // guarded by mu: of arms that are there
	closed bool              // guarded by mu
}

// Listen opens a controller. Close it when it is done.
func Listen(cfg Config) (*Controller, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("load: listen for arms: %w", err)
	}
	c := &Controller{
		cfg: cfg, listener: l, arrived: make(chan *Arm, maxArms), served: make(chan struct{}), arms: map[*Arm]struct{}{}, names: map[string]bool{},
	}
	c.endpoint = wsconn.Handler(wsconn.Config{
		Subprotocol: armwire.Subprotocol, MaxMessage: armwire.MaxMessage, WriteQueue: 1 << 20, WriteBytes: writeBytes,
		PingEvery: armPing, PongTimeout: armGone, Log: cfg.Log,
	}, c.accept)
	c.server = &http.Server{Handler: c.endpoint, ReadHeaderTimeout: registerWithin}
	go func() {
		defer close(c.served)
		_ = c.server.Serve(l)
	}()
	return c, nil
}

// URL is what arms dial.
func (c *Controller) URL() string { return "ws://" + c.listener.Addr().String() + "/" }

// Next waits for an arm to register. One that is gone by then is passed over: it may have been started again meanwhile.
func (c *Controller) Next(ctx context.Context) (*Arm, error) {
	for {
		select {
		case a := <-c.arrived:
			if a.Err() == nil {
				return a, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("load: waiting for an arm: %w", context.Cause(ctx))
		}
	}
}

// accept begins with a connection. One that does not register in time is closed.
func (c *Controller) accept(conn *wsconn.Conn, _ *http.Request) wsconn.Receiver {
	a := newArm(c, conn)
	c.mu.Lock()
	full := c.closed || len(c.arms) >= maxArms
	if !full {
		c.arms[a] = struct{}{}
	}
	c.mu.Unlock()
	if full {
		conn.Close(wsconn.CloseOverloaded, "no more arms are taken")
		return nil
	}
	a.late = time.AfterFunc(registerWithin, func() { conn.Close(wsconn.ClosePolicy, "an arm registers first") })
	return a
}

// admit takes an arm that says register; the error is answered.
func (c *Controller) admit(a *Arm, b armwire.RegisterBody) *armwire.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cfg.Token != "" && subtle.ConstantTimeCompare([]byte(b.Token), []byte(c.cfg.Token)) != 1:
		return armwire.Fail(armwire.Refused, "the token is not this controller's")
	case c.names[b.Name]:
		return armwire.Fail(armwire.Exists, "an arm called %s", b.Name)
	case c.closed:
		return armwire.Fail(armwire.Ending, "the controller ends")
	}
	c.names[b.Name] = true
	a.Name, a.Cores, a.MaxSessions, a.PID = b.Name, b.Cores, b.MaxSessions, b.PID
	return nil
}

func (c *Controller) forget(a *Arm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.arms, a)
	if a.Name != "" {
		delete(c.names, a.Name)
	}
}

// Close lets the arms go, which end their sessions, and returns when nothing of it runs any more.
func (c *Controller) Close() error {
	c.mu.Lock()
	c.closed = true
	for a := range c.arms {
		a.mu.Lock()
		if a.err == nil {
			a.err = errClosing
		}
		a.mu.Unlock()
		a.conn.Close(wsconn.CloseDone, "")
	}
	c.mu.Unlock()
	err := c.server.Close()
	<-c.served
	c.endpoint.Wait()
	return err
}
