package arm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

const (
	receiveBuffer = 1 << 20          // of SCTP, bytes: more than 8 channels of 16 KiB messages leave unfinished
	sendBuffer    = 256 << 10        // of a data channel, bytes; above it chunks are held
	readBuffer    = 1200             // of a data channel, bytes, at first: a chunk that fits into a packet
	gatherWithin  = 5 * time.Second  // of a description that is to have all candidates
	openWithin    = 30 * time.Second // from the peer's description
)

// peerConn is a session of the stack peer-connection.
type peerConn struct {
	s    *session
	at   *seat[*peerSocket] // of the socket that it shares; nil: it has one of its own
	own  *direct            // that one; nil: it shares one
	api  *webrtc.API
	pc   *webrtc.PeerConnection
	wg   sync.WaitGroup
	late *time.Timer
	out  atomic.Pointer[outChannel]
	want atomic.Int32 // data channels that are to open before the session is up
	rtp  rtpCounts

	boxes inboxes // of what it receives

	mu        sync.Mutex
	trickles  bool  // guarded by mu
	connected bool  // guarded by mu
	open      int32 // guarded by mu: data channels
	pair      bool  // guarded by mu: told of
	shut      bool  // guarded by mu
}

// outChannel is the data channel that chunks go out by.
type outChannel struct {
	dc  *webrtc.DataChannel
	raw datachannel.ReadWriteCloser
}

var _ connection = (*peerConn)(nil)

// begin makes pion's connection.
func (c *peerConn) begin(certificate webrtc.Certificate) *armwire.Error {
	s := c.s
	pc, err := c.api.NewPeerConnection(webrtc.Configuration{Certificates: []webrtc.Certificate{certificate}})
	if err != nil {
		return armwire.Fail(armwire.Failed, "%v", err)
	}
	c.pc = pc
	c.late = time.AfterFunc(openWithin, func() {
		if !s.live.Load() {
			s.closed(c, "timeout")
		}
	})
	c.late.Stop()
	pc.OnICECandidate(c.gathered)
	pc.OnICEConnectionStateChange(func(state webrtc.ICEConnectionState) {
		s.event(armwire.ICEState, armwire.ICEStateBody{State: state.String()})
	})
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			c.mu.Lock()
			c.connected = true
			c.mu.Unlock()
			c.progress()
		case webrtc.PeerConnectionStateFailed:
			s.closed(c, "failed")
		case webrtc.PeerConnectionStateClosed:
			s.closed(c, "closed")
		}
	})
	pc.OnDataChannel(c.adopt)
	pc.OnTrack(c.receive)
	return nil
}

// meet notes addresses of the peer where the socket is shared.
func (c *peerConn) meet(peers []netip.AddrPort) *armwire.Error {
	if c.at == nil {
		return nil
	}
	return c.at.meet(peers)
}

// leave gives up the socket.
func (c *peerConn) leave() {
	if c.at != nil {
		c.at.leave()
	}
	if c.own != nil {
		_ = c.own.Close() // pion may have closed it
	}
}

// enter counts a goroutine; false says that the connection is being closed.
func (c *peerConn) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		c.wg.Add(1)
	}
	return !c.shut
}

func (c *peerConn) offer(b armwire.OfferBody) (string, *armwire.Error) {
	c.trickle(b)
	if err := c.addMedia(b); err != nil {
		return "", err
	}
	for i := range b.Data {
		dc, err := c.pc.CreateDataChannel("chunks-"+strconv.Itoa(i), nil)
		if err != nil {
			return "", armwire.Fail(armwire.Failed, "%v", err)
		}
		c.want.Add(1)
		c.adopt(dc)
	}
	sdp, err := c.pc.CreateOffer(nil)
	if err != nil {
		return "", armwire.Fail(armwire.Failed, "%v", err)
	}
	return c.describe(sdp)
}

func (c *peerConn) takeOffer(sdp string) *armwire.Error {
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: sdp}); err != nil {
		return armwire.Fail(armwire.BadSDP, "%v", err)
	}
	if hasData(sdp) {
		c.want.Store(1)
	}
	return nil
}

func (c *peerConn) answer(b armwire.OfferBody) (string, *armwire.Error) {
	c.trickle(b)
	if err := c.addSource(); err != nil {
		return "", err
	}
	sdp, err := c.pc.CreateAnswer(nil)
	if err != nil {
		return "", armwire.Fail(armwire.BadSDP, "%v", err)
	}
	c.late.Reset(openWithin)
	return c.describe(sdp)
}

func (c *peerConn) takeAnswer(sdp string) *armwire.Error {
	if err := c.meet(addressesOf(sdp)); err != nil {
		return err
	}
	c.late.Reset(openWithin)
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: sdp}); err != nil {
		return armwire.Fail(armwire.BadSDP, "%v", err)
	}
	return nil
}

func (c *peerConn) trickle(b armwire.OfferBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trickles = b.Trickles()
}

// describe begins to gather; without trickling it waits for all candidates.
func (c *peerConn) describe(sdp webrtc.SessionDescription) (string, *armwire.Error) {
	gathered := webrtc.GatheringCompletePromise(c.pc)
	if err := c.pc.SetLocalDescription(sdp); err != nil {
		return "", armwire.Fail(armwire.Failed, "%v", err)
	}
	c.mu.Lock()
	trickles := c.trickles
	c.mu.Unlock()
	if trickles {
		return sdp.SDP, nil
	}
	late := time.NewTimer(gatherWithin)
	defer late.Stop()
	select {
	case <-gathered:
	case <-late.C:
		return "", armwire.Fail(armwire.Failed, "candidates were not gathered within %s", gatherWithin)
	}
	return c.pc.LocalDescription().SDP, nil
}

// gathered is told of this side's candidates.
func (c *peerConn) gathered(candidate *webrtc.ICECandidate) {
	c.mu.Lock()
	trickles := c.trickles
	c.mu.Unlock()
	if !trickles {
		return
	}
	if candidate == nil {
		c.s.event(armwire.Trickle, armwire.CandidateBody{})
		return
	}
	j := candidate.ToJSON()
	b := armwire.CandidateBody{Candidate: j.Candidate}
	if j.SDPMid != nil {
		b.Mid = *j.SDPMid
	}
	if j.SDPMLineIndex != nil {
		b.Line = int(*j.SDPMLineIndex)
	}
	c.s.event(armwire.Trickle, b)
}

func (c *peerConn) candidate(b armwire.CandidateBody) *armwire.Error {
	if b.Candidate == "" {
		return nil // pion waits for no end
	}
	if err := c.meet(addressesOf(b.Candidate)); err != nil {
		return err
	}
	line := uint16(b.Line)
	if err := c.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: b.Candidate, SDPMid: &b.Mid, SDPMLineIndex: &line}); err != nil {
		return armwire.Fail(armwire.BadSDP, "%v", err)
	}
	return nil
}

// adopt takes in a data channel of either side.
func (c *peerConn) adopt(dc *webrtc.DataChannel) {
	dc.OnOpen(func() {
		raw, err := dc.Detach()
		if err != nil || !c.enter() {
			return
		}
		c.out.CompareAndSwap(nil, &outChannel{dc, raw})
		go c.read(raw)
		c.mu.Lock()
		c.open++
		c.mu.Unlock()
		c.progress()
	})
}

// progress sees whether the session is up.
func (c *peerConn) progress() {
	c.mu.Lock()
	tell := c.connected && !c.pair
	c.pair = c.pair || tell
	whole := c.connected && c.open >= c.want.Load()
	c.mu.Unlock()
	if tell {
		if p, err := c.pc.SCTP().Transport().ICETransport().GetSelectedCandidatePair(); err == nil && p != nil {
			c.s.event(armwire.SelectedPair, armwire.PairBody{Local: where(p.Local), Remote: where(p.Remote)})
		}
	}
	if whole {
		c.late.Stop()
		c.s.opened(c)
	}
}

func where(c *webrtc.ICECandidate) string {
	return bracket(c.Address) + ":" + strconv.Itoa(int(c.Port))
}

// read hands on what comes on a data channel. A message that does not fit is lost, and the next one of its size is not.
func (c *peerConn) read(raw io.Reader) {
	defer c.wg.Done()
	buf := make([]byte, readBuffer)
	for {
		n, err := raw.Read(buf)
		switch {
		case errors.Is(err, io.ErrShortBuffer) && len(buf) < armwire.MaxChunk:
			buf = make([]byte, armwire.MaxChunk)
		case errors.Is(err, io.ErrShortBuffer):
		case err != nil:
			c.s.closed(c, "closed")
			return
		default:
			c.s.message(c, buf[:n])
		}
	}
}

func (c *peerConn) send(b []byte) bool {
	out := c.out.Load()
	if out == nil || out.dc.BufferedAmount() > sendBuffer {
		return false
	}
	_, err := out.raw.Write(b)
	return err == nil
}

func (c *peerConn) keepAlive(time.Time) {} // ICE's checks do it

func (c *peerConn) figures() (nacks, lost int64) { return c.rtp.nacks.Load(), c.rtp.lost.Load() }

func (c *peerConn) close() {
	c.mu.Lock()
	c.shut = true
	c.mu.Unlock()
	c.late.Stop()
	_ = c.pc.GracefulClose()
	c.boxes.close()
	c.wg.Wait()
	c.leave()
}

// newCertificate makes the one certificate of an arm.
func newCertificate() (webrtc.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return webrtc.Certificate{}, err
	}
	c, err := webrtc.GenerateCertificate(key)
	if err != nil {
		return webrtc.Certificate{}, err
	}
	return *c, nil
}

// quiet is pion's log, which goes nowhere: what a session has met comes by events.
type quiet struct{}

// NewLogger implements logging.LoggerFactory.
func (quiet) NewLogger(string) logging.LeveledLogger { return quiet{} }

// The methods of logging.LeveledLogger.
func (quiet) Trace(string)          {}
func (quiet) Tracef(string, ...any) {}
func (quiet) Debug(string)          {}
func (quiet) Debugf(string, ...any) {}
func (quiet) Info(string)           {}
func (quiet) Infof(string, ...any)  {}
func (quiet) Warn(string)           {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Error(string)          {}
func (quiet) Errorf(string, ...any) {}
