package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// answerWithin bounds what a tracker may take to answer.
const answerWithin = 10 * time.Second

// AudienceConfig is of an Audience.
type AudienceConfig struct {
	Trackers []netip.AddrPort // behind one name: a session takes the first that answers, from any one on
	Sources  []netip.Addr     // that sessions come from, in turn
	Site     string
	Sessions int
	Swarms   int // neighbors share one
	Want     int // links of each session
	Opening  int // handshakes under way at a time, to begin with; 64
	Update   time.Duration
	Rash     bool // they come back as if each were the only one that was lost
	// Linker gives a session links of its own, if it is not nil and does not return nil.
	Linker func(number int) Linker
}

// Linker makes links of what a session is told. Its calls come from one goroutine, say may be called from any.
type Linker interface {
	Introduced(swarm, peer signal.ID, say func(signal.Message))
	Signal(m *signal.Signal, say func(signal.Message))
}

// Audience is sessions that live as those of the library do: one that loses its socket comes back after a while, by ticket, to
// any of the trackers, and joins again.
type Audience struct {
	cfg    AudienceConfig
	cancel context.CancelFunc
	wg     sync.WaitGroup
	all    []*member

	answered atomic.Int64 // answers to offers of sessions

	mu    sync.Mutex
	lost  int         // guarded by mu: sockets since the mark
	fresh int         // guarded by mu: sessions that did not get their ID back, since the mark
	back  []time.Time // guarded by mu: when sessions had joined again, since the mark
}

// member is one session of an audience. It belongs to its goroutine, but what is guarded.
type member struct {
	a      *Audience
	number int
	linker Linker
	ticket string
	back   returning
	early  time.Time // before which it does not come back

	mu     sync.Mutex
	ws     *socket   // guarded by mu: nil without one
	at     int       // guarded by mu: index of the tracker
	id     signal.ID // guarded by mu
	swarm  signal.ID // guarded by mu; zero until joined, by this socket
	out    []byte    // guarded by mu
	failed error     // guarded by mu: why it gave up
}

// OpenAudience connects all and returns when all have joined.
func OpenAudience(ctx context.Context, cfg AudienceConfig) (*Audience, error) {
	if cfg.Opening == 0 {
		cfg.Opening = 64
	}
	if cfg.Update == 0 {
		cfg.Update = 10 * time.Second
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &Audience{cfg: cfg, cancel: cancel}
	gate := make(chan struct{}, cfg.Opening)
	joined := make(chan error, cfg.Sessions)
	for i := range cfg.Sessions {
		m := &member{a: a, number: i, back: returning{rash: cfg.Rash}}
		if cfg.Linker != nil {
			m.linker = cfg.Linker(i)
		}
		a.all = append(a.all, m)
		a.wg.Go(func() {
			gate <- struct{}{}
			var once sync.Once
			m.live(life, func(err error) {
				once.Do(func() {
					joined <- err
					<-gate
				})
			})
		})
	}
	a.wg.Go(func() { a.update(life) })
	for range cfg.Sessions {
		select {
		case err := <-joined:
			if err != nil {
				return nil, errors.Join(err, a.Close())
			}
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), a.Close())
		}
	}
	return a, nil
}

// title is what a session watches.
func (c *AudienceConfig) title(number int) string {
	return fmt.Sprintf("/load/%d", number/((c.Sessions+c.Swarms-1)/c.Swarms))
}

// live connects, again and again. joined is called whenever the session is in its swarm, or could not get into it.
func (m *member) live(ctx context.Context, joined func(error)) {
	defer joined(context.Canceled)
	for ctx.Err() == nil {
		began := time.Now()
		err := m.visit(ctx, joined)
		var refused *refusedError
		if errors.As(err, &refused) {
			m.mu.Lock()
			m.failed = err
			m.mu.Unlock()
			joined(err)
			return
		}
		if ctx.Err() != nil {
			return
		}
		m.a.mu.Lock()
		m.a.lost++
		m.a.mu.Unlock()
		wait := m.back.wait(rand.Float64(), m.inFor(began), errors.Is(err, errAway))
		if !sleep.For(ctx, max(wait, time.Until(m.early))) {
			return
		}
	}
}

// inFor is how long the last socket was one, if it brought the session into its swarm.
func (m *member) inFor(began time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.swarm.IsZero() {
		return 0
	}
	return time.Since(began)
}

// refusedError is an error message after which nothing is tried again.
type refusedError struct{ code, message string }

func (e *refusedError) Error() string { return "the tracker refused: " + e.code + ": " + e.message }

// visit is one socket's life.
func (m *member) visit(ctx context.Context, joined func(error)) error {
	m.mu.Lock()
	m.swarm = signal.ID{}
	m.mu.Unlock()
	ws, at, err := m.dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = ws.conn.Close() })
	defer stop()
	defer ws.conn.Close()
	m.mu.Lock()
	m.ws, m.at, m.out = ws, at, m.out[:0]
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.ws = nil
		m.mu.Unlock()
	}()
	_ = ws.conn.SetReadDeadline(time.Now().Add(answerWithin))
	m.say(&signal.Hello{Version: signal.Version, Client: "leeway-load", Site: m.a.cfg.Site, Ticket: m.ticket})
	for {
		op, payload, _, err := ws.next()
		switch {
		case err != nil:
			return err
		case op == opPing:
			m.frame(opPong, payload)
			continue
		case op == opClose:
			return errors.New("the tracker closed the socket")
		case op != opText:
			continue
		}
		if err := m.hear(payload, joined); err != nil {
			return err
		}
	}
}

// dial takes the first tracker that answers, as browsers and load balancers do where one name has several addresses.
func (m *member) dial(ctx context.Context) (ws *socket, at int, err error) {
	c := &m.a.cfg
	var from netip.Addr
	if len(c.Sources) > 0 {
		from = c.Sources[m.number%len(c.Sources)]
	}
	for _, at = range rand.Perm(len(c.Trackers)) {
		if ws, err = dial(ctx, Config{Protocol: Native, Address: c.Trackers[at], Path: "/"}, from); err == nil {
			return ws, at, nil
		}
	}
	return nil, 0, err
}

// errAway is the end of a socket whose tracker sent the session away.
var errAway = errors.New("the tracker said to reconnect")

func (m *member) hear(message []byte, joined func(error)) error {
	got, err := signal.Decode(message)
	if err != nil {
		return fmt.Errorf("the tracker sent %.200q: %w", message, err)
	}
	switch got := got.(type) {
	case *signal.Welcome:
		m.welcome(got)
	case *signal.Joined:
		_ = m.socket().conn.SetReadDeadline(time.Time{})
		m.mu.Lock()
		m.swarm = got.Swarm
		m.mu.Unlock()
		m.a.mu.Lock()
		m.a.back = append(m.a.back, time.Now())
		m.a.mu.Unlock()
		joined(nil)
	case *signal.Ticket:
		m.ticket = got.Ticket
	case *signal.Introduce:
		for _, p := range got.Peers {
			m.introduced(got.Swarm, p)
		}
	case *signal.Signal:
		m.signal(got)
	case *signal.Reconnect:
		m.early = time.Now().Add(time.Duration(got.AfterMs) * time.Millisecond)
		return errAway
	case *signal.Error:
		m.early = time.Now().Add(time.Duration(got.RetryAfterMs) * time.Millisecond)
		switch got.Code {
		case "draining", "overloaded", "not-joined", "not-introduced": // the socket ends, or a peer is gone
		default:
			return &refusedError{got.Code, got.Message}
		}
	}
	return nil
}

func (m *member) welcome(w *signal.Welcome) {
	m.ticket = w.Ticket
	m.mu.Lock()
	if !m.id.IsZero() && m.id != w.Session {
		m.a.mu.Lock()
		m.a.fresh++
		m.a.mu.Unlock()
	}
	m.id = w.Session
	m.mu.Unlock()
	m.say(&signal.Join{Request: 1, Title: m.a.cfg.title(m.number), Role: "full", Want: m.a.cfg.Want, Range: &signal.Range{From: 0, To: 30_000}})
}

func (m *member) introduced(swarm signal.ID, p signal.Peer) {
	switch {
	case p.Role != "viewer":
	case m.linker != nil:
		m.linker.Introduced(swarm, p.Peer, m.say)
	default:
		m.say(&signal.Signal{Swarm: swarm, To: p.Peer, Link: newLink(), Kind: "offer", SDP: sdp, Plan: plan})
	}
}

func (m *member) signal(s *signal.Signal) {
	switch {
	case m.linker != nil:
		m.linker.Signal(s, m.say)
	case s.Kind == "offer":
		m.say(&signal.Signal{Swarm: s.Swarm, To: s.From, Link: s.Link, Kind: "answer", SDP: sdp, Plan: plan})
	case s.Kind == "answer":
		m.a.answered.Add(1)
	}
}

func (m *member) socket() *socket {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ws
}

// say sends a message, if there is a socket.
func (m *member) say(message signal.Message) {
	b, err := signal.Encode(message)
	if err != nil {
		return // of a linker's making; its link does not open, which is what is looked at
	}
	m.frame(opText, b)
}

func (m *member) frame(op byte, payload []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ws == nil {
		return
	}
	m.out = appendFrame(m.out[:0], op, payload)
	_ = m.ws.conn.SetWriteDeadline(time.Now().Add(answerWithin))
	_, _ = m.ws.conn.Write(m.out) // the reader learns of a socket that is lost
}

// update has sessions say how they are, in turn.
func (a *Audience) update(ctx context.Context) {
	step := max(time.Millisecond, a.cfg.Update/time.Duration(len(a.all)))
	for i := 0; sleep.For(ctx, step); i++ {
		m := a.all[i%len(a.all)]
		m.mu.Lock()
		swarm := m.swarm
		m.mu.Unlock()
		if !swarm.IsZero() {
			m.say(&signal.Update{Swarm: swarm, Want: a.cfg.Want})
		}
	}
}

// On lists the sessions that are at a tracker, by number.
func (a *Audience) On(tracker int) (numbers []int) {
	for _, m := range a.all {
		m.mu.Lock()
		if m.ws != nil && m.at == tracker && !m.swarm.IsZero() {
			numbers = append(numbers, m.number)
		}
		m.mu.Unlock()
	}
	return numbers
}

// Mark forgets what has been counted.
func (a *Audience) Mark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost, a.fresh, a.back = 0, 0, nil
}

// Returns is what happened since the mark.
type Returns struct {
	Lost   int         // sockets
	Fresh  int         // sessions that did not get their ID back
	Absent int         // sessions that are in no swarm now
	Back   []time.Time // when sessions had joined again
	Failed error       // why the first session gave up
}

// Returns tells what happened since the mark.
func (a *Audience) Returns() Returns {
	a.mu.Lock()
	r := Returns{Lost: a.lost, Fresh: a.fresh, Back: append([]time.Time(nil), a.back...)}
	a.mu.Unlock()
	for _, m := range a.all {
		m.mu.Lock()
		if m.ws == nil || m.swarm.IsZero() {
			r.Absent++
		}
		if r.Failed == nil && m.failed != nil {
			r.Failed = fmt.Errorf("load: session %d: %w", m.number, m.failed)
		}
		m.mu.Unlock()
	}
	return r
}

// Close ends all sessions; when it returns, nothing of the audience runs any more.
func (a *Audience) Close() error {
	a.cancel()
	a.wg.Wait()
	return nil
}
