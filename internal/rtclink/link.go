package rtclink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// Link is one peer connection: an ICE agent, DTLS and SCTP over it, and the planned channels. It satisfies transfer.Link. It brings
// its parts up one after the other, and ends them.
type Link struct {
	host   *Host
	events transfer.LinkEvents
	life
	route
	sender
	control
	milestones
	gathering gathering
	channels  channels
	reader    reader
	sctpInit  []byte // SNAP, nil without; of the making, then of connect
}

var (
	_ transfer.Link   = (*Link)(nil)
	_ transfer.Cutter = (*Link)(nil)
)

// assemble makes the parts of a link that do not know the path.
func (h *Host) assemble(plan peer.Plan, events transfer.LinkEvents) *Link {
	l := &Link{host: h, events: events}
	l.life.begin(l.shutdown)
	l.channels.propose(plan)
	l.sender = sender{life: &l.life, channels: &l.channels, flight: newFlight(h.cfg.InFlight, plan.Message)}
	l.control = control{life: &l.life, channels: &l.channels}
	l.reader = reader{
		life: &l.life, channels: &l.channels, control: events.Control, ack: func([]byte) {}, data: events.Data,
		stirred: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	if e, ok := events.(transfer.AckEvents); ok {
		l.reader.ack = e.Ack
	}
	return l
}

func (h *Host) newLink(plan peer.Plan, offering bool, mid string, events transfer.LinkEvents) (*Link, error) {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	l := h.assemble(plan, events)
	l.route = route{
		life: &l.life, offering: offering, moved: func() {}, forget: l.sender.move, admission: admission{guard: h.cfg.Guard}, checked: make(chan struct{}, 1),
		way: way{in: newIntake()},
	}
	if e, ok := events.(transfer.PathEvents); ok {
		l.moved = e.Moved
	}
	s := h.socket
	if s == nil {
		var err error
		if l.own, err = h.openOwn(); err != nil {
			return nil, err
		}
		s = l.own
	}
	l.mux = s.mux
	l.gathering = gathering{life: &l.life, mid: mid, events: events, hosts: len(s.mux.addrs), complete: make(chan struct{})}
	agent, err := h.newAgent(s, l.answered, l.way.in)
	if err != nil {
		if l.own != nil {
			l.own.close()
		}
		return nil, err
	}
	l.agent.Store(agent)
	// SNAP falls back where the other side has it not.
	l.sctpInit, _ = sctp.GenerateOutOfBandToken(sctp.Config{MaxReceiveBufferSize: receiveBuffer, EnableZeroChecksum: true})
	if err := l.watch(l.gathering.candidate); err != nil {
		l.abandon()
		return nil, fmt.Errorf("rtclink: ICE agent: %w", err)
	}
	if !h.adopt(l) {
		l.abandon()
		return nil, ErrClosed
	}
	l.after(h.cfg.OpenTimeout, func() {
		if !l.opened.Load() {
			l.Close(peer.CloseTimeout, nil)
		}
	})
	return l, nil
}

// describe gathers addresses and returns what this side signals of the link.
func (l *Link) describe(setup sdp.Setup) (string, error) {
	agent := l.agent.Load()
	ufrag, password, err := agent.GetLocalUserCredentials()
	if err == nil {
		err = agent.GatherCandidates()
	}
	if err != nil {
		return "", err
	}
	d := sdp.Description{
		Ufrag: ufrag, Password: password, Fingerprint: l.host.identity.Fingerprint, Setup: setup, Mid: l.gathering.mid, MaxMessage: sctpMessage,
		Init: l.sctpInit, Candidates: l.gathering.description(),
	}
	return d.String(), nil
}

// start begins to connect, once.
func (l *Link) start(remote *sdp.Description, client bool) error {
	if !l.enter() {
		return ErrClosed
	}
	go l.connect(remote, client)
	return nil
}

// connect brings the link up: ICE, DTLS, SCTP, channels. client says that this side is the DTLS client.
func (l *Link) connect(remote *sdp.Description, client bool) {
	defer l.running.Done()
	association, err := l.associate(remote, client)
	if err != nil {
		l.host.cfg.Log.Debug("a link did not come up", "error", err)
		l.Close(peer.CloseFailed, nil)
		return
	}
	l.over(association)
	if l.offering {
		if err := l.channels.dial(association, client, l.host.loggers); err != nil {
			l.Close(peer.CloseFailed, nil)
			return
		}
		l.open()
	}
	// In a goroutine of its own: the stack of this one has grown in the handshake.
	l.running.Go(func() { l.accept(association) })
}

func (l *Link) associate(remote *sdp.Description, client bool) (*sctp.Association, error) {
	rtt, err := l.reach(remote)
	if err != nil {
		return nil, err
	}
	l.reaches(&l.stages.Reached)
	l.learn(rtt)
	if len(l.host.cfg.ICEServers) > 0 {
		conn := l.way.agent.Load()
		l.running.Go(func() { l.collect(conn) })
	}
	records, err := l.host.secure(l.ctx, &l.way, client, remote.Fingerprint, l.reader.stir)
	if err != nil {
		return nil, err
	}
	l.reaches(&l.stages.Secured)
	context.AfterFunc(l.ctx, func() { _ = records.Close() })
	association, err := l.overlay(records, remote)
	if err != nil {
		_ = records.Close()
		return nil, fmt.Errorf("SCTP: %w", err)
	}
	l.reaches(&l.stages.Associated)
	return association, nil
}

// overlay makes the association of a link over conn.
func (l *Link) overlay(conn net.Conn, remote *sdp.Description) (*sctp.Association, error) {
	options := []sctp.ClientOption{
		sctp.WithNetConn(&webrtcend.Bounded{Conn: conn}),
		sctp.WithLoggerFactory(l.host.loggers),
		sctp.WithMTU(webrtcend.MTU),
		sctp.WithMaxMessageSize(sctpMessage),
		sctp.WithMaxReceiveBufferSize(receiveBuffer),
		sctp.WithMaxReassemblyQueueEntries(mostFragments),
		sctp.WithMinCwnd(minCwnd),
		sctp.WithCwndCAStep(cwndStep),
		sctp.WithEnableZeroChecksum(true), // DTLS authenticates what CRC-32 would check again
	}
	if l.sctpInit != nil && remote.Init != nil {
		options = append(options, sctp.WithSNAP(l.sctpInit, remote.Init))
	}
	l.sctpInit = nil
	return sctp.ClientWithOptions(options...)
}

// accept takes the channels of the other side until the association ends. It goes on in a new goroutine after each, whose
// stack has not grown.
func (l *Link) accept(a *sctp.Association) {
	for {
		dc, err := datachannel.Accept(a, &datachannel.Config{LoggerFactory: l.host.loggers})
		switch {
		case err == nil:
			l.adopt(dc)
			l.running.Go(func() { l.accept(a) })
			return
		case errors.Is(err, io.EOF):
			l.reader.end()
			if !l.opened.Load() {
				l.Close(peer.CloseClosed, nil) // the reader does not run yet
			}
			return
		default: // a stream that does not begin as a channel does
			l.Close(peer.CloseProtocol, nil)
		}
	}
}

// adopt takes a channel that the other side has opened, or closes it when the plan has none for it.
func (l *Link) adopt(dc *datachannel.DataChannel) {
	strays, full := l.channels.take(dc)
	if strays > 0 {
		_ = dc.Close()
		if strays > peer.MaxStrayChannels {
			l.Close(peer.CloseProtocol, nil)
		}
		return
	}
	if full && !l.offering && !l.opened.Load() {
		l.open()
	}
}

// open tells the owner and begins to read. The channels are fixed now. It is called while connect or accept runs.
func (l *Link) open() {
	if !l.life.open() {
		return
	}
	if l.host.cfg.Keepalive == 0 { // else the agent's checks are wanted
		l.after(settleEvery, l.settle)
	}
	l.channels.control.OnBufferedAmountLow(func() {
		if l.drained() {
			l.events.Drain()
		}
	})
	for _, c := range l.channels.data {
		c.OnBufferedAmountLow(func() {
			if !l.closing.Load() {
				l.events.Drain()
			}
		})
	}
	l.events.Open()
	l.reader.begin()
}

// shutdown ends a link.
func (l *Link) shutdown(reason peer.CloseReason, farewell []byte, tell bool) {
	l.life.close() // an open or start that began before closing was set has counted its goroutine
	if l.opened.Load() {
		if farewell != nil {
			l.farewell(farewell, l.reader.gone)
		}
		l.abort()
	}
	l.cancel() // ends what is coming up, and closes the records
	l.route.close()
	l.running.Wait()
	l.leave()
	if tell {
		l.events.Closed(reason)
	}
	l.host.forget(l)
	close(l.done)
}

// Stages are the moments at which a link had come so far; zero before.
type Stages struct {
	Reached    time.Time // a pair of addresses works
	Secured    time.Time // the DTLS handshake is over
	Associated time.Time // SCTP takes messages
}

// milestones keep the stages of a link.
type milestones struct {
	mu     sync.Mutex
	stages Stages // guarded by mu
}

// Stages says when each step of the set-up was done.
func (m *milestones) Stages() Stages {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stages
}

// reaches notes that a step of the set-up is done.
func (m *milestones) reaches(step *time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*step = time.Now()
}
