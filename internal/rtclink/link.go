package rtclink

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/ice/v4"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// Link is one peer connection: an ICE agent, DTLS and SCTP over it, and the planned channels. It satisfies transfer.Link.
type Link struct {
	host     *Host
	agent    atomic.Pointer[ice.Agent] // nil once the link is settled
	own      *socket                   // this link's socket, nil when the host's is used
	in       *intake                   // packets that are not ICE's
	way      *way                      // of connect, then fixed
	events   transfer.LinkEvents
	acks     func([]byte) // what comes on the ack channel
	offering bool
	mid      string
	sctpInit []byte // SNAP, nil without; of the making, then of connect

	plan         peer.Plan
	opened       atomic.Bool
	closing      atomic.Bool
	ctx          context.Context // ends when the link's machinery is to stop
	cancel       context.CancelFunc
	running      sync.WaitGroup
	reading      atomic.Int32  // state of the reader: channels.go
	stirred      chan struct{} // wakes a reader that waits
	ended        atomic.Bool   // the association has: what is there is the last
	checked      chan struct{} // a check may have been answered
	gathered     chan struct{} // closed when all addresses of this side are known
	hosts        int           // addresses of the socket
	gatheredOnce sync.Once
	firstRTT     time.Duration // that ICE measured; of connect
	gone         chan struct{} // closed when the association has ended
	done         chan struct{}

	// saying is held while SCTP takes a control message. SCTP gives it its number in the stream first and puts it into the
	// queue later, under two locks: of two at a time the second may go out first. No other lock is taken under it.
	saying   sync.Mutex
	heldBack atomic.Bool // ControlRoom has said no since Drain was last called

	mu          sync.Mutex
	timer       *time.Timer                // guarded by mu: OpenTimeout, then settle and mourn
	connecting  bool                       // guarded by mu
	association *sctp.Association          // guarded by mu
	control     *datachannel.DataChannel   // guarded by mu until opened, then fixed
	ack         *datachannel.DataChannel   // guarded by mu until opened, then fixed
	data        []*datachannel.DataChannel // guarded by mu until opened, then fixed; nil entries are awaited
	strays      int                        // guarded by mu
	next        int                        // guarded by mu: data channel to write to next
	written     int64                      // guarded by mu: bytes handed to the data channels
	flight      *flight                    // guarded by mu
	described   bool                       // guarded by mu: addresses go out by events
	stages      Stages                     // guarded by mu
	first       []sdp.Candidate            // guarded by mu: addresses for the description
	admission   admission
}

var (
	_ transfer.Link   = (*Link)(nil)
	_ transfer.Cutter = (*Link)(nil)
)

func (h *Host) newLink(plan peer.Plan, offering bool, mid string, events transfer.LinkEvents) (*Link, error) {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	l := &Link{
		host: h, events: events, offering: offering, mid: mid, plan: plan, in: newIntake(),
		data: make([]*datachannel.DataChannel, plan.Data), flight: newFlight(h.cfg.InFlight, plan.Message),
		admission: admission{guard: h.cfg.Guard},
		stirred:   make(chan struct{}, 1), checked: make(chan struct{}, 1), gathered: make(chan struct{}), gone: make(chan struct{}), done: make(chan struct{}), acks: func([]byte) {},
	}
	if e, ok := events.(transfer.AckEvents); ok {
		l.acks = e.Ack
	}
	s := h.socket
	if s == nil {
		var err error
		if l.own, err = h.openOwn(); err != nil {
			return nil, err
		}
		s = l.own
	}
	l.hosts = len(s.mux.addrs)
	agent, err := h.newAgent(s, l.answered, l.in)
	if err != nil {
		if l.own != nil {
			l.own.close()
		}
		return nil, err
	}
	l.agent.Store(agent)
	// SNAP falls back where the other side has it not.
	l.sctpInit, _ = sctp.GenerateOutOfBandToken(sctp.Config{MaxReceiveBufferSize: receiveBuffer, EnableZeroChecksum: true})
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.watch(); err != nil {
		l.abandon()
		return nil, fmt.Errorf("rtclink: ICE agent: %w", err)
	}
	if !h.adopt(l) {
		l.abandon()
		return nil, ErrClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(h.cfg.OpenTimeout, func() {
		if !l.opened.Load() {
			l.Close(peer.CloseTimeout, nil)
		}
	})
	return l, nil
}

// describe gathers addresses and returns what this side signals of the link.
func (l *Link) describe(setup sdp.Setup) (string, error) {
	ufrag, password, err := l.agent.Load().GetLocalUserCredentials()
	if err != nil {
		return "", err
	}
	candidates, err := l.gather()
	if err != nil {
		return "", err
	}
	d := sdp.Description{
		Ufrag: ufrag, Password: password, Fingerprint: l.host.identity.fingerprint, Setup: setup, Mid: l.mid, MaxMessage: sctpMessage,
		Init: l.sctpInit, Candidates: candidates,
	}
	return d.String(), nil
}

// start begins to connect, once.
func (l *Link) start(remote *sdp.Description, client bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connecting {
		return errAnswered
	}
	if l.closing.Load() {
		return ErrClosed
	}
	l.connecting = true
	l.running.Add(1)
	go l.connect(remote, client)
	return nil
}

// Stages are the moments at which a link had come so far; zero before.
type Stages struct {
	Reached    time.Time // a pair of addresses works
	Secured    time.Time // the DTLS handshake is over
	Associated time.Time // SCTP takes messages
}

// Stages says when each step of the set-up was done.
func (l *Link) Stages() Stages {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stages
}

// reaches notes that a step of the set-up is done.
func (l *Link) reaches(step *time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*step = time.Now()
}

// MaxMessage implements transfer.Link.
func (l *Link) MaxMessage() int { return l.plan.Message }

// Message implements transfer.Cutter.
func (l *Link) Message() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flight.thin() {
		return min(packetPayload, l.plan.Message)
	}
	return l.plan.Message
}

// Done implements transfer.Link.
func (l *Link) Done() <-chan struct{} { return l.done }

// Path implements transfer.Link.
func (l *Link) Path() transfer.Path {
	agent := l.agent.Load()
	if agent == nil {
		if l.way.settled.Load().relayed() {
			return transfer.Relay
		}
		return transfer.Direct
	}
	pair, err := agent.GetSelectedCandidatePair()
	if err == nil && pair != nil && (pair.Local.Type() == ice.CandidateTypeRelay || pair.Remote.Type() == ice.CandidateTypeRelay) {
		return transfer.Relay
	}
	return transfer.Direct
}

// RTT implements transfer.Link.
func (l *Link) RTT() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.association == nil || l.closing.Load() {
		return 0
	}
	return l.smoothed()
}

// smoothed is SCTP's round-trip time. Under mu.
func (l *Link) smoothed() time.Duration {
	return time.Duration(l.association.SRTT() * float64(time.Millisecond))
}

func (l *Link) usable() bool { return l.opened.Load() && !l.closing.Load() }

// SendData implements transfer.Link.
func (l *Link) SendData(message []byte) bool {
	if !l.usable() || len(message) > l.plan.Message {
		return false
	}
	l.mu.Lock()
	if !l.room(len(message)) {
		l.mu.Unlock()
		return false
	}
	c := l.turn(len(message))
	l.mu.Unlock()
	return l.carry(c, message)
}

// turn is the data channel that takes the next n bytes. Under mu.
func (l *Link) turn(n int) *datachannel.DataChannel {
	c := l.data[l.next]
	l.next = (l.next + 1) % len(l.data)
	l.written += int64(n)
	return c
}

// carry hands a message to its data channel; false says that the link has ended.
func (l *Link) carry(c *datachannel.DataChannel, message []byte) bool {
	if _, err := c.Write(message); err != nil {
		l.Close(peer.CloseFailed, nil)
		return false
	}
	return true
}

// room says whether n more bytes may be handed to SCTP; if not, Drain will be called. Under mu.
func (l *Link) room(n int) bool {
	for {
		buffered := l.buffered()
		if now := time.Now(); l.flight.due(now) {
			l.flight.advance(now, l.written-buffered, l.smoothed())
		}
		if buffered == 0 || buffered+int64(n) <= int64(l.flight.bound(n)) {
			return true
		}
		l.flight.held()
		if l.awaitDrain() {
			return false
		}
	}
}

// buffered is what SCTP holds of the data channels. Under mu.
func (l *Link) buffered() int64 {
	var sum uint64
	for _, c := range l.data {
		sum += c.BufferedAmount()
	}
	return int64(sum)
}

// awaitDrain has Drain called when a channel has lost a quarter of what it holds; false says that one has already.
// Under mu.
func (l *Link) awaitDrain() bool {
	var low [peer.MaxDataChannels]uint64
	for i, c := range l.data {
		low[i] = c.BufferedAmount() / 4 * 3
		c.SetBufferedAmountLowThreshold(low[i])
	}
	armed := false
	for i, c := range l.data {
		armed = armed || c.BufferedAmount() > low[i]
	}
	return armed
}

// Close implements transfer.Link.
func (l *Link) Close(reason peer.CloseReason, farewell []byte) {
	if l.closing.Swap(true) {
		return
	}
	go l.shutdown(reason, farewell, true)
}

// abandon ends a link whose making failed: its owner never had it, so it hears nothing of it.
func (l *Link) abandon() {
	if !l.closing.Swap(true) {
		go l.shutdown(peer.CloseFailed, nil, false)
	}
}

func (l *Link) shutdown(reason peer.CloseReason, farewell []byte, tell bool) {
	l.mu.Lock() // an open or start that began before closing was set has counted its goroutine
	if l.timer != nil {
		l.timer.Stop()
	}
	association := l.association
	l.mu.Unlock()
	if l.opened.Load() {
		if farewell != nil {
			l.sayFarewell(farewell)
		}
		association.Abort("")
	}
	l.cancel() // ends what is coming up, and closes the records
	l.in.close()
	if agent := l.agent.Load(); agent != nil {
		_ = agent.GracefulClose()
	}
	l.running.Wait()
	if l.way != nil {
		if c := l.way.settled.Load(); c != nil {
			l.mux().end(c)
		}
	}
	if l.own != nil {
		l.own.close()
	}
	if tell {
		l.events.Closed(reason)
	}
	l.host.mu.Lock()
	delete(l.host.links, l)
	l.host.mu.Unlock()
	close(l.done)
}
