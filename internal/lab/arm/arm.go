// Package arm holds thousands of WebRTC sessions for a load controller (spec/arm-protocol.md): data channels that carry chunks or
// nothing, media from shared sources, and headless viewers of Leeway.
//
// One process has one certificate, and sockets that sessions share: two sessions of a socket never have the same peer address, since
// packets could not be told apart (sockets.go). A session has no goroutine beyond what its WebRTC stack needs: one goroutine sends the
// chunks of all (pacer.go), and one counts (statistics.go). Sessions of the stack peer-connection are pion's peer connections, those of
// the stack link are Leeway's links (docs/decisions/0055).
//
// Lock order: Arm.mu, then session.mu; sockets.mu and counters are taken last. No lock is held while the WebRTC stack is called, whose
// callbacks take session.mu.
package arm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/selfwatch"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// Config of an arm.
type Config struct {
	Controller string // ws or wss address
	Name       string // that the controller shows; 1–64 of A-Z a-z 0-9 . _ -
	Token      string // that the controller asks for
	Listen     netip.Addr
	// Bounds on what a controller can ask for.
	MaxSessions int   // 20,000
	MaxSources  int   // 64
	MaxSockets  int   // UDP sockets of each stack; 128
	RecordBytes int64 // of recordings in all; 1 GiB
	RecordDir   string
	Log         *slog.Logger
}

// Defaults of Config.
const (
	DefaultSessions    = 20_000
	DefaultSources     = 64
	DefaultSockets     = 128
	DefaultRecordBytes = 1 << 30
)

const (
	lanes       = 16              // commands of a session go through one of them, in order
	laneQueue   = 256             // commands; then the controller waits
	controlPing = 2 * time.Second // of the socket to the controller
	controlGone = 5 * time.Second // without a sign of life
	queueBytes  = 32 << 20        // of events that the controller has yet to read
	closers     = 64              // connections that are closed at a time
)

// ErrController says that the connection to the controller ended.
var ErrController = errors.New("arm: the controller is gone")

// dialError says that there was no controller.
type dialError struct{ err error }

// Error implements error.
func (e *dialError) Error() string { return "arm: " + e.err.Error() }

// Unwrap returns the cause.
func (e *dialError) Unwrap() error { return e.err }

// IsDial says whether an error of Run is that there was no controller.
func IsDial(err error) bool {
	var e *dialError
	return errors.As(err, &e)
}

func (c *Config) complete() error {
	for _, n := range []struct {
		v *int
		d int
	}{{&c.MaxSessions, DefaultSessions}, {&c.MaxSources, DefaultSources}, {&c.MaxSockets, DefaultSockets}} {
		if *n.v == 0 {
			*n.v = n.d
		}
		if *n.v < 0 {
			return fmt.Errorf("arm: a bound of %d; give 1 or more", *n.v)
		}
	}
	c.RecordBytes = cmp.Or(c.RecordBytes, DefaultRecordBytes)
	if !c.Listen.IsValid() {
		c.Listen = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if c.RecordDir != "" {
		if info, err := os.Stat(c.RecordDir); err != nil || !info.IsDir() {
			return fmt.Errorf("arm: %s is no folder for recordings", c.RecordDir)
		}
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return nil
}

// Arm is one connection to a controller, and what it asked for.
type Arm struct {
	cfg     Config
	conn    *wsconn.Conn
	stacks  stacks
	counts  counts
	self    selfwatch.Watch
	pacer   *pacer
	seed    maphash.Seed
	lanes   [lanes]chan armwire.Message
	closers chan struct{}
	busy    sync.WaitGroup
	ending  atomic.Bool

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu
	sources  map[string]*source  // guarded by mu
}

// Run serves a controller until ctx ends or the controller is gone. When it returns, no session is left.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	conn, err := wsconn.Dial(ctx, cfg.Controller, wsconn.Config{
		Subprotocol: armwire.Subprotocol, MaxMessage: armwire.MaxMessage, WriteQueue: 1 << 20, WriteBytes: queueBytes,
		PingEvery: controlPing, PongTimeout: controlGone, Log: cfg.Log,
	}, wsconn.DialConfig{})
	if err != nil {
		return &dialError{err}
	}
	defer conn.Wait()
	defer conn.Close(wsconn.CloseDone, "")
	a := &Arm{
		cfg: cfg, conn: conn, seed: maphash.MakeSeed(), closers: make(chan struct{}, closers),
		sessions: map[string]*session{}, sources: map[string]*source{},
	}
	a.counts.begin()
	if a.stacks, err = newStacks(&a.cfg); err != nil {
		return err
	}
	if err := a.register(); err != nil {
		return err
	}
	life, stop := context.WithCancel(context.Background())
	a.pacer = newPacer()
	var helpers, working sync.WaitGroup
	helpers.Go(func() { a.pacer.run(life) })
	helpers.Go(func() { a.watch(life) })
	for i := range a.lanes {
		a.lanes[i] = make(chan armwire.Message, laneQueue)
		working.Go(func() {
			for m := range a.lanes[i] {
				a.answer(m, a.command)
			}
		})
	}
	release := context.AfterFunc(ctx, func() { conn.Close(wsconn.CloseDone, "") })
	err = a.serve()
	if release(); ctx.Err() != nil {
		err = nil
	}
	a.ending.Store(true)
	for i := range a.lanes {
		close(a.lanes[i])
	}
	working.Wait()
	a.end()
	stop()
	helpers.Wait()
	a.stacks.close()
	return err
}

// register says what this arm is, and waits for the controller to take it.
func (a *Arm) register() error {
	if err := a.say(armwire.Register, "register", "", armwire.RegisterBody{
		Version: armwire.Version, Name: a.cfg.Name, Token: a.cfg.Token, Cores: runtime.GOMAXPROCS(0), MaxSessions: a.cfg.MaxSessions, PID: os.Getpid(),
	}); err != nil {
		return err
	}
	b, err := a.conn.Read()
	if err != nil {
		return fmt.Errorf("%w before it has taken this arm: %w", ErrController, err)
	}
	m, bad := armwire.Decode(b)
	switch {
	case bad != nil:
		return bad
	case m.Kind == armwire.Failure:
		e, bad := armwire.DecodeBody[armwire.ErrorBody](m)
		if bad != nil {
			return bad
		}
		return &e.Error
	case m.Kind != armwire.Success || m.Transaction != "register":
		return armwire.Fail(armwire.BadMessage, "the controller says %q before it has taken this arm", m.Kind)
	}
	return nil
}

// serve reads commands until the connection ends.
func (a *Arm) serve() error {
	for {
		b, err := a.conn.Read()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrController, err)
		}
		m, bad := armwire.Decode(b)
		switch {
		case bad != nil && m.Transaction == "":
			a.conn.Close(wsconn.ClosePolicy, bad.Error())
			return bad
		case bad != nil:
			_ = a.say(armwire.Failure, m.Transaction, m.ID, bad)
		case !m.IsCommand() || m.Kind == armwire.Register:
			_ = a.say(armwire.Failure, m.Transaction, m.ID, armwire.Fail(armwire.UnknownCommand, "%q is not for an arm", m.Kind))
		case m.ID == "" || m.Kind == armwire.CreateSession:
			a.answer(m, a.own) // in order, so that what comes behind finds it
		default:
			a.lanes[maphash.String(a.seed, m.ID)%lanes] <- m
		}
	}
}

// answer carries out a command and says how it went.
func (a *Arm) answer(m armwire.Message, do func(armwire.Message) (any, *armwire.Error)) {
	body, err := any(nil), armwire.Fail(armwire.Ending, "the arm ends")
	if !a.ending.Load() {
		body, err = do(m)
	}
	if err != nil {
		_ = a.say(armwire.Failure, m.Transaction, m.ID, err)
		return
	}
	_ = a.say(armwire.Success, m.Transaction, m.ID, body)
}

// say sends a message; a connection that is gone says so to the reader.
func (a *Arm) say(kind armwire.Kind, transaction, id string, body any) error {
	b, err := armwire.Encode(kind, transaction, id, body)
	if err != nil {
		return err
	}
	return a.conn.Write(b)
}

// event tells the controller of something.
func (a *Arm) event(kind armwire.Kind, id string, body any) { _ = a.say(kind, "", id, body) }

// end ends all sessions and sources and waits for them.
func (a *Arm) end() {
	all := a.all()
	a.mu.Lock()
	sources := a.sources
	a.sources = map[string]*source{}
	a.mu.Unlock()
	for _, s := range sources {
		s.stop()
	}
	for _, s := range all {
		a.destroy(s, "ending")
	}
	a.busy.Wait()
}
