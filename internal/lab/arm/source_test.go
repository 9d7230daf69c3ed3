package arm_test

import (
	"net"
	"testing"

	"github.com/pion/rtp"

	"github.com/leeway-video/leeway/internal/lab/arm"
	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// TestASourceTakesRTP: what an encoder sends to a local port goes out on the sessions, what is no RTP does not; then the source is done.
func TestASourceTakesRTP(t *testing.T) {
	r := newRig(t)
	one, _ := r.arm(arm.Config{Name: "one", MaxSockets: 1})
	two, _ := r.arm(arm.Config{Name: "two", MaxSockets: 1})
	done := make(chan string, 1)
	one.Listen(func(_ *load.Arm, m armwire.Message) {
		if b, bad := armwire.DecodeBody[armwire.SourceName](m); m.Kind == armwire.SourceDone && bad == nil {
			done <- b.Source
		}
	})
	r.must(one, armwire.AddMediaSource, "", armwire.SourceBody{Source: "brief", Kind: armwire.SourceData, Rate: 8000, Chunk: 100, Duration: 1})
	if got := <-done; got != "brief" {
		t.Errorf("source %q is done", got)
	}
	reply := r.must(one, armwire.AddMediaSource, "", armwire.SourceBody{Source: "encoder", Video: &armwire.TrackBody{Codec: armwire.H264}})
	ports, bad := armwire.DecodeBody[armwire.SourceReply](reply)
	if bad != nil || ports.VideoPort == 0 || ports.AudioPort != 0 {
		t.Fatalf("%+v, %v", ports, bad)
	}
	s, peer := r.session(one, "s", armwire.SessionBody{Source: "encoder"}), r.session(two, "s", armwire.SessionBody{})
	r.connect(s, peer, armwire.OfferBody{Video: armwire.SendOnly})
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: ports.VideoPort})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p := rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: 96, SSRC: 1}, Payload: make([]byte, 500)}
	r.until("packets at the peer", two, func() bool {
		for range 20 {
			p.SequenceNumber++
			b, _ := p.Marshal()
			_, _ = conn.Write(b)
			_, _ = conn.Write([]byte("no RTP"))
		}
		return r.state(peer).Received >= 5000
	})
	if n := r.state(peer).Received; n%500 != 0 {
		t.Errorf("%d bytes: not whole packets", n)
	}
}
