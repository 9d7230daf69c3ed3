package rtclink

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// lineHeaders is what a packet of SCTP has around it on the way, bytes: a record, UDP and IPv4.
const lineHeaders = recordCost + 8 + 20

// line is a path in virtual time, for SCTP as it is: a bottleneck with one drop-tail queue that all wires share on the
// way there, and a way back that only delays.
type line struct {
	rate  float64       // bytes per second
	delay time.Duration // one way; changed by goes
	queue int           // bytes
	loss  float64
	met   time.Duration // what packets wait at least for others' traffic, for the first second

	mu   sync.Mutex
	made time.Time  // guarded by mu: when the first packet came
	free time.Time  // guarded by mu: when the bottleneck is
	dice *rand.Rand // guarded by mu
	full int        // guarded by mu: packets that found no room
	sent int        // guarded by mu: packets that did
}

// due says when a packet of n bytes arrives that is sent now; false says never.
func (l *line) due(n int) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.made.IsZero() {
		l.made = now
	}
	start := l.free
	if start.Before(now) {
		start = now
	}
	if others := now.Add(l.met); now.Sub(l.made) < time.Second && start.Before(others) {
		start = others
	}
	if l.loss > 0 && l.dice.Float64() < l.loss {
		return time.Time{}, false
	}
	if l.rate*start.Sub(now).Seconds()+float64(n) > float64(l.queue) {
		l.full++
		return time.Time{}, false
	}
	l.sent++
	l.free = start.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	return l.free.Add(l.delay), true
}

// goes has packets take a way of another length from now on.
func (l *line) goes(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// wireEnd is one end of a link's way over a line.
type wireEnd struct {
	due    func(n int) (time.Time, bool)
	other  *wireEnd
	idle   func() // called by Read as records call theirs: where unread says so
	wake   chan struct{}
	closed chan struct{}
	once   sync.Once
	unread unread // of the reader
	more   bool   // of the reader

	mu    sync.Mutex
	queue []onTheWay // guarded by mu
}

type onTheWay struct {
	due  time.Time
	data []byte
}

var _ net.Conn = (*wireEnd)(nil)

// wire makes both ends of a way; the first one sends through the bottleneck.
func (l *line) wire() (near, far *wireEnd) {
	end := func(due func(int) (time.Time, bool)) *wireEnd {
		return &wireEnd{due: due, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	}
	near, far = end(l.due), end(func(int) (time.Time, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Now().Add(l.delay), true
	})
	near.other, far.other = far, near
	return near, far
}

func (w *wireEnd) Write(b []byte) (int, error) {
	if at, ok := w.due(len(b) + lineHeaders); ok {
		o := w.other
		o.mu.Lock()
		o.queue = append(o.queue, onTheWay{at, append([]byte(nil), b...)})
		o.mu.Unlock()
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
	return len(b), nil
}

func (w *wireEnd) Read(b []byte) (int, error) {
	if w.more {
		w.more = false
		w.idle()
	}
	for {
		wait := time.Hour
		w.mu.Lock()
		if len(w.queue) > 0 {
			first := w.queue[0]
			if wait = time.Until(first.due); wait <= 0 {
				w.queue = w.queue[1:]
				w.mu.Unlock()
				w.more = w.unread.more(first.data)
				return copy(b, first.data), nil
			}
		}
		w.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-w.closed:
			return 0, io.EOF
		}
		timer.Stop()
	}
}

func (w *wireEnd) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *wireEnd) LocalAddr() net.Addr              { return path }
func (w *wireEnd) RemoteAddr() net.Addr             { return path }
func (w *wireEnd) SetDeadline(time.Time) error      { return nil }
func (w *wireEnd) SetReadDeadline(time.Time) error  { return nil }
func (w *wireEnd) SetWriteDeadline(time.Time) error { return nil }

// played is a link whose transport is a wire: SCTP, channels and the bound in flight are those of every link.
type played struct {
	*Link
	drained chan struct{}

	mu      sync.Mutex
	bytes   int           // guarded by mu: that came
	last    time.Time     // guarded by mu: when something came
	silence time.Duration // guarded by mu: the longest between two arrivals
}

func (p *played) Candidate(transfer.Candidate) {}
func (p *played) Open()                        {}
func (p *played) Control([]byte)               {}
func (p *played) Closed(peer.CloseReason)      {}

func (p *played) Data(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() {
		p.silence = max(p.silence, time.Since(p.last))
	}
	p.bytes, p.last = p.bytes+len(b), time.Now()
}

func (p *played) Drain() {
	select {
	case p.drained <- struct{}{}:
	default:
	}
}

// came is what has come, and the longest silence until now.
func (p *played) came() (int, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes, max(p.silence, time.Since(p.last))
}

// play links the ends of a wire, near as the offerer.
func (l *line) play(t *testing.T) (near, far *played) {
	t.Helper()
	token := func() []byte {
		b, err := sctp.GenerateOutOfBandToken(sctp.Config{MaxReceiveBufferSize: receiveBuffer, EnableZeroChecksum: true})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tokens := [2][]byte{token(), token()}
	a, b := l.wire()
	host := &Host{loggers: newLoggers(slog.New(slog.DiscardHandler)), cfg: Config{Keepalive: time.Second, InFlight: DefaultInFlight}} // there is no agent to let go
	end := func(conn *wireEnd, own, other []byte, offers bool) *played {
		p := &played{drained: make(chan struct{}, 1)}
		p.Link = host.assemble(peer.DefaultPlan, p)
		p.offering, p.sctpInit = offers, own
		p.learn(2*l.delay + l.met)
		conn.idle = p.reader.stir
		var err error
		if p.association, err = p.overlay(conn, &sdp.Description{Init: other}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	near, far = end(a, tokens[0], tokens[1], true), end(b, tokens[1], tokens[0], false)
	for _, p := range []*played{near, far} {
		if p.offering {
			if err := p.channels.dial(p.association, true, host.loggers); err != nil {
				t.Fatal(err)
			}
			p.Link.open()
		}
		p.running.Go(func() { p.accept(p.association) })
	}
	return near, far
}

// pump sends without end, in messages as pieces are cut into.
func (p *played) pump(ctx context.Context) {
	message := make([]byte, peer.DefaultPlan.Message)
	for {
		for p.SendData(message[:peer.CutSize(peer.PieceSize, p.Message())+peer.DataHeader]) {
		}
		select {
		case <-p.drained:
		case <-ctx.Done():
			return
		}
	}
}

func (p *played) end() {
	p.closing.Store(true) // nothing more is told
	_ = p.association.Close()
	p.running.Wait()
}

// crowd has n links send through a line for some time; it returns what came over each, and the longest silence of any.
func (l *line) crowd(t *testing.T, n int, took time.Duration) (bytes []int, silence time.Duration) {
	t.Helper()
	if l.dice == nil {
		l.dice = rand.New(rand.NewPCG(1, 2))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var pumps sync.WaitGroup
	var all, receivers []*played
	for range n {
		near, far := l.play(t)
		all, receivers = append(all, near, far), append(receivers, far)
		pumps.Go(func() { near.pump(ctx) })
	}
	<-time.After(took)
	for _, p := range receivers {
		came, longest := p.came()
		bytes, silence = append(bytes, came), max(silence, longest)
	}
	cancel()
	for _, p := range all {
		p.end()
	}
	pumps.Wait()
	return bytes, silence
}
