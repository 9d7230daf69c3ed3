package rtclink

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// route finds a way between the two ends of a link and keeps it: by an ICE agent first, and by what is left of it (consent.go)
// once the link is open and a pair of addresses is chosen that needs no server.
type route struct {
	life      *life
	own       *socket // this link's socket, nil when the host's is used
	mux       *mux    // of the socket
	offering  bool
	moved     func() // packets take another way from now on
	forget    func() // what was measured is of another way by now
	admission admission
	checked   chan struct{}             // a check may have been answered
	agent     atomic.Pointer[ice.Agent] // nil once the link is settled
	way       way
}

// share is one link's view of a socket's mux: its agent's port tells of answers to checks, and data go by the agent.
type share struct {
	*mux
	answered func()
	in       *intake
}

// GetConn implements ice.UDPMux.
func (s share) GetConn(ufrag string, addr net.Addr) (net.PacketConn, error) {
	return s.handle(ufrag, addr, s.answered, s.in)
}

// answered says that a check of this link's agent may have been answered.
func (r *route) answered() {
	select {
	case r.checked <- struct{}{}:
	default:
	}
}

// watch connects the agent's callbacks: candidate takes this side's addresses.
func (r *route) watch(candidate func(ice.Candidate)) error {
	agent := r.agent.Load()
	err := agent.OnCandidate(candidate)
	if err == nil {
		err = agent.OnConnectionStateChange(func(s ice.ConnectionState) {
			if s == ice.ConnectionStateFailed {
				r.life.Close(peer.CloseFailed, nil)
			}
		})
	}
	if err == nil {
		err = agent.OnSelectedCandidatePairChange(func(_, _ ice.Candidate) { r.moved() })
	}
	return err
}

// AddCandidate implements transfer.Link.
func (r *route) AddCandidate(c transfer.Candidate) error {
	if r.life.closing.Load() || c.End {
		return nil
	}
	parsed, ok := sdp.ParseCandidate(c.Candidate)
	if !ok {
		return errCandidate
	}
	if !r.admission.admits(parsed) {
		return errRefused
	}
	return r.add(parsed)
}

// add has the agent check a candidate.
func (r *route) add(c sdp.Candidate) error {
	candidate, err := ice.UnmarshalCandidate(strings.TrimPrefix(c.String(), "candidate:"))
	if err == nil {
		if agent := r.agent.Load(); agent != nil {
			err = agent.AddRemoteCandidate(candidate)
		} else {
			r.way.settled.Load().learn(candidate)
		}
	}
	if err != nil {
		return fmt.Errorf("rtclink: candidate: %w", err)
	}
	return nil
}

// admitted are the candidates of a description that may be checked.
func (r *route) admitted(all []sdp.Candidate) (some []sdp.Candidate) {
	for _, c := range all {
		if r.admission.admits(c) {
			some = append(some, c)
		}
	}
	return some
}

// reach begins to connect and returns as soon as one pair of addresses works, with its round-trip time. Waiting until the agents have
// agreed on the best one, as pion does before it gives its connection away, costs a round trip and up to 200 ms. Until then
// packets take the best of those that work. A relay is not settled for before its time: what it carries is counted.
func (r *route) reach(remote *sdp.Description) (time.Duration, error) {
	for _, c := range remote.Candidates {
		_ = r.add(c) // a bad candidate is a way that does not work; others may
	}
	agent := r.agent.Load()
	begin := agent.StartAccept
	if r.offering {
		begin = agent.StartDial
	}
	conn, err := begin(remote.Ufrag, remote.Password)
	if err != nil {
		return 0, fmt.Errorf("ICE: %w", err)
	}
	r.way.agent.Store(conn)
	ctx, cancel := context.WithCancel(r.life.ctx)
	defer cancel()
	agreed := make(chan error, 1)
	r.life.running.Go(func() { agreed <- agent.AwaitConnect(ctx) })
	for {
		select {
		case <-r.checked:
			if rtt, ok := works(conn.GetCandidatePairsInfo()); ok {
				return rtt, nil
			}
		case err := <-agreed:
			if err != nil {
				return 0, fmt.Errorf("ICE: %w", err)
			}
			s, _ := agent.GetSelectedCandidatePairStats()
			return time.Duration(s.CurrentRoundTripTime * float64(time.Second)), nil
		}
	}
}

// works says whether a pair without a relay works, and what its round-trip time is.
func works(pairs []ice.CandidatePairInfo) (time.Duration, bool) {
	for _, p := range pairs {
		if p.State == ice.CandidatePairStateSucceeded && p.LocalCandidateType != ice.CandidateTypeRelay && p.RemoteCandidateType != ice.CandidateTypeRelay {
			return p.CurrentRoundTripTime, true
		}
	}
	return 0, false
}

// collect takes in what comes by other sockets than ours, those of relays, until the agent closes.
func (r *route) collect(conn *ice.Conn) {
	buf := make([]byte, maxDatagram)
	for {
		n, err := conn.Read(buf)
		if err != nil && err != io.ErrShortBuffer {
			return
		}
		r.way.in.put(func(push func(packet)) { push(packet{data: append([]byte(nil), buf[:n]...)}) })
	}
}

// Path implements transfer.Link.
func (r *route) Path() transfer.Path {
	agent := r.agent.Load()
	if agent == nil {
		if r.way.settled.Load().relayed() {
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

// Check asks at once where the other side of a settled link is, and by asking says where this one is. Owners call it that know
// sooner than by checkAfter that something should have come. Links that an agent keeps up are left to it.
func (r *route) Check() {
	if c := r.way.settled.Load(); c != nil && !r.life.closing.Load() {
		c.ask(c.port.Load(), *c.to.Load())
	}
}

// settle lets the agent go once a pair is chosen, if that needs no server.
func (r *route) settle() {
	if !r.life.enter() {
		return
	}
	defer r.life.running.Done()
	agent := r.agent.Load()
	to, none, err := chosen(agent)
	if none {
		r.life.after(settleEvery, r.settle)
		return
	}
	var c *consent
	if err == nil {
		c, err = newConsent(agent, !r.offering, to)
	}
	if err != nil {
		return // the agent stays
	}
	c.moved = func() { r.forget(); r.moved() }
	c.learnAll(agent) // or the path to a relay would seem direct for a moment
	if !r.mux.settle(c) {
		return
	}
	r.way.settled.Store(c)
	r.agent.Store(nil)
	r.way.agent.Store(nil)
	c.learnAll(agent) // what was signaled meanwhile; from now on it comes to c
	_ = agent.GracefulClose()
	r.life.after(checkAfter, r.mourn)
}

// mourn asks on a settled link on which nothing comes, and ends one on which nothing comes any more.
func (r *route) mourn() {
	c := r.way.settled.Load()
	switch silent := c.silent(); {
	case silent >= LostAfter:
		r.life.Close(peer.CloseFailed, nil)
	case silent >= checkAfter:
		c.ask(c.port.Load(), *c.to.Load())
		r.life.after(checkEvery, r.mourn)
	default:
		r.life.after(checkAfter-silent, r.mourn)
	}
}

// close ends what comes in, and the agent if there is one.
func (r *route) close() {
	r.way.in.close()
	if agent := r.agent.Load(); agent != nil {
		_ = agent.GracefulClose()
	}
}

// leave gives back what the link has of its socket, once nothing of it runs any more.
func (r *route) leave() {
	if c := r.way.settled.Load(); c != nil {
		r.mux.end(c)
	}
	if r.own != nil {
		r.own.close()
	}
}
