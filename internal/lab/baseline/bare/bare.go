// Package bare is pion with nothing of ours around it: the baseline that `leeway-lab bench transfer` and `bench peers`
// measure links against. Default is what pion's documentation leads to; Tuned adds what pion itself offers: a mux on one socket with
// large kernel buffers and batched writes, detached channels, a larger SCTP receive buffer and no media interceptors.
package bare

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/transport/v4/udp"
	"github.com/pion/webrtc/v4"
)

const (
	socketBuffer  = 4 << 20
	receiveBuffer = 4 << 20
	batchSize     = 32
	batchInterval = time.Millisecond
	readBuffer    = 65536
)

// Config of a Peer.
type Config struct {
	Addr     netip.Addr // the only address offered
	Tuned    bool
	Channels int // of the offerer
	Message  int // bytes
	Buffer   int // bytes that a channel may hold before its writer waits
	// Received is told of every message's size, from several goroutines; nil is not.
	Received func(bytes int)
	// Heard is given every message that comes on a channel, counted from 0 in the order in which the offerer made them; from one
	// goroutine a channel, which it may not keep. nil is given none.
	Heard func(channel int, message []byte)
}

// ErrClosed is what a write returns once the peer is closing.
var ErrClosed = errors.New("bare: the peer is closing")

// Peer is one peer connection.
type Peer struct {
	cfg    Config
	pc     *webrtc.PeerConnection
	mux    *ice.UDPMuxDefault // nil unless tuned
	opened chan struct{}

	mu       sync.Mutex
	channels []*channel // guarded by mu
	wg       sync.WaitGroup
}

type channel struct {
	number int // the label
	dc     *webrtc.DataChannel
	raw    io.ReadWriteCloser // nil unless detached
	drain  chan struct{}
}

// New makes a peer; Offer or Answer comes next.
func New(cfg Config) (*Peer, error) {
	var e webrtc.SettingEngine
	e.SetIncludeLoopbackCandidate(true)
	e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	e.SetIPFilter(func(ip net.IP) bool { return ip.Equal(cfg.Addr.AsSlice()) })
	p := &Peer{cfg: cfg, opened: make(chan struct{})}
	api := webrtc.NewAPI(webrtc.WithSettingEngine(e))
	if cfg.Tuned {
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(cfg.Addr, 0)))
		if err != nil {
			return nil, fmt.Errorf("bare: %w", err)
		}
		_ = conn.SetReadBuffer(socketBuffer)
		_ = conn.SetWriteBuffer(socketBuffer)
		p.mux = ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: udp.NewBatchConn(conn, batchSize, batchInterval)})
		e.SetICEUDPMux(p.mux)
		e.SetSCTPMaxReceiveBufferSize(receiveBuffer)
		e.DetachDataChannels()
		api = webrtc.NewAPI(webrtc.WithSettingEngine(e), webrtc.WithInterceptorRegistry(&interceptor.Registry{}))
	}
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, fmt.Errorf("bare: %w", err)
	}
	p.pc = pc
	pc.OnDataChannel(func(dc *webrtc.DataChannel) { p.adopt(dc) })
	return p, nil
}

// Offer returns the offer with all candidates.
func (p *Peer) Offer() (string, error) {
	for i := range p.cfg.Channels {
		dc, err := p.pc.CreateDataChannel(strconv.Itoa(i), nil)
		if err != nil {
			return "", err
		}
		p.adopt(dc)
	}
	sdp, err := p.pc.CreateOffer(nil)
	if err != nil {
		return "", err
	}
	return p.settle(sdp)
}

// Answer answers an offer.
func (p *Peer) Answer(offer string) (string, error) {
	if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return "", err
	}
	sdp, err := p.pc.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	return p.settle(sdp)
}

// Accept takes the answer to an offer.
func (p *Peer) Accept(answer string) error {
	return p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer})
}

func (p *Peer) settle(sdp webrtc.SessionDescription) (string, error) {
	done := webrtc.GatheringCompletePromise(p.pc)
	if err := p.pc.SetLocalDescription(sdp); err != nil {
		return "", err
	}
	<-done
	return p.pc.LocalDescription().SDP, nil
}

func (p *Peer) adopt(dc *webrtc.DataChannel) {
	number, err := strconv.Atoi(dc.Label())
	if err != nil {
		return // a channel that no offerer of this package makes
	}
	c := &channel{number: number, dc: dc, drain: make(chan struct{}, 1)}
	dc.SetBufferedAmountLowThreshold(uint64(p.cfg.Buffer / 2))
	dc.OnBufferedAmountLow(func() {
		select {
		case c.drain <- struct{}{}:
		default:
		}
	})
	if !p.cfg.Tuned {
		dc.OnMessage(func(m webrtc.DataChannelMessage) { p.note(c, m.Data) })
	}
	dc.OnOpen(func() {
		if p.cfg.Tuned {
			raw, err := dc.Detach()
			if err != nil {
				return
			}
			c.raw = raw
			p.wg.Add(1)
			go p.read(c)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.channels = append(p.channels, c); len(p.channels) == p.cfg.Channels {
			close(p.opened)
		}
	})
}

func (p *Peer) read(c *channel) {
	defer p.wg.Done()
	buf := make([]byte, readBuffer)
	for {
		n, err := c.raw.Read(buf)
		if err != nil {
			return
		}
		p.note(c, buf[:n])
	}
}

// note tells of a message.
func (p *Peer) note(c *channel, message []byte) {
	if p.cfg.Received != nil {
		p.cfg.Received(len(message))
	}
	if p.cfg.Heard != nil {
		p.cfg.Heard(c.number, message)
	}
}

// Opened is closed when every channel is open.
func (p *Peer) Opened() <-chan struct{} { return p.opened }

// Pump begins to write on every channel until Close.
func (p *Peer) Pump() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.channels {
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			message := make([]byte, p.cfg.Message)
			for c.write(message) == nil && c.wait(p.cfg.Buffer) {
			}
		}()
	}
}

// Write sends a message on an open channel, once the channel holds no more than Config.Buffer. Writers of one channel take turns.
func (p *Peer) Write(number int, message []byte) error {
	p.mu.Lock()
	i := slices.IndexFunc(p.channels, func(c *channel) bool { return c.number == number })
	if i < 0 {
		p.mu.Unlock()
		return fmt.Errorf("bare: no channel %d is open", number)
	}
	c := p.channels[i]
	p.mu.Unlock()
	if !c.wait(p.cfg.Buffer) {
		return ErrClosed
	}
	return c.write(message)
}

// wait returns once the channel holds no more than so many bytes; false when it closes.
func (c *channel) wait(buffer int) bool {
	for c.dc.BufferedAmount() > uint64(buffer) {
		if _, ok := <-c.drain; !ok {
			return false
		}
	}
	return true
}

func (c *channel) write(message []byte) error {
	if c.raw == nil {
		return c.dc.Send(message)
	}
	_, err := c.raw.Write(message)
	return err
}

// Close ends the connection and waits for what runs.
func (p *Peer) Close() error {
	err := p.pc.GracefulClose()
	p.mu.Lock()
	for _, c := range p.channels {
		close(c.drain)
	}
	p.mu.Unlock()
	p.wg.Wait()
	if p.mux != nil {
		err = errors.Join(err, p.mux.Close())
	}
	return err
}
