package arm

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media/ivfwriter"
	"github.com/pion/webrtc/v4/pkg/media/oggwriter"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// record writes a received track to a file. A nil record writes nothing.
type record struct {
	s    *session
	name string
	out  interface {
		WriteRTP(*rtp.Packet) error
		io.Closer
	}
	vp8 bool
}

// records counts the files of a process, so that names differ when a session is negotiated anew.
var records atomic.Int64

// record begins a recording if the session is to have one.
func (c *peerConn) record(t *webrtc.TrackRemote) *record {
	if !c.s.body.Record {
		return nil
	}
	r := &record{s: c.s}
	codec, ending := t.Codec(), ".ivf"
	if codec.MimeType == webrtc.MimeTypeOpus {
		ending = ".ogg"
	}
	r.name = fmt.Sprintf("%s-%s-%d%s", c.s.id, t.Kind(), records.Add(1), ending)
	file, err := os.OpenFile(filepath.Join(c.s.arm.cfg.RecordDir, r.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		bounded := &boundedFile{file: file, arm: c.s.arm}
		switch codec.MimeType {
		case webrtc.MimeTypeOpus:
			r.out, err = oggwriter.NewWith(bounded, codec.ClockRate, codec.Channels)
		case webrtc.MimeTypeVP8:
			r.vp8 = true
			r.out, err = ivfwriter.NewWith(bounded, ivfwriter.WithCodec(webrtc.MimeTypeVP8))
		default:
			err = fmt.Errorf("no container for %s", codec.MimeType)
		}
		if err != nil {
			_ = bounded.Close()
		}
	}
	if err != nil {
		c.s.event(armwire.Recording, armwire.RecordingBody{State: "failed"})
		return nil
	}
	c.s.event(armwire.Recording, armwire.RecordingBody{State: "started", File: r.name})
	return r
}

// write adds a packet; the first error ends the recording.
func (r *record) write(p *rtp.Packet) {
	if r == nil || r.out == nil || len(p.Payload) == 0 {
		return
	}
	if r.vp8 { // the writer takes a packet without a frame for one with it
		var v codecs.VP8Packet
		if frame, err := v.Unmarshal(p.Payload); err != nil || len(frame) == 0 {
			return
		}
	}
	if err := r.out.WriteRTP(p); err != nil {
		r.finish("failed")
	}
}

func (r *record) close() {
	if r != nil && r.out != nil {
		r.finish("completed")
	}
}

func (r *record) finish(state string) {
	if err := r.out.Close(); err != nil {
		state = "failed"
	}
	r.out = nil
	r.s.event(armwire.Recording, armwire.RecordingBody{State: state, File: r.name})
}

// boundedFile counts what all recordings write.
type boundedFile struct {
	file *os.File
	arm  *Arm
}

// Write implements io.Writer.
func (f *boundedFile) Write(b []byte) (int, error) {
	if f.arm.counts.recorded.Add(int64(len(b))) > f.arm.cfg.RecordBytes {
		return 0, fmt.Errorf("recordings have reached %d bytes", f.arm.cfg.RecordBytes)
	}
	return f.file.Write(b)
}

// Close implements io.Closer.
func (f *boundedFile) Close() error { return f.file.Close() }
