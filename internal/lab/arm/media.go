package arm

import (
	"math/bits"
	"strings"
	"sync/atomic"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/transport/v4/packetio"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// nackBuffer is how many packets of a track are kept for retransmission: a second of 2.5 Mbit/s. A session's track has one.
const nackBuffer = 256

// rtpCounts are of one session.
type rtpCounts struct {
	nacks atomic.Int64 // packets asked for again, by this side and by the peer
	lost  atomic.Int64 // packets that had not come when a later one did
	total *counts      // of the arm
}

func (c *rtpCounts) nacked(n int) {
	c.nacks.Add(int64(n))
	c.total.nacks.Add(int64(n))
}

func (c *rtpCounts) missed(n int) {
	c.lost.Add(int64(n))
	c.total.lostPackets.Add(int64(n))
}

func noInterceptors() *interceptor.Registry { return &interceptor.Registry{} }

func hasData(sdp string) bool { return strings.Contains(sdp, "\nm=application") }

// mediaParts are what the media sessions of a socket share.
type mediaParts struct {
	settings  webrtc.SettingEngine
	codecs    *webrtc.MediaEngine
	factories []interceptor.Factory
}

func newMediaParts(e webrtc.SettingEngine) (*mediaParts, error) {
	m := &mediaParts{settings: e, codecs: &webrtc.MediaEngine{}}
	if err := m.codecs.RegisterDefaultCodecs(); err != nil {
		return nil, err
	}
	generator, err := nack.NewGeneratorInterceptor(nack.GeneratorLog(quiet{}))
	if err != nil {
		return nil, err
	}
	responder, err := nack.NewResponderInterceptor(nack.ResponderSize(nackBuffer), nack.ResponderLog(quiet{}))
	if err != nil {
		return nil, err
	}
	receiver, err := report.NewReceiverInterceptor(report.ReceiverLog(quiet{}))
	if err != nil {
		return nil, err
	}
	sender, err := report.NewSenderInterceptor(report.SenderLog(quiet{}))
	if err != nil {
		return nil, err
	}
	m.factories = []interceptor.Factory{responder, generator, receiver, sender}
	return m, nil
}

// api makes pion's factory for one session, whose NACKs are counted, and whose streams are read from inboxes. own is its socket; nil:
// that of the settings.
func (m *mediaParts) api(c *peerConn, own *direct) *webrtc.API {
	settings := m.settings
	settings.BufferFactory = c.boxes.open
	if own != nil {
		settings = own.settings(settings)
	}
	r := &interceptor.Registry{}
	r.Add(nackCounter{c: &c.rtp}) // next to the wire, so that it sees what the generator sends
	for _, f := range m.factories {
		r.Add(f)
	}
	return webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(m.codecs), webrtc.WithInterceptorRegistry(r))
}

// nackCounter counts what a session asks for again.
type nackCounter struct {
	interceptor.NoOp
	c *rtpCounts
}

// NewInterceptor implements interceptor.Factory.
func (n nackCounter) NewInterceptor(string) (interceptor.Interceptor, error) { return &n, nil }

// BindRTCPWriter implements interceptor.Interceptor.
func (n *nackCounter) BindRTCPWriter(w interceptor.RTCPWriter) interceptor.RTCPWriter {
	return interceptor.RTCPWriterFunc(func(packets []rtcp.Packet, a interceptor.Attributes) (int, error) {
		n.c.nacked(nacksIn(packets))
		return w.Write(packets, a)
	})
}

// nacksIn is how many packets are asked for again. One NACK may ask for many.
func nacksIn(packets []rtcp.Packet) (n int) {
	for _, p := range packets {
		asked, ok := p.(*rtcp.TransportLayerNack)
		if !ok {
			continue
		}
		for _, pair := range asked.Nacks {
			n += 1 + bits.OnesCount16(uint16(pair.LostPackets))
		}
	}
	return n
}

// addMedia adds what an offer is to have.
func (c *peerConn) addMedia(b armwire.OfferBody) *armwire.Error {
	src := c.s.sending()
	for kind, direction := range map[webrtc.RTPCodecType]armwire.Direction{webrtc.RTPCodecTypeAudio: b.Audio, webrtc.RTPCodecTypeVideo: b.Video} {
		if direction == "" {
			continue
		}
		var track *webrtc.TrackLocalStaticRTP
		if src != nil && direction != armwire.RecvOnly {
			track = src.tracks[kind]
		}
		if track == nil {
			if _, err := c.pc.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
				return armwire.Fail(armwire.Failed, "%v", err)
			}
			continue
		}
		d := webrtc.RTPTransceiverDirectionSendrecv
		if direction == armwire.SendOnly {
			d = webrtc.RTPTransceiverDirectionSendonly
		}
		t, err := c.pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{Direction: d})
		if err != nil {
			return armwire.Fail(armwire.Failed, "%v", err)
		}
		c.hear(t.Sender())
	}
	return nil
}

// addSource adds the source's tracks to an answer.
func (c *peerConn) addSource() *armwire.Error {
	src := c.s.sending()
	if src == nil {
		return nil
	}
	for _, track := range src.tracks {
		sender, err := c.pc.AddTrack(track)
		if err != nil {
			return armwire.Fail(armwire.Failed, "%v", err)
		}
		c.hear(sender)
	}
	return nil
}

// sending is the source whose media the session sends; nil: none.
func (s *session) sending() *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.source == nil || s.source.sendsChunks() || s.source.over() {
		return nil
	}
	return s.source
}

// hear reads what comes back to a sender: pion's interceptors see it only then.
func (c *peerConn) hear(sender *webrtc.RTPSender) {
	if !c.enter() {
		return
	}
	go func() {
		defer c.wg.Done()
		for {
			packets, _, err := sender.ReadRTCP()
			if err != nil {
				return
			}
			c.rtp.nacked(nacksIn(packets))
		}
	}()
}

// reception is a track that is received.
type reception struct {
	c       *peerConn
	kind    webrtc.RTPCodecType
	read    func([]byte) (int, interceptor.Attributes, error)
	record  *record
	buf     []byte
	packet  rtp.Packet
	begun   bool
	highest uint16
}

// receive takes a track until the connection ends. What the sender reports is taken, too: this side's reports answer it.
func (c *peerConn) receive(t *webrtc.TrackRemote, from *webrtc.RTPReceiver) {
	media, reports := c.boxes.of(packetio.RTPBufferPacket, t.SSRC()), c.boxes.of(packetio.RTCPBufferPacket, t.SSRC())
	if media == nil || !c.enter() {
		return // it has ended
	}
	r := &reception{c: c, kind: t.Kind(), read: t.Read, buf: make([]byte, receiveMTU)}
	kind := t.Kind().String()
	c.s.event(armwire.Media, armwire.MediaBody{Kind: kind, Receiving: true})
	r.record = c.record(t)
	media.hand(r.take, func() {
		defer c.wg.Done()
		r.record.close()
		c.s.event(armwire.Media, armwire.MediaBody{Kind: kind})
	})
	if reports == nil {
		return
	}
	buf := make([]byte, receiveMTU)
	reports.hand(func() error {
		_, _, err := from.Read(buf)
		return err
	}, func() {})
}

// take takes one packet. What is no RTP is dropped.
func (r *reception) take() error {
	n, _, err := r.read(r.buf)
	if err != nil || r.packet.Unmarshal(r.buf[:n]) != nil {
		return err
	}
	p, s := &r.packet, r.c.s
	if gap := p.SequenceNumber - r.highest; !r.begun {
		r.highest, r.begun = p.SequenceNumber, true
	} else if gap > 0 && gap < 1<<15 {
		r.highest = p.SequenceNumber
		r.c.rtp.missed(int(gap) - 1)
	}
	s.received.Add(int64(len(p.Payload)))
	r.c.rtp.total.receivedBytes.Add(int64(len(p.Payload)))
	r.c.rtp.total.receivedPackets.Add(1)
	r.record.write(p)
	s.forward(r.kind, p)
	return nil
}

// forward is a source that is what a session receives.
type forward struct{ source *source }

// copyTo has what the session receives sent on by a source.
func (s *session) copyTo(src *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies = append(s.copies, &forward{src})
}

// forward sends a packet on to the sources that are this session.
func (s *session) forward(kind webrtc.RTPCodecType, p *rtp.Packet) {
	s.mu.Lock()
	copies := s.copies
	s.mu.Unlock()
	for _, f := range copies {
		if track := f.source.tracks[kind]; track != nil && !f.source.over() {
			_ = track.WriteRTP(p) // a session that is gone is no concern of the others
		}
	}
}
