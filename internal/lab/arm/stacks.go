package arm

import (
	"fmt"
	"net"
	"strings"

	"github.com/pion/ice/v4"
	"github.com/pion/transport/v4/stdnet"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const socketBuffer = 4 << 20 // bytes asked of the kernel, each direction

// linkPlan is of the links between arms (spec/arm-protocol.md).
var linkPlan = peer.Plan{V: 1, Data: 1, Message: 16384}

// stacks are what sessions are made of.
type stacks struct {
	links *sockets[*rtclink.Host]
	peers *sockets[*peerSocket]
}

func newStacks(cfg *Config) (stacks, error) {
	certificate, err := newCertificate()
	if err != nil {
		return stacks{}, fmt.Errorf("arm: certificate: %w", err)
	}
	interfaces, err := stdnet.NewNet()
	if err != nil {
		return stacks{}, fmt.Errorf("arm: list interfaces: %w", err)
	}
	address := net.JoinHostPort(cfg.Listen.String(), "0")
	return stacks{
		links: &sockets[*rtclink.Host]{limit: cfg.MaxSockets, open: func() (*rtclink.Host, error) {
			return rtclink.Listen(rtclink.Config{Listen: address, Plan: linkPlan, Log: cfg.Log})
		}},
		peers: &sockets[*peerSocket]{limit: cfg.MaxSockets, open: func() (*peerSocket, error) {
			return openPeerSocket(address, certificate, interfaces)
		}},
	}, nil
}

// connect makes the connection of a session; offer is the peer's, if there is one.
func (k *stacks) connect(s *session, offer *string, media bool) (connection, *armwire.Error) {
	text := ""
	if offer != nil {
		text = *offer
	}
	peers := addressesOf(text)
	if s.body.Stack == armwire.Link {
		if media {
			return nil, armwire.Fail(armwire.Unsupported, "a session of the stack link has no media")
		}
		at, err := k.links.take(peers)
		if err != nil {
			return nil, err
		}
		return newLinkConn(s, at), nil
	}
	at, err := k.peers.take(peers)
	if err != nil {
		return nil, err
	}
	c, err := newPeerConn(s, at, media)
	if err != nil {
		at.leave()
		return nil, err
	}
	return c, nil
}

func (k *stacks) close() {
	k.links.each(func(h *rtclink.Host) { _ = h.Close() })
	k.peers.each(func(p *peerSocket) { p.close() })
}

func hasMedia(sdp string) bool {
	return strings.Contains(sdp, "\nm=audio") || strings.Contains(sdp, "\nm=video")
}

// peerSocket is a UDP socket of the stack peer-connection, with pion's factories over it: one for data, which has no interceptors, and
// one for media.
type peerSocket struct {
	mux         *ice.UDPMuxDefault
	data        *webrtc.API
	media       *mediaParts
	certificate webrtc.Certificate
}

func openPeerSocket(address string, certificate webrtc.Certificate, interfaces *stdnet.Net) (*peerSocket, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
	p := &peerSocket{certificate: certificate}
	p.mux = ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: conn, Net: interfaces, Logger: quiet{}})
	var e webrtc.SettingEngine
	e.LoggerFactory = quiet{}
	e.SetICEUDPMux(p.mux)
	e.SetNet(interfaces)
	e.SetIncludeLoopbackCandidate(addr.IP.IsLoopback())
	e.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	e.DetachDataChannels()
	e.DisableActiveTCP(true)
	e.SetDTLSInsecureSkipHelloVerify(true) // ICE has shown the address already
	e.SetSCTPMaxReceiveBufferSize(receiveBuffer)
	e.EnableSCTPZeroChecksum(true)
	p.data = webrtc.NewAPI(webrtc.WithSettingEngine(e), webrtc.WithInterceptorRegistry(noInterceptors()))
	if p.media, err = newMediaParts(e); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *peerSocket) close() { _ = p.mux.Close() }
