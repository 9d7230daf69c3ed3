package qualitylink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/transport/v4/stdnet"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// foundation of this side's candidates: there is one of a family, so that none has to be told from another.
const foundation = "1"

// Host has one socket for all its lines.
type Host struct {
	identity *webrtcend.Identity
	gate     *gate
	mux      *ice.UDPMuxDefault
	net      *stdnet.Net
	at       netip.AddrPort // of the socket
	own      []netip.Addr   // of the machine, other than loopback and link-local ones

	mu     sync.Mutex
	lines  map[*Line]struct{} // guarded by mu
	closed bool               // guarded by mu
}

// NewHost makes a host on a socket, which it closes.
func NewHost(socket Socket) (*Host, error) {
	id, err := webrtcend.NewIdentity(time.Now())
	if err != nil {
		return nil, fmt.Errorf("quality link: %w", err)
	}
	interfaces, err := stdnet.NewNet()
	if err != nil {
		return nil, fmt.Errorf("quality link: list interfaces: %w", err)
	}
	h := &Host{
		identity: id, gate: &gate{Socket: socket}, net: interfaces,
		at: addrPort(socket.LocalAddr()), lines: map[*Line]struct{}{},
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("quality link: list addresses: %w", err)
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			h.own = append(h.own, p.Addr().Unmap())
		}
	}
	h.mux = ice.NewUDPMuxDefault(ice.UDPMuxParams{Logger: silent.NewLogger("ice"), UDPConn: h.gate, Net: interfaces})
	return h, nil
}

// Port is the socket's.
func (h *Host) Port() uint16 { return h.at.Port() }

// Asked is an offer, and the address that it came from.
type Asked struct {
	Offer   string     // SDP
	Client  netip.Addr // packets of it, or of its /64, are taken, and no other's
	Reached netip.Addr // this side's address that the client has reached
	// Announced replaces Reached where the client does not see this side's addresses.
	Announced []netip.Addr
	DSCP      int // of the packets to the client
}

// Answer makes a line of an offer. Its error is a *DescriptionError where the offer is to blame.
func (h *Host) Answer(asked Asked, events Events) (*Line, string, error) {
	remote, err := sdp.Parse(asked.Offer)
	if err != nil {
		return nil, "", &DescriptionError{err}
	}
	setup := sdp.Passive
	if remote.Setup == sdp.Passive {
		setup = sdp.Active
	}
	remote.Setup = opposite(setup)
	client, reached := asked.Client.Unmap(), asked.Reached.Unmap().WithZone("")
	l, err := h.line(h.networksOf(client), asked.DSCP, reached, true, events)
	if err != nil {
		return nil, "", err
	}
	d, err := l.describe(setup, remote.Mid)
	if err != nil {
		l.abandon()
		return nil, "", err
	}
	announced := asked.Announced
	if len(announced) == 0 {
		announced = h.reachedAt(reached)
	}
	for i, a := range announced {
		d.Candidates = append(d.Candidates, sdp.Candidate{
			Foundation: foundation, Priority: 1<<31 - uint32(i) - 1, Addr: a.Unmap(), Port: h.Port(), Type: sdp.Host,
		})
	}
	l.begin(remote, false)
	return l, strings.Replace(d.String(), "t=0 0\r\n", "t=0 0\r\na=ice-lite\r\n", 1), nil
}

// networksOf is where packets of a client come from. One on loopback is on this machine, and a browser there may send from any of its
// addresses.
func (h *Host) networksOf(client netip.Addr) []netip.Prefix {
	all := []netip.Prefix{access.Network(client)}
	if client.IsLoopback() {
		for _, a := range h.own {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return all
}

// reachedAt is where a client is to send to. Firefox makes no pair with a loopback address.
func (h *Host) reachedAt(reached netip.Addr) []netip.Addr {
	if !h.at.Addr().IsUnspecified() {
		return []netip.Addr{h.at.Addr()}
	}
	all := []netip.Addr{reached}
	if reached.IsLoopback() {
		for _, a := range h.own {
			if a.Is4() == reached.Is4() {
				all = append(all, a)
			}
		}
	}
	return all
}

func opposite(s sdp.Setup) sdp.Setup {
	if s == sdp.Active {
		return sdp.Passive
	}
	return sdp.Active
}

// Offer makes a line that offers, from an address of this side's.
func (h *Host) Offer(from netip.Addr, dscp int, events Events) (*Line, string, error) {
	l, err := h.line(nil, dscp, from.Unmap(), false, events)
	if err != nil {
		return nil, "", err
	}
	d, err := l.describe(sdp.ActPass, "0")
	if err != nil {
		l.abandon()
		return nil, "", err
	}
	return l, d.String(), nil
}

// Accept goes on with an answer to the line's offer, once.
func (l *Line) Accept(answer string) error {
	remote, err := sdp.Parse(answer)
	if err == nil && remote.Setup == sdp.ActPass {
		err = &sdp.Error{Field: "setup"}
	}
	if err != nil {
		return &DescriptionError{err}
	}
	for _, c := range remote.Candidates {
		candidate, err := ice.UnmarshalCandidate(strings.TrimPrefix(c.String(), "candidate:"))
		if err == nil {
			_ = l.agent.AddRemoteCandidate(candidate) // of another family: a way that does not work
		}
	}
	l.begin(remote, true)
	return nil
}

// begin runs a line, once.
func (l *Line) begin(remote *sdp.Description, offering bool) {
	if l.begun.CompareAndSwap(false, true) {
		l.running.Go(func() { l.run(remote, offering) })
	}
}

// line makes the parts that do not know the other side.
func (h *Host) line(networks []netip.Prefix, dscp int, local netip.Addr, lite bool, events Events) (*Line, error) {
	if !h.at.Addr().IsUnspecified() {
		local = h.at.Addr()
	}
	l := &Line{events: events, identity: h.identity, pass: h.gate.open(networks, dscp), lane: newLane()}
	agent, err := ice.NewAgentWithOptions(
		ice.WithUDPMux(share{h, l.pass, &net.UDPAddr{IP: local.AsSlice(), Port: int(h.Port())}}), ice.WithNet(h.net), ice.WithICELite(lite),
		ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeHost}), ice.WithIncludeLoopback(), ice.WithLoggerFactory(silent),
		ice.WithNetworkTypes([]ice.NetworkType{ice.NetworkTypeUDP4, ice.NetworkTypeUDP6}), ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled),
		ice.WithDisconnectedTimeout(lostTime), ice.WithFailedTimeout(lostTime),
	)
	if err != nil {
		h.gate.shut(l.pass)
		return nil, fmt.Errorf("quality link: ICE: %w", err)
	}
	l.agent = agent
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.leave = func() {
		h.gate.shut(l.pass)
		h.mu.Lock()
		delete(h.lines, l)
		h.mu.Unlock()
	}
	err = errors.Join(agent.OnCandidate(func(ice.Candidate) {}), agent.OnConnectionStateChange(func(s ice.ConnectionState) {
		if s == ice.ConnectionStateFailed {
			l.cancel(ErrOpen)
		}
	}))
	h.mu.Lock()
	if h.closed {
		err = ErrClosed
	} else {
		h.lines[l] = struct{}{}
	}
	h.mu.Unlock()
	if err != nil {
		l.abandon()
		return nil, err
	}
	return l, nil
}

// describe says what this side is, without candidates.
func (l *Line) describe(setup sdp.Setup, mid string) (*sdp.Description, error) {
	ufrag, password, err := l.agent.GetLocalUserCredentials()
	if err == nil {
		err = l.agent.GatherCandidates()
	}
	if err != nil {
		return nil, fmt.Errorf("quality link: ICE: %w", err)
	}
	return &sdp.Description{
		Ufrag: ufrag, Password: password, Fingerprint: l.identity.Fingerprint, Setup: setup, Mid: mid, MaxMessage: largest,
	}, nil
}

// abandon ends a line that has not begun.
func (l *Line) abandon() {
	l.cancel(ErrClosed)
	_ = l.agent.GracefulClose()
	l.leave()
}

// Close ends every line and the socket.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	var all []*Line
	for l := range h.lines {
		all = append(all, l)
	}
	h.mu.Unlock()
	for _, l := range all {
		l.Close()
	}
	_ = h.mux.Close()
}

// share is a line's view of the mux: one address, and packets that are noted.
type share struct {
	host  *Host
	pass  *pass
	local *net.UDPAddr
}

// GetConn implements ice.UDPMux.
func (s share) GetConn(ufrag string, addr net.Addr) (net.PacketConn, error) {
	conn, err := s.host.mux.GetConn(ufrag, addr)
	if err != nil {
		return nil, err
	}
	return written{conn, s.pass}, nil
}

// RemoveConnByUfrag implements ice.UDPMux.
func (s share) RemoveConnByUfrag(ufrag string) { s.host.mux.RemoveConnByUfrag(ufrag) }

// GetListenAddresses implements ice.UDPMux.
func (s share) GetListenAddresses() []net.Addr { return []net.Addr{s.local} }

// Close implements ice.UDPMux; the socket is the host's.
func (s share) Close() error { return nil }
