package rtclink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/transport/v4/stdnet"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// ErrClosed is returned once the host is closing.
var ErrClosed = errors.New("rtclink: host is closed")

var errAnswered = errors.New("rtclink: accept: the link has an answer already")

const (
	// receiveBuffer of SCTP, bytes: with pion's default of 1 MiB a transfer stalls for good once channels × message
	// size come near it.
	receiveBuffer = 2 << 20
	// mostFragments of a channel are kept until they are read: twice as many as the requests that a peer may send at once (peer.Rates). SCTP counts
	// their bytes alone, of which a fragment may have none.
	mostFragments = 32_768
	// minCwnd of SCTP, bytes: its first window, and its lowest. Above what the bound in flight (flight.go) lets go at first
	// and on thin paths, so that the bound is the brake there: SCTP's own window, a dozen packets after a loss, is a tenth of
	// what a path of 10 Mbit/s and 50 ms carries.
	minCwnd = 64 << 10
	// cwndStep is by how many bytes SCTP's window grows a round trip after a loss. Both lanes have windows of our own, which
	// know the path; SCTP's packet a round trip takes 9 s back to what 100 Mbit/s and 40 ms hold, where one loss in the start
	// halved it.
	cwndStep = 8 * webrtcend.MTU
	// sctpMessage is the largest message of a control channel (spec/peer-protocol.md).
	sctpMessage = 65535
)

// Host makes links, all over one UDP socket unless Config.SocketPerLink is set.
type Host struct {
	cfg      Config
	identity *webrtcend.Identity
	net      *stdnet.Net
	loggers  loggers
	socket   *socket // nil with SocketPerLink
	buffers  Buffers

	mu     sync.Mutex
	links  map[*Link]struct{} // guarded by mu
	closed bool               // guarded by mu
}

// Listen opens the host's socket. The error names the address and what to do.
func Listen(cfg Config) (*Host, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	id, err := webrtcend.NewIdentity(time.Now())
	if err != nil {
		return nil, fmt.Errorf("rtclink: %w", err)
	}
	interfaces, err := stdnet.NewNet()
	if err != nil {
		return nil, fmt.Errorf("rtclink: list interfaces: %w", err)
	}
	h := &Host{cfg: cfg, identity: id, net: interfaces, loggers: newLoggers(cfg.Log), links: map[*Link]struct{}{}}
	if _, err := h.servers(); err != nil {
		return nil, err
	}
	if cfg.SocketPerLink {
		return h, nil
	}
	if h.socket, err = openSocket(cfg.Listen, cfg.Loopback, cfg.Guard); err != nil {
		return nil, err
	}
	h.buffers = h.socket.buffers
	warnBuffers(cfg.Log, h.buffers)
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

// Answer accepts an offer. The answer's plan is the one that holds; candidates of this side come by events.
func (h *Host) Answer(offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	if err := offer.Plan.Check(); err != nil {
		return nil, transfer.Description{}, fmt.Errorf("rtclink: answer: %w", err)
	}
	remote, err := sdp.Parse(offer.SDP)
	if err != nil {
		return nil, transfer.Description{}, fmt.Errorf("rtclink: answer: %w", err)
	}
	l, err := h.newLink(h.cfg.Plan.Agree(offer.Plan), false, remote.Mid, events)
	if err != nil {
		return nil, transfer.Description{}, err
	}
	remote.Candidates = l.admitted(remote.Candidates)
	role := answerRole(remote)
	text, err := l.describe(role)
	if err == nil {
		err = l.start(remote, role == sdp.Active)
	}
	if err != nil {
		l.abandon()
		return nil, transfer.Description{}, fmt.Errorf("rtclink: answer: %w", err)
	}
	return l, transfer.Description{SDP: text, Plan: l.channels.plan}, nil
}

// answerRole says which part the side that answers an offer takes in the DTLS handshake (spec/tracker-protocol.md, DTLS roles). Checks
// of an address that is known are answered as soon as the other side has the answer, one way earlier than the other side's own: the
// side that answers is quicker as the client. A browser, which sends no parameters of its association, reads a ClientHello only once
// its own check has worked, and could send one by then.
func answerRole(offer *sdp.Description) sdp.Setup {
	if offer.Setup == sdp.Passive || offer.Setup == sdp.ActPass && offer.Init != nil && offer.Addressed() {
		return sdp.Active
	}
	return sdp.Passive
}

// Offer begins a link; Link.Accept goes on with the other side's answer.
func (h *Host) Offer(events transfer.LinkEvents) (*Link, transfer.Description, error) {
	l, err := h.newLink(h.cfg.Plan, true, "0", events)
	if err != nil {
		return nil, transfer.Description{}, err
	}
	text, err := l.describe(sdp.ActPass)
	if err != nil {
		l.abandon()
		return nil, transfer.Description{}, fmt.Errorf("rtclink: offer: %w", err)
	}
	return l, transfer.Description{SDP: text, Plan: l.channels.plan}, nil
}

// Accept goes on with an offered link: answer is what the other side made of the offer.
func (l *Link) Accept(answer transfer.Description) error {
	if err := answer.Plan.Check(); err != nil {
		return fmt.Errorf("rtclink: accept: %w", err)
	}
	remote, err := sdp.Parse(answer.SDP)
	if err != nil {
		return fmt.Errorf("rtclink: accept: %w", err)
	}
	if remote.Setup == sdp.ActPass {
		return errors.New("rtclink: accept: the answer leaves open which end is the DTLS client")
	}
	remote.Candidates = l.admitted(remote.Candidates)
	if err := l.channels.agree(answer.Plan); err != nil {
		return err
	}
	return l.start(remote, remote.Setup == sdp.Passive)
}

// openOwn opens the socket of one link.
func (h *Host) openOwn() (*socket, error) {
	host, _, err := net.SplitHostPort(h.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("rtclink: listen address %q: %w", h.cfg.Listen, err)
	}
	return openSocket(net.JoinHostPort(host, "0"), h.cfg.Loopback, h.cfg.Guard)
}

// adopt notes a link; false when the host is closing.
func (h *Host) adopt(l *Link) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.links[l] = struct{}{}
	}
	return !h.closed
}

// Links is how many links there are, opening ones included.
func (h *Host) Links() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.links)
}

// forget takes out a link that has ended.
func (h *Host) forget(l *Link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.links, l)
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
