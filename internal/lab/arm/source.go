package arm

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/sleep"
)

// source is what any number of sessions send.
type source struct {
	name   string
	kind   armwire.SourceKind
	rate   int // of chunks: bit/s
	chunk  int // bytes
	tracks map[webrtc.RTPCodecType]*webrtc.TrackLocalStaticRTP
	of     *session // whose media are forwarded

	done  atomic.Bool
	stop  func() // ends it and waits for what runs of it
	ports armwire.SourceReply
}

func (s *source) sendsChunks() bool { return s.kind == armwire.SourceData }
func (s *source) over() bool        { return s.done.Load() }

// capabilities of the codecs.
var capabilities = map[armwire.Codec]webrtc.RTPCodecCapability{
	armwire.Opus: {MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2},
	armwire.VP8:  {MimeType: webrtc.MimeTypeVP8, ClockRate: 90000},
	armwire.H264: {MimeType: webrtc.MimeTypeH264, ClockRate: 90000},
}

func (a *Arm) addSource(b armwire.SourceBody) (any, *armwire.Error) {
	a.mu.Lock()
	full, used, of := len(a.sources) >= a.cfg.MaxSources, a.sources[b.Source] != nil, a.sessions[b.Session]
	a.mu.Unlock()
	switch {
	case used:
		return nil, armwire.Fail(armwire.Exists, "source %s", b.Source)
	case full:
		return nil, armwire.Fail(armwire.Limit, "%d sources", a.cfg.MaxSources)
	case b.Kind == armwire.SourceForward && of == nil:
		return nil, armwire.Fail(armwire.UnknownSession, "%s", b.Session)
	}
	if b.Kind == armwire.SourceForward && b.Audio == nil && b.Video == nil {
		b.Video = &armwire.TrackBody{Codec: armwire.VP8}
	}
	src := &source{name: b.Source, kind: b.Kind, rate: b.Rate, chunk: b.Chunk, of: of, tracks: map[webrtc.RTPCodecType]*webrtc.TrackLocalStaticRTP{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	src.stop = func() {
		src.done.Store(true)
		cancel()
		wg.Wait()
	}
	for kind, t := range map[webrtc.RTPCodecType]*armwire.TrackBody{webrtc.RTPCodecTypeAudio: b.Audio, webrtc.RTPCodecTypeVideo: b.Video} {
		if t == nil {
			continue
		}
		if err := src.feed(ctx, &wg, kind, t); err != nil {
			src.stop()
			return nil, err
		}
	}
	if of != nil {
		of.copyTo(src)
	}
	a.mu.Lock()
	a.sources[b.Source] = src
	a.mu.Unlock()
	if b.Duration > 0 {
		wg.Go(func() {
			if sleep.For(ctx, time.Duration(b.Duration)*time.Millisecond) {
				src.done.Store(true)
				cancel()
				a.silence(src)
				a.event(armwire.SourceDone, "", armwire.SourceName{Source: b.Source})
			}
		})
	}
	return src.ports, nil
}

// feed makes a track and what fills it.
func (s *source) feed(ctx context.Context, wg *sync.WaitGroup, kind webrtc.RTPCodecType, b *armwire.TrackBody) *armwire.Error {
	track, err := webrtc.NewTrackLocalStaticRTP(capabilities[b.Codec], kind.String(), s.name)
	if err != nil {
		return armwire.Fail(armwire.Failed, "%v", err)
	}
	s.tracks[kind] = track
	switch s.kind {
	case armwire.SourceSynthetic:
		wg.Go(func() { synthesize(ctx, b, track) })
	case armwire.SourceRTP:
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: b.Port})
		if err != nil {
			return armwire.Fail(armwire.Failed, "%v", err)
		}
		_ = conn.SetReadBuffer(socketBuffer)
		port := conn.LocalAddr().(*net.UDPAddr).Port
		if kind == webrtc.RTPCodecTypeAudio {
			s.ports.AudioPort = port
		} else {
			s.ports.VideoPort = port
		}
		wg.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			listen(conn, track)
		})
	}
	return nil
}

// listen sends what comes on a port until it is closed. What is no RTP is dropped.
func listen(conn *net.UDPConn, track *webrtc.TrackLocalStaticRTP) {
	buf := make([]byte, 1<<16)
	for {
		n, _, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		var p rtp.Packet
		if err == nil && p.Unmarshal(buf[:n]) == nil {
			_ = track.WriteRTP(&p) // a session that is gone is no concern of the others
		}
	}
}

// silence ends the chunks of a source that is over.
func (a *Arm) silence(src *source) {
	for _, s := range a.all() {
		s.mu.Lock()
		f := s.flow
		if f != nil && f.source == src {
			s.flow = nil
		} else {
			f = nil
		}
		s.mu.Unlock()
		a.pacer.remove(f)
	}
}

func (a *Arm) removeSource(name string) *armwire.Error {
	a.mu.Lock()
	src := a.sources[name]
	delete(a.sources, name)
	a.mu.Unlock()
	if src == nil {
		return armwire.Fail(armwire.UnknownSource, "%s", name)
	}
	src.stop()
	a.silence(src)
	return nil
}
