package rtclink

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/pion/ice/v4"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// gatherWait is how long a description waits for the addresses of its own machine, which are there at once: sent with
// it, they let the other side begin its checks when the description arrives.
const gatherWait = 20 * time.Millisecond

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
func (l *Link) answered() {
	select {
	case l.checked <- struct{}{}:
	default:
	}
}

// reach begins to connect and returns as soon as one pair of addresses works. Waiting until the agents have agreed on
// the best one, as pion does before it gives its connection away, costs a round trip and up to 200 ms. Until then
// packets take the best of those that work. A relay is not settled for before its time: what it carries is counted.
func (l *Link) reach(remote *sdp.Description) (*ice.Conn, error) {
	agent := l.agent.Load()
	begin := agent.StartAccept
	if l.offering {
		begin = agent.StartDial
	}
	conn, err := begin(remote.Ufrag, remote.Password)
	if err != nil {
		return nil, fmt.Errorf("ICE: %w", err)
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	agreed := make(chan error, 1)
	l.running.Go(func() { agreed <- agent.AwaitConnect(ctx) })
	for {
		select {
		case <-l.checked:
			if rtt, ok := works(conn.GetCandidatePairsInfo()); ok {
				l.firstRTT = rtt
				return conn, nil
			}
		case err := <-agreed:
			if err != nil {
				return nil, fmt.Errorf("ICE: %w", err)
			}
			l.firstRTT = l.roundTrip()
			return conn, nil
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

// roundTrip is ICE's last measurement of the path, 0 without one.
func (l *Link) roundTrip() time.Duration {
	s, ok := l.agent.Load().GetSelectedCandidatePairStats()
	if !ok {
		return 0
	}
	return time.Duration(s.CurrentRoundTripTime * float64(time.Second))
}

// gather begins to gather and returns what is there at once; the rest goes to the owner by events.
func (l *Link) gather() ([]sdp.Candidate, error) {
	if err := l.agent.Load().GatherCandidates(); err != nil {
		return nil, err
	}
	timer := time.NewTimer(gatherWait)
	defer timer.Stop()
	select {
	case <-l.gathered:
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.first
	l.first, l.described = nil, true
	return first, nil
}

// candidate tells of an address of this side: in the description, if it is the machine's own and there in time, or by an
// event. What servers say goes by events always: owners explain by it why a link does not open.
func (l *Link) candidate(c ice.Candidate) {
	if l.closing.Load() {
		return
	}
	if c == nil {
		l.gatheredOnce.Do(func() { close(l.gathered) })
		l.events.Candidate(transfer.Candidate{End: true})
		return
	}
	text := "candidate:" + c.Marshal()
	if c.Type() == ice.CandidateTypeHost && l.describes(text) {
		return
	}
	l.events.Candidate(transfer.Candidate{Candidate: text, Mid: l.mid})
}

// describes takes an address into the description; false when that is out. With the last of them there is no more to
// wait for.
func (l *Link) describes(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.described {
		return false
	}
	if c, ok := sdp.ParseCandidate(text); ok {
		l.first = append(l.first, c)
	}
	if len(l.first) == l.hosts {
		l.gatheredOnce.Do(func() { close(l.gathered) })
	}
	return true
}
