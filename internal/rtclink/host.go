package rtclink

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/transfer"
)

// ErrClosed is returned once the host is closing.
var ErrClosed = errors.New("rtclink: host is closed")

const (
	// receiveBuffer of SCTP, bytes: with pion's default of 1 MiB a transfer stalls for good once channels × message
	// size come near it.
	receiveBuffer = 4 << 20
	// minCwnd of SCTP, bytes, about 10 MTU: a timeout or an idle time does not strand the next burst. Much more is
	// harmful.
	minCwnd = 12 << 10
	// sctpMessage is the largest message of a control channel (spec/peer-protocol.md).
	sctpMessage = 65535
)

// Host makes links, all over one UDP socket unless Config.SocketPerLink is set.
type Host struct {
	cfg         Config
	certificate webrtc.Certificate
	socket      *socket // nil with SocketPerLink
	api         *webrtc.API
	buffers     Buffers

	mu     sync.Mutex
	links  map[*Link]struct{} // guarded by mu
	closed bool               // guarded by mu
}

// Listen opens the host's socket. The error names the address and what to do.
func Listen(cfg Config) (*Host, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("rtclink: DTLS key: %w", err)
	}
	// One identity for all links of a host: a key a link costs time at each offer and hides nothing, for the
	// addresses are the same.
	certificate, err := webrtc.GenerateCertificate(key)
	if err != nil {
		return nil, fmt.Errorf("rtclink: DTLS certificate: %w", err)
	}
	h := &Host{cfg: cfg, certificate: *certificate, links: map[*Link]struct{}{}}
	if cfg.SocketPerLink {
		return h, nil
	}
	if h.socket, err = openSocket(cfg.Listen, cfg.Loopback); err != nil {
		return nil, err
	}
	h.buffers = h.socket.buffers
	warnBuffers(cfg.Log, h.buffers)
	if h.api, err = h.newAPI(h.socket); err != nil {
		h.socket.close()
		return nil, err
	}
	return h, nil
}

// Buffers are the kernel's buffer sizes of the host's socket, zero with SocketPerLink.
func (h *Host) Buffers() Buffers { return h.buffers }

// Addr is the address of the host's socket, the zero value with SocketPerLink.
func (h *Host) Addr() netip.AddrPort {
	if h.socket == nil {
		return netip.AddrPort{}
	}
	return h.socket.addr.AddrPort()
}

// newAPI settles pion for links over s.
func (h *Host) newAPI(s *socket) (*webrtc.API, error) {
	var e webrtc.SettingEngine
	e.LoggerFactory = loggers{h.cfg.Log}
	e.SetICEUDPMux(s.mux)
	e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	// A viewer's .local candidates are not looked up: its own checks reach us and make it a peer-reflexive candidate.
	// A lookup costs a multicast socket and five goroutines a link.
	e.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	e.SetIncludeLoopbackCandidate(h.cfg.Loopback || s.addr.IP.IsLoopback())
	if len(h.cfg.Announce) > 0 {
		external := make([]string, len(h.cfg.Announce))
		for i, a := range h.cfg.Announce {
			external[i] = a.String()
		}
		if err := e.SetICEAddressRewriteRules(webrtc.ICEAddressRewriteRule{
			External: external, AsCandidateType: webrtc.ICECandidateTypeHost, Mode: webrtc.ICEAddressRewriteReplace,
		}); err != nil {
			return nil, fmt.Errorf("rtclink: announce %v: %w", external, err)
		}
	}
	// Answering as DTLS server saves a round trip: the viewer's ClientHello can leave with its first check's answer.
	// Hello-verify guards a server against forged source addresses that would make it amplify; here ICE's consent
	// (a check signed with this link's password, answered from that address) has shown the address before the
	// first DTLS packet is read, so the cookie's round trip would prove nothing more.
	if err := e.SetAnsweringDTLSRole(webrtc.DTLSRoleServer); err != nil {
		return nil, fmt.Errorf("rtclink: DTLS role: %w", err)
	}
	e.SetDTLSInsecureSkipHelloVerify(true)
	e.SetSCTPMaxReceiveBufferSize(receiveBuffer)
	e.SetSCTPMaxMessageSize(sctpMessage)
	e.SetSCTPMinCwnd(minCwnd)
	e.SetICETimeouts(quietAfter, LostAfter-quietAfter, h.cfg.Keepalive)
	e.EnableSCTPZeroChecksum(true) // DTLS authenticates what CRC-32 would check again
	e.EnableSctpSnap(true)         // falls back where the other side has it not
	e.DetachDataChannels()         // else pion holds 64 KiB a channel to read into
	// An empty registry and engine: no media, no interceptors and none of their goroutines.
	return webrtc.NewAPI(webrtc.WithSettingEngine(e), webrtc.WithMediaEngine(&webrtc.MediaEngine{}),
		webrtc.WithInterceptorRegistry(&interceptor.Registry{})), nil
}

// Answer accepts an offer. The answer's plan is the one that holds; candidates of this side come by events.
func (h *Host) Answer(offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	if err := offer.Plan.Check(); err != nil {
		return nil, transfer.Description{}, fmt.Errorf("rtclink: answer: %w", err)
	}
	l, err := h.newLink(h.cfg.Plan.Agree(offer.Plan), events)
	if err != nil {
		return nil, transfer.Description{}, err
	}
	l.acceptChannels()
	sdp, err := l.answer(offer.SDP)
	if err != nil {
		l.abandon()
		return nil, transfer.Description{}, fmt.Errorf("rtclink: answer: %w", err)
	}
	return l, transfer.Description{SDP: sdp, Plan: l.plan}, nil
}

// Offer begins a link; Link.Accept goes on with the other side's answer.
func (h *Host) Offer(events transfer.LinkEvents) (*Link, transfer.Description, error) {
	l, err := h.newLink(h.cfg.Plan, events)
	if err != nil {
		return nil, transfer.Description{}, err
	}
	sdp, err := l.offer()
	if err != nil {
		l.abandon()
		return nil, transfer.Description{}, fmt.Errorf("rtclink: offer: %w", err)
	}
	return l, transfer.Description{SDP: sdp, Plan: l.plan}, nil
}

// connection makes a peer connection, with a socket of its own where the host has none.
func (h *Host) connection() (*webrtc.PeerConnection, *socket, error) {
	api, own := h.api, (*socket)(nil)
	if h.socket == nil {
		host, _, err := net.SplitHostPort(h.cfg.Listen)
		if err != nil {
			return nil, nil, fmt.Errorf("rtclink: listen address %q: %w", h.cfg.Listen, err)
		}
		if own, err = openSocket(net.JoinHostPort(host, "0"), h.cfg.Loopback); err != nil {
			return nil, nil, err
		}
		if api, err = h.newAPI(own); err != nil {
			own.close()
			return nil, nil, err
		}
	}
	cfg := webrtc.Configuration{Certificates: []webrtc.Certificate{h.certificate}}
	for _, s := range h.cfg.ICEServers {
		cfg.ICEServers = append(cfg.ICEServers, webrtc.ICEServer{URLs: s.URLs, Username: s.Username, Credential: s.Credential})
	}
	if h.cfg.RelayOnly {
		cfg.ICETransportPolicy = webrtc.ICETransportPolicyRelay
	}
	pc, err := api.NewPeerConnection(cfg)
	if err != nil {
		if own != nil {
			own.close()
		}
		return nil, nil, fmt.Errorf("rtclink: peer connection: %w", err)
	}
	return pc, own, nil
}

// Close ends every link and the socket, and returns when nothing of them runs any more.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	links := make([]*Link, 0, len(h.links))
	for l := range h.links {
		links = append(links, l)
	}
	h.mu.Unlock()
	for _, l := range links {
		l.Close("shutdown", nil)
	}
	for _, l := range links {
		<-l.Done()
	}
	if h.socket != nil {
		h.socket.close()
	}
	return nil
}
