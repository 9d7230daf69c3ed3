package arm

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/pion/ice/v4"
	"github.com/pion/transport/v4/stdnet"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Bytes asked of the kernel, each direction.
const (
	socketBuffer  = 4 << 20 // of a socket that sessions share
	sessionBuffer = 1 << 20 // of the socket of one session with media
)

// linkPlan is of the links between arms (spec/arm-protocol.md).
var linkPlan = peer.Plan{V: 1, Data: 1, Message: 16384}

// stacks are what sessions are made of.
type stacks struct {
	links *sockets[*rtclink.Host]
	peers *sockets[*peerSocket]
	// direct opens the socket of a session with media; nil where it would not say by which address peers reach it: such sessions share
	// sockets, as those without media do.
	direct func(*peerConn) (*webrtc.API, *direct, error)

	certificate webrtc.Certificate
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
	k := stacks{
		certificate: certificate,
		links: &sockets[*rtclink.Host]{limit: cfg.MaxSockets, open: func() (*rtclink.Host, error) {
			return rtclink.Listen(rtclink.Config{Listen: address, Plan: linkPlan, Log: cfg.Log})
		}},
		peers: &sockets[*peerSocket]{limit: cfg.MaxSockets, open: func() (*peerSocket, error) {
			return openPeerSocket(address, interfaces)
		}},
	}
	if cfg.Listen.IsUnspecified() {
		return k, nil
	}
	media, err := newMediaParts(peerSettings(net.IP(cfg.Listen.AsSlice()), interfaces))
	if err != nil {
		return stacks{}, fmt.Errorf("arm: media: %w", err)
	}
	k.direct = func(c *peerConn) (*webrtc.API, *direct, error) {
		d, err := listenDirect(address, &c.boxes)
		if err != nil {
			return nil, nil, err
		}
		return media.api(c, d), d, nil
	}
	return k, nil
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
	c := &peerConn{s: s, rtp: rtpCounts{total: &s.arm.counts}}
	if err := k.seat(c, peers, media); err != nil {
		return nil, err
	}
	if err := c.begin(k.certificate); err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

// seat gives a connection its socket.
func (k *stacks) seat(c *peerConn, peers []netip.AddrPort, media bool) (bad *armwire.Error) {
	if media && k.direct != nil {
		var err error
		if c.api, c.own, err = k.direct(c); err != nil {
			return armwire.Fail(armwire.Failed, "%v", err)
		}
		return nil
	}
	if c.at, bad = k.peers.take(peers); bad != nil {
		return bad
	}
	if c.api = c.at.socket.of.data; media {
		c.api = c.at.socket.of.media.api(c, nil)
	}
	return nil
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
	mux   *ice.UDPMuxDefault
	data  *webrtc.API
	media *mediaParts
}

func openPeerSocket(address string, interfaces *stdnet.Net) (*peerSocket, error) {
	conn, err := listenUDP(address, socketBuffer)
	if err != nil {
		return nil, err
	}
	p := &peerSocket{mux: ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: conn, Net: interfaces, Logger: quiet{}})}
	e := peerSettings(conn.LocalAddr().(*net.UDPAddr).IP, interfaces)
	e.SetICEUDPMux(p.mux)
	p.data = webrtc.NewAPI(webrtc.WithSettingEngine(e), webrtc.WithInterceptorRegistry(noInterceptors()))
	if p.media, err = newMediaParts(e); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// listenUDP opens a socket with buffers of so many bytes each way, if the kernel allows.
func listenUDP(address string, buffer int) (*net.UDPConn, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(buffer)
	_ = conn.SetWriteBuffer(buffer)
	return conn, nil
}

// peerSettings are what all of pion's connections have that are reached by an address.
func peerSettings(at net.IP, interfaces *stdnet.Net) (e webrtc.SettingEngine) {
	e.LoggerFactory = quiet{}
	e.SetNet(interfaces)
	e.SetIncludeLoopbackCandidate(at.IsLoopback())
	e.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	e.DetachDataChannels()
	e.DisableActiveTCP(true)
	e.SetDTLSInsecureSkipHelloVerify(true) // ICE has shown the address already
	e.SetSCTPMaxReceiveBufferSize(receiveBuffer)
	e.EnableSCTPZeroChecksum(true)
	return e
}

func (p *peerSocket) close() { _ = p.mux.Close() }
