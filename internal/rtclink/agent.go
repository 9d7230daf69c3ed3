package rtclink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/pion/ice/v4"
	"github.com/pion/sctp"
	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

var (
	errCandidate = errors.New("rtclink: candidate: malformed, or of a kind that is not used")
	errRefused   = errors.New("rtclink: candidate: refused")
)

// outboundMTU is the size of SCTP's packets, bytes: what Chromium takes for safe on any path.
const outboundMTU = 1191

// newAgent makes the ICE agent of a link over s; answered is called when a check of its was answered, and in gets the data.
func (h *Host) newAgent(s *socket, answered func(), in *intake) (*ice.Agent, error) {
	options := []ice.AgentOption{
		ice.WithUDPMux(share{s.mux, answered, in}),
		ice.WithNet(h.net), // one for all: each would list the machine's interfaces and keep the list
		ice.WithNetworkTypes([]ice.NetworkType{ice.NetworkTypeUDP4, ice.NetworkTypeUDP6}),
		// A viewer's .local candidates are not looked up: its own checks reach us and make it a peer-reflexive
		// candidate. A lookup costs a multicast socket and five goroutines a link.
		ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled),
		ice.WithDisconnectedTimeout(quietAfter),
		ice.WithFailedTimeout(LostAfter - quietAfter),
		ice.WithKeepaliveInterval(h.cfg.Keepalive),
		ice.WithLoggerFactory(h.loggers),
	}
	if h.cfg.Loopback || s.addr.IP.IsLoopback() {
		options = append(options, ice.WithIncludeLoopback())
	}
	if h.cfg.RelayOnly {
		options = append(options, ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeRelay}))
	}
	if len(h.cfg.Announce) > 0 {
		external := make([]string, len(h.cfg.Announce))
		for i, a := range h.cfg.Announce {
			external[i] = a.String()
		}
		options = append(options, ice.WithAddressRewriteRules(ice.AddressRewriteRule{
			External: external, AsCandidateType: ice.CandidateTypeHost, Mode: ice.AddressRewriteReplace,
		}))
	}
	servers, err := h.servers()
	if err != nil {
		return nil, err
	}
	agent, err := ice.NewAgentWithOptions(append(options, ice.WithUrls(servers))...)
	if err != nil {
		return nil, fmt.Errorf("rtclink: ICE agent: %w", err)
	}
	return agent, nil
}

// servers reads the configured STUN and TURN servers.
func (h *Host) servers() ([]*stun.URI, error) {
	var out []*stun.URI
	for _, s := range h.cfg.ICEServers {
		for _, u := range s.URLs {
			uri, err := stun.ParseURI(u)
			if err != nil {
				return nil, fmt.Errorf("rtclink: ICE server %q: %w", u, err)
			}
			uri.Username, uri.Password = s.Username, s.Credential
			out = append(out, uri)
		}
	}
	return out, nil
}

// watch connects the agent's callbacks with the link's events.
func (l *Link) watch() error {
	agent := l.agent.Load()
	err := agent.OnCandidate(l.candidate)
	if err == nil {
		err = agent.OnConnectionStateChange(func(s ice.ConnectionState) {
			if s == ice.ConnectionStateFailed {
				l.Close(peer.CloseFailed, nil)
			}
		})
	}
	if e, ok := l.events.(transfer.PathEvents); ok && err == nil {
		err = agent.OnSelectedCandidatePairChange(func(_, _ ice.Candidate) { e.Moved() })
	}
	return err
}

// AddCandidate implements transfer.Link.
func (l *Link) AddCandidate(c transfer.Candidate) error {
	if l.closing.Load() || c.End {
		return nil
	}
	parsed, ok := sdp.ParseCandidate(c.Candidate)
	if !ok {
		return errCandidate
	}
	if !l.admission.admits(parsed) {
		return errRefused
	}
	return l.add(parsed)
}

// add has the agent check a candidate.
func (l *Link) add(c sdp.Candidate) error {
	candidate, err := ice.UnmarshalCandidate(strings.TrimPrefix(c.String(), "candidate:"))
	if err == nil {
		if agent := l.agent.Load(); agent != nil {
			err = agent.AddRemoteCandidate(candidate)
		} else {
			l.way.settled.Load().learn(candidate)
		}
	}
	if err != nil {
		return fmt.Errorf("rtclink: candidate: %w", err)
	}
	return nil
}

// admitted are the candidates of a description that may be checked.
func (l *Link) admitted(all []sdp.Candidate) (some []sdp.Candidate) {
	for _, c := range all {
		if l.admission.admits(c) {
			some = append(some, c)
		}
	}
	return some
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
	l.mu.Lock()
	l.association = association
	l.mu.Unlock()
	if l.offering {
		if err := l.dial(association, client); err != nil {
			l.Close(peer.CloseFailed, nil)
			return
		}
		l.open()
	}
	// In a goroutine of its own: the stack of this one has grown in the handshake.
	l.running.Go(func() { l.accept(association) })
}

func (l *Link) associate(remote *sdp.Description, client bool) (*sctp.Association, error) {
	for _, c := range remote.Candidates {
		_ = l.add(c) // a bad candidate is a way that does not work; others may
	}
	conn, err := l.reach(remote)
	if err != nil {
		return nil, err
	}
	l.reaches(&l.stages.Reached)
	l.way = &way{in: l.in}
	l.way.agent.Store(conn)
	if len(l.host.cfg.ICEServers) > 0 {
		l.running.Go(func() { l.collect(conn) })
	}
	records, err := l.host.secure(l.ctx, l.way, client, remote.Fingerprint, l.stir)
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
		sctp.WithNetConn(conn),
		sctp.WithLoggerFactory(l.host.loggers),
		sctp.WithMTU(outboundMTU),
		sctp.WithMaxMessageSize(sctpMessage),
		sctp.WithMaxReceiveBufferSize(receiveBuffer),
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
