package rtclink

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// firstRead is the size a control channel's read buffer begins with, bytes; it grows to what comes, so that an idle
// link does not hold the 64 KiB that the largest message would take.
const firstRead = 2048

func (l *Link) offer() (string, error) {
	// In-band (DCEP), never negotiated: pion ignores the reliability settings of negotiated channels, and everything
	// would run ordered.
	ordered, unordered := true, false
	labels := []string{peer.ControlLabel, peer.AckLabel}
	for i := range l.plan.Data {
		labels = append(labels, peer.DataLabel+strconv.Itoa(i))
	}
	for _, label := range labels {
		init := &webrtc.DataChannelInit{Ordered: &unordered}
		if label == peer.ControlLabel {
			init.Ordered = &ordered
		}
		dc, err := l.pc.CreateDataChannel(label, init)
		if err != nil {
			return "", fmt.Errorf("channel %s: %w", label, err)
		}
		dc.OnOpen(func() { l.adopt(dc) })
	}
	sdp, err := l.pc.CreateOffer(nil)
	if err != nil {
		return "", err
	}
	if err := l.pc.SetLocalDescription(sdp); err != nil {
		return "", err
	}
	return sdp.SDP, nil
}

func (l *Link) answer(offer string) (string, error) {
	if err := l.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return "", err
	}
	sdp, err := l.pc.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	if err := l.pc.SetLocalDescription(sdp); err != nil {
		return "", err
	}
	return sdp.SDP, nil
}

// Accept goes on with an offered link: answer is what the other side made of the offer.
func (l *Link) Accept(answer transfer.Description) error {
	if err := answer.Plan.Check(); err != nil {
		return fmt.Errorf("rtclink: accept: %w", err)
	}
	if answer.Plan.Data > l.plan.Data {
		return fmt.Errorf("rtclink: accept: answer plans %d data channels, the offer %d", answer.Plan.Data, l.plan.Data)
	}
	l.mu.Lock()
	l.plan = l.plan.Agree(answer.Plan)
	l.data = l.data[:l.plan.Data]
	l.mu.Unlock()
	if err := l.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer.SDP}); err != nil {
		return fmt.Errorf("rtclink: accept: %w", err)
	}
	return nil
}

// AddCandidate implements transfer.Link.
func (l *Link) AddCandidate(c transfer.Candidate) error {
	if l.closing.Load() {
		return nil
	}
	init := webrtc.ICECandidateInit{SDPMid: &c.Mid, SDPMLineIndex: &c.Line}
	if !c.End {
		init.Candidate = c.Candidate
	}
	if err := l.pc.AddICECandidate(init); err != nil {
		return fmt.Errorf("rtclink: candidate: %w", err)
	}
	return nil
}

func (l *Link) acceptChannels() {
	l.pc.OnDataChannel(func(dc *webrtc.DataChannel) {
		dc.OnOpen(func() { l.adopt(dc) })
	})
}

// adopt puts an open channel to its place, or closes it when the plan has none for it.
func (l *Link) adopt(dc *webrtc.DataChannel) {
	l.mu.Lock()
	slot, known := l.slot(dc)
	if !known {
		l.strays++
		strays := l.strays
		l.mu.Unlock()
		_ = dc.Close()
		if strays > peer.MaxStrayChannels {
			l.Close(peer.CloseProtocol, nil)
		}
		return
	}
	if slot == nil || l.closing.Load() { // beyond the agreed number: stays unused
		l.mu.Unlock()
		return
	}
	raw, err := dc.Detach()
	if err != nil {
		l.mu.Unlock()
		l.Close(peer.CloseFailed, nil)
		return
	}
	*slot = &channel{dc: dc, raw: raw}
	if slot == &l.ack { // acks are reserved; reading keeps the window open
		l.readers.Add(1)
		go l.read(l.ack, sctpMessage, func([]byte) {})
	}
	open := l.complete() && !l.opened.Load()
	if open {
		l.opened.Store(true)
		l.readers.Add(1 + len(l.data)) // under mu, which shutdown takes before it waits for them
	}
	l.mu.Unlock()
	if open {
		l.armDrain()
		l.events.Open()
		l.startReaders()
	}
}

// slot returns where a channel belongs; known is false for a label outside the plan, a second channel of one label,
// and a reliability other than the plan's. Under mu.
func (l *Link) slot(dc *webrtc.DataChannel) (slot **channel, known bool) {
	reliable := dc.MaxRetransmits() == nil && dc.MaxPacketLifeTime() == nil
	ordered := dc.Label() == peer.ControlLabel
	if !reliable || dc.Ordered() != ordered {
		return nil, false
	}
	switch label := dc.Label(); {
	case label == peer.ControlLabel:
		slot = &l.control
	case label == peer.AckLabel:
		slot = &l.ack
	case strings.HasPrefix(label, peer.DataLabel):
		i, err := strconv.Atoi(label[len(peer.DataLabel):])
		if err != nil || i < 0 || i >= peer.MaxDataChannels || label != peer.DataLabel+strconv.Itoa(i) {
			return nil, false
		}
		if i >= len(l.data) {
			return nil, true
		}
		slot = &l.data[i]
	default:
		return nil, false
	}
	return slot, *slot == nil
}

// complete says whether control and every planned data channel are there. Under mu.
func (l *Link) complete() bool {
	if l.control == nil {
		return false
	}
	for _, c := range l.data {
		if c == nil {
			return false
		}
	}
	return true
}

// armDrain has events.Drain called when there is room again, and takes the first round-trip time: that of ICE's checks,
// before there is any traffic of ours in the path's queue.
func (l *Link) armDrain() {
	for _, c := range l.data {
		c.dc.OnBufferedAmountLow(func() {
			if !l.closing.Load() {
				l.events.Drain()
			}
		})
	}
	if s, ok := l.pc.SCTP().Transport().ICETransport().GetSelectedCandidatePairStats(); ok {
		l.mu.Lock()
		l.flight.sample(time.Now(), time.Duration(s.CurrentRoundTripTime*float64(time.Second)))
		l.mu.Unlock()
	}
}

// startReaders begins to read the channels; what came before waits in SCTP. Channels are fixed now.
func (l *Link) startReaders() {
	go l.read(l.control, peer.MaxControl, l.events.Control)
	for _, c := range l.data {
		go l.read(c, l.plan.Message, l.events.Data)
	}
}

// read hands on a channel's messages of at most limit bytes until the link ends.
func (l *Link) read(c *channel, limit int, handle func([]byte)) {
	defer l.readers.Done()
	buf := make([]byte, min(limit, firstRead))
	for {
		n, err := c.raw.Read(buf)
		switch {
		case errors.Is(err, io.ErrShortBuffer) && len(buf) >= limit:
			l.Close(peer.CloseProtocol, nil)
			return
		case errors.Is(err, io.ErrShortBuffer):
			buf = make([]byte, min(limit, 4*len(buf))) // pion keeps the message for the next read
		case err != nil:
			l.leave.Do(func() { close(l.gone) })
			l.Close(peer.CloseClosed, nil)
			return
		case l.closing.Load():
			return
		default:
			handle(buf[:n])
		}
	}
}
