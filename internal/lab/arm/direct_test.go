package arm

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/protocol"
	"github.com/pion/dtls/v3/pkg/protocol/extension"
	"github.com/pion/dtls/v3/pkg/protocol/handshake"
	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/transport/v4/packetio"
	"github.com/pion/transport/v4/stdnet"
	"github.com/pion/webrtc/v4"
	"go.uber.org/goleak"
)

// stage is two connections of pion, of which one receives what the other sends.
type stage struct {
	t     testing.TB
	boxes inboxes // of the receiver
	own   *direct // nil: pion's sockets and goroutines
	track *webrtc.TrackLocalStaticRTP
	next  rtp.Packet
	got   func(number uint16) // a packet has come
	on    chan struct{}       // closed when the receiver has the track
}

func loopback(t testing.TB) webrtc.SettingEngine {
	t.Helper()
	interfaces, err := stdnet.NewNet()
	if err != nil {
		t.Fatal(err)
	}
	e := peerSettings(netip.MustParseAddr("127.0.0.1").AsSlice(), interfaces)
	e.SetInterfaceFilter(func(name string) bool { return name == "lo" })
	return e
}

// newStage connects both. answers says that the receiver answers, which makes it the DTLS client; change is of its settings.
func newStage(t testing.TB, inDirect, answers bool, got func(uint16), change func(*webrtc.SettingEngine)) *stage {
	t.Helper()
	s := &stage{t: t, got: got, on: make(chan struct{})}
	s.next = rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: 65_500}, Payload: make([]byte, 250)}
	e := loopback(t)
	change(&e)
	if inDirect {
		var err error
		if s.own, err = listenDirect("127.0.0.1:0", &s.boxes); err != nil {
			t.Fatal(err)
		}
		e = s.own.settings(e)
		e.BufferFactory = s.boxes.open
	}
	receiver, sender := s.connection(e), s.connection(loopback(t))
	receiver.OnTrack(s.receive)
	var err error
	if s.track, err = webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90_000}, "video", "s"); err != nil {
		t.Fatal(err)
	}
	up := make(chan struct{})
	sender.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			close(up)
		}
	})
	if _, err = sender.AddTrack(s.track); err != nil {
		t.Fatal(err)
	}
	if answers {
		negotiate(t, sender, receiver)
	} else {
		if _, err = receiver.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
			t.Fatal(err)
		}
		negotiate(t, receiver, sender)
	}
	<-up
	return s
}

func (s *stage) connection(e webrtc.SettingEngine) *webrtc.PeerConnection {
	m, err := newMediaParts(e)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &interceptor.Registry{}
	for _, f := range m.factories {
		r.Add(f)
	}
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(e), webrtc.WithMediaEngine(m.codecs), webrtc.WithInterceptorRegistry(r)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = pc.GracefulClose() })
	return pc
}

func negotiate(t testing.TB, from, to *webrtc.PeerConnection) {
	t.Helper()
	describe := func(of, at *webrtc.PeerConnection, make func() (webrtc.SessionDescription, error)) {
		text, err := make()
		if err == nil {
			gathered := webrtc.GatheringCompletePromise(of)
			if err = of.SetLocalDescription(text); err == nil {
				<-gathered
				err = at.SetRemoteDescription(*of.LocalDescription())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	describe(from, to, func() (webrtc.SessionDescription, error) { return from.CreateOffer(nil) })
	describe(to, from, func() (webrtc.SessionDescription, error) { return to.CreateAnswer(nil) })
}

// receive notes the numbers of what comes.
func (s *stage) receive(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
	buf := make([]byte, receiveMTU)
	take := func() error {
		_, _, err := track.Read(buf)
		if err == nil {
			s.got(binary.BigEndian.Uint16(buf[2:]))
		}
		return err
	}
	close(s.on)
	if s.own != nil {
		s.boxes.of(packetio.RTPBufferPacket, track.SSRC()).hand(take, func() {})
		return
	}
	for { // as before there were inboxes
		p, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		s.got(p.SequenceNumber)
	}
}

// send sends a packet.
func (s *stage) send() {
	if err := s.track.WriteRTP(&s.next); err != nil {
		s.t.Error(err)
	}
	s.next.SequenceNumber++
}

func TestPacketsAreDecryptedWhereTheyAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		answers bool
		suite   dtls.CipherSuiteID
		want    phase
	}{
		"as DTLS client":        {true, dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, proven},
		"as DTLS server":        {false, dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, proven},
		"by pion, another hash": {true, dtls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, off},
	} {
		t.Run(name, func(t *testing.T) {
			current := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, current) })
			taken := make(chan uint16, 100)
			s := newStage(t, true, c.answers, func(number uint16) { taken <- number }, func(e *webrtc.SettingEngine) { e.SetDTLSCipherSuites(c.suite) })
			// One at a time, over the end of the sequence numbers: each comes once, and in order.
			for want := s.next.SequenceNumber; want != 100; want++ {
				s.send()
				if got := <-taken; got != want {
					t.Fatalf("packet %d, want %d", got, want)
				}
			}
			s.own.mu.Lock()
			defer s.own.mu.Unlock()
			if s.own.phase != c.want {
				t.Errorf("phase %d, want %d", s.own.phase, c.want)
			}
		})
	}
}

// TestAPacketThatIsNotTheSendersIsDropped: one that was changed, and one that comes a second time.
func TestAPacketThatIsNotTheSendersIsDropped(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	taken := make(chan uint16, 100)
	s := newStage(t, true, true, func(number uint16) { taken <- number }, func(*webrtc.SettingEngine) {})
	for range 20 {
		s.send()
		<-taken
	}
	ssrc := webrtc.SSRC(0)
	s.boxes.mu.Lock()
	for at := range s.boxes.all {
		if at.kind == packetio.RTPBufferPacket && s.boxes.all[at].aside {
			ssrc = at.ssrc
		}
	}
	s.boxes.mu.Unlock()
	if ssrc == 0 {
		t.Fatal("no stream is decrypted where it is read")
	}
	forged := make([]byte, 60)
	forged[0], forged[1] = 0x80, 96
	binary.BigEndian.PutUint16(forged[2:], s.next.SequenceNumber)
	binary.BigEndian.PutUint32(forged[8:], uint32(ssrc))
	if !s.own.take(forged) {
		t.Error("a packet that was changed went on to pion")
	}
	want := s.next.SequenceNumber
	s.send()
	if got := <-taken; got != want {
		t.Errorf("packet %d, want %d", got, want)
	}
}

func FuzzServerHello(f *testing.F) {
	profile, suite := []extension.SRTPProtectionProfile{extension.SRTP_AEAD_AES_128_GCM}, uint16(dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
	hello := handshake.MessageServerHello{
		Version: protocol.Version1_2, CipherSuiteID: &suite, CompressionMethod: protocol.CompressionMethods()[0],
		Extensions: []extension.Extension{&extension.UseSRTP{ProtectionProfiles: profile}},
	}
	body, err := hello.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	whole := make([]byte, recordHeader+handshakeHeader)
	whole[0], whole[recordHeader] = 22, 2
	whole[recordHeader+3], whole[recordHeader+11] = byte(len(body)), byte(len(body))
	whole = append(whole, body...)
	if d := (&direct{hello: serverHello(whole), random: make([]byte, 32), secret: make([]byte, 48)}); d.hello == nil || d.derive() != trying {
		f.Error("no keys of a good hello")
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte{22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if m := serverHello(b); m != nil {
			d := &direct{hello: m, random: make([]byte, 32), secret: make([]byte, 48)}
			if p := d.derive(); p == trying && d.keys == nil {
				t.Error("no keys")
			}
		}
	})
}

// BenchmarkMedia has sessions receive a packet each every millisecond or two, and tells the processor time of a packet, sending included:
// decrypted where it is read; and as pion hands it on, from a socket that sessions share to a goroutine that waits for it.
func BenchmarkMedia(b *testing.B) {
	const sessions = 32
	for _, way := range []string{"direct", "pion"} {
		b.Run(way, func(b *testing.B) {
			var got atomic.Int64
			stages := make([]*stage, sessions)
			for i := range stages {
				stages[i] = newStage(b, way == "direct", true, func(uint16) { got.Add(1) }, func(e *webrtc.SettingEngine) {
					if way == "pion" {
						e.SetICEUDPMux(shared(b))
					}
				})
			}
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for _, s := range stages {
				for on := false; !on; {
					s.send()
					select {
					case <-s.on:
						on = true
					case <-tick.C:
					}
				}
			}
			before := processor(b)
			for b.Loop() {
				<-tick.C
				for _, s := range stages {
					s.send()
				}
			}
			b.ReportMetric(float64(processor(b)-before)/float64(b.N*sessions), "cpu-ns/packet")
			if n := got.Load(); n < int64(b.N*sessions*9/10) {
				b.Errorf("%d packets came of %d", n, b.N*sessions)
			}
		})
	}
}

// shared is a socket as sessions without media share.
func shared(b *testing.B) *ice.UDPMuxDefault {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	mux := ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: conn, Logger: quiet{}})
	b.Cleanup(func() { _ = mux.Close() })
	return mux
}

func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
