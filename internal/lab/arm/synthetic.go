package arm

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// Synthetic media: packets that every WebRTC stack takes for Opus and VP8, and frames that a recorder can write.
const (
	audioEvery   = 20 * time.Millisecond
	videoEvery   = 40 * time.Millisecond
	keyFrames    = 50 // a key frame each so many: every 2 s
	mostPayload  = 1100
	audioBitrate = 32_000
	videoBitrate = 500_000
)

// synthesize fills a track until ctx ends.
func synthesize(ctx context.Context, b *armwire.TrackBody, track *webrtc.TrackLocalStaticRTP) {
	every, rate, clock := videoEvery, b.Bitrate, 90_000
	if b.Codec == armwire.Opus {
		every, clock = audioEvery, 48_000
	}
	if rate == 0 && b.Codec == armwire.Opus {
		rate = audioBitrate
	} else if rate == 0 {
		rate = videoBitrate
	}
	size := max(16, int(float64(rate)/8*every.Seconds()))
	p := rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: uint16(rand.Uint32()), Timestamp: rand.Uint32()}}
	tick := time.NewTicker(every)
	defer tick.Stop()
	frame := make([]byte, size)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if b.Codec == armwire.Opus {
			frame[0] = 0x78 // one frame of 20 ms, mono, SILK and CELT
			p.Marker = n == 0
			send(&p, frame[:min(size, mostPayload)], track)
		} else {
			vp8Frame(frame, n%keyFrames == 0)
			packetize(&p, frame, track)
		}
		p.Timestamp += uint32(float64(clock) * every.Seconds())
	}
}

// vp8Frame writes the head of a frame (RFC 6386, 9.1).
func vp8Frame(b []byte, key bool) {
	clear(b[:10])
	if !key {
		b[0] = 1
		return
	}
	copy(b[3:], []byte{0x9d, 0x01, 0x2a, 0x40, 0x01, 0xf0, 0x00}) // start code, 320 × 240
}

// packetize sends a VP8 frame (RFC 7741).
func packetize(p *rtp.Packet, frame []byte, track *webrtc.TrackLocalStaticRTP) {
	for first := true; len(frame) > 0; first = false {
		n := min(len(frame), mostPayload)
		payload := make([]byte, 1+n)
		if first {
			payload[0] = 0x10 // the first partition begins
		}
		copy(payload[1:], frame[:n])
		frame = frame[n:]
		p.Marker = len(frame) == 0
		send(p, payload, track)
	}
}

func send(p *rtp.Packet, payload []byte, track *webrtc.TrackLocalStaticRTP) {
	p.Payload = payload
	_ = track.WriteRTP(p) // a session that is gone is no concern of the others
	p.SequenceNumber++
}
