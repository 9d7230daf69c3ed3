package packaging

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/cmaf"
)

// chunk is one of so many bytes of media.
func chunk(media int, seed byte) []byte {
	b := append([]byte("\x00\x00\x00\x08moof"), binary.BigEndian.AppendUint32(nil, uint32(8+media))...)
	return append(append(b, "mdat"...), content(media, seed)...)
}

// chunkFolder has an MPD of segments of 2 s. Segment 0 begins when the clock does.
type chunkFolder struct {
	*packager
	failed []error
}

func newChunkFolder(t *testing.T) *chunkFolder {
	p := &chunkFolder{packager: newPartPackager(t)}
	p.put("live.mpd", []byte(`<MPD type="dynamic" availabilityStartTime="`+p.Now().UTC().Format(time.RFC3339Nano)+
		`"><Period start="PT0S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="2" availabilityTimeOffset="1.5" startNumber="0" media="$Number$.m4s"/>
		<Representation id="low"/></AdaptationSet></Period></MPD>`), 0)
	p.certify("live.mpd")
	return p
}

// looks looks at the folder after a while.
func (p *chunkFolder) looks(after time.Duration) {
	p.pass(after)
	p.streams.grow(context.Background(), func(_ string, err error) {
		if err != nil {
			p.failed = append(p.failed, err)
		}
	})
}

// has checks the certificates that there are.
func (p *chunkFolder) has(want ...string) {
	p.t.Helper()
	got := p.certificates()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		p.t.Errorf("certificates of %q, want %q", got, want)
	}
}

// TestChunksAreSignedWhileTheirSegmentIsWritten, and the segment when the next one is begun: by a packager that writes it under its name,
// and by one that renames it.
func TestChunksAreSignedWhileTheirSegmentIsWritten(t *testing.T) {
	for _, ending := range []string{"", growing} {
		p := newChunkFolder(t)
		a, b := chunk(40_000, 1), chunk(20_000, 2)
		p.put("0.m4s"+ending, a[:30_000], 0)
		p.looks(500 * time.Millisecond)
		p.has()
		p.put("0.m4s"+ending, slices.Concat(a, b[:5000]), 0)
		p.looks(500 * time.Millisecond)
		p.has("0.m4s.0-40015")
		whole := slices.Concat(a, b)
		p.put("0.m4s"+ending, whole, 0)
		p.looks(500 * time.Millisecond)
		p.has("0.m4s.0-40015", "0.m4s.40016-60031")
		if ending != "" {
			if err := os.Rename(filepath.Join(p.dir, "0.m4s"+ending), filepath.Join(p.dir, "0.m4s")); err != nil {
				t.Fatal(err)
			}
		} else {
			p.put("1.m4s", a[:100], 0)
		}
		p.looks(100 * time.Millisecond)
		p.has("0.m4s", "0.m4s.0-40015", "0.m4s.40016-60031")
		for file, want := range map[string]struct {
			name segment.Name
			data []byte
			ends int64
		}{
			"0.m4s.0-40015":     {"/media/bbb/0.m4s#0-40015", a, 40_016},
			"0.m4s.40016-60031": {"/media/bbb/0.m4s#40016-60031", b, 60_032},
			"0.m4s":             {"/media/bbb/0.m4s", whole, 60_032},
		} {
			c := p.part(file)
			if err := p.keys.Verify(c, "demo", want.name, p.Now(), nil); err != nil {
				t.Error(file, err)
			}
			if c.ObjectLength != want.ends || c.Length != int64(len(want.data)) || !c.CheckPiece(0, want.data[:segment.PieceSize]) || c.NotAfter.Sub(c.IssuedAt) != certificate.PartLife {
				t.Errorf("%s: %+v", file, c)
			}
		}
		if p.failed != nil {
			t.Error(p.failed)
		}
		p.looks(20 * time.Second)
		p.has()
	}
}

// TestWhatIsNoSegmentThatGrowsIsNotSigned: a file of an earlier run, one that has no chunks, and chunks that are frames.
func TestWhatIsNoSegmentThatGrowsIsNotSigned(t *testing.T) {
	p := newChunkFolder(t)
	p.put("0.m4s", chunk(9000, 1), time.Hour)
	p.looks(time.Second)
	p.has()
	p.put("0.m4s", make([]byte, 100), 0)
	p.looks(25 * time.Millisecond)
	p.looks(25 * time.Millisecond)
	if p.has(); len(p.failed) != 1 {
		t.Error(p.failed)
	}
	p.pass(2 * time.Second)
	frames := bytes.Repeat(chunk(1000, 1), 50)
	p.put("2.m4s", frames, 0)
	p.looks(0)
	all := p.certificates()
	p.pass(2 * time.Second)
	p.put("3.m4s", frames, 0)
	p.looks(0)
	p.looks(0)
	if got := p.certificates(); len(got) != len(all) || slices.ContainsFunc(got, func(n string) bool { return n[0] == '3' }) || slices.Contains(got, "2.m4s") {
		t.Errorf("%q, then %q", all, got)
	}
}

// TestLongSegmentsAreSignedAsFarAsTheyAreShared: up to 8 MiB, and no chunk behind one above 3 MiB. Nothing is signed of a segment behind
// one that has no end for viewers.
func TestLongSegmentsAreSignedAsFarAsTheyAreShared(t *testing.T) {
	const mebibyte = 1 << 20
	p := newChunkFolder(t)
	most := chunk(segment.MaxLength-3*mebibyte-16, 4)
	for i, s := range []struct {
		chunks [][]byte
		want   []string
	}{
		{[][]byte{chunk(3*mebibyte-16, 1), chunk(2*mebibyte-16, 2), chunk(3*mebibyte-16, 3)}, []string{".m4s", ".m4s.0-3145727", ".m4s.3145728-5242879", ".m4s.5242880-8388607"}},
		{[][]byte{chunk(mebibyte-16, 1), chunk(3*mebibyte-15, 2), chunk(100, 3)}, []string{".m4s", ".m4s.0-1048575"}},
		{[][]byte{chunk(3*mebibyte-16, 1), most, chunk(100, 3)}, []string{".m4s.0-3145727"}},
		{[][]byte{chunk(mebibyte-16, 1)}, []string{".m4s"}},
		{[][]byte{chunk(mebibyte-16, 1)}, []string{".m4s", ".m4s.0-1048575"}},
	} {
		p.put(fmt.Sprintf("%d.m4s", i), slices.Concat(s.chunks...), 0)
		p.looks(1900 * time.Millisecond)
		p.put(fmt.Sprintf("%d.m4s", i+1), chunk(0, 0)[:8], 0)
		p.looks(100 * time.Millisecond)
		prefix := fmt.Sprint(i)
		got := slices.DeleteFunc(p.certificates(), func(name string) bool { return !strings.HasPrefix(name, prefix) })
		for i, name := range got {
			got[i] = name[len(prefix):]
		}
		slices.Sort(got)
		if !slices.Equal(got, s.want) {
			t.Errorf("segment %d: certificates of %q, want %q", i, got, s.want)
		}
	}
	if p.failed != nil {
		t.Error(p.failed)
	}
}

// TestCertificatesOfChunksGoWithTheirMPD.
func TestCertificatesOfChunksGoWithTheirMPD(t *testing.T) {
	p := newChunkFolder(t)
	p.put("0.m4s", chunk(9000, 1), 0)
	p.looks(time.Second)
	p.has("0.m4s.0-9015")
	if err := p.Unlist("live.mpd"); err != nil {
		t.Error(err)
	}
	p.has()
}

// TestChunksOfFfmpegAreSignedAsTheyAreWritten: a real packager, in real time.
func TestChunksOfFfmpegAreSignedAsTheyAreWritten(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	p := newPackager(t, func(s *Settings) { s.Now, s.Parts = time.Now, true })
	command := exec.Command(ffmpeg, "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=25", "-t", "6.5",
		"-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-keyint_min", "50", "-sc_threshold", "0", "-f", "dash", "-seg_duration", "2", "-ldash", "1",
		"-streaming", "1", "-use_timeline", "0", "-frag_type", "duration", "-frag_duration", "0.5", filepath.Join(p.dir, "live.mpd"))
	command.Stderr = os.Stderr
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := p.Watch(ctx, ticker.C, func(file string, _ *Plan, err error) {
			if err != nil {
				t.Error(file, err)
			}
		}); err != nil {
			t.Error(err)
		}
	})
	if err := command.Run(); err != nil {
		t.Error(err)
	}
	cancel()
	watching.Wait()
	for _, file := range []string{"chunk-stream0-00001.m4s", "chunk-stream0-00002.m4s", "chunk-stream0-00003.m4s"} {
		data, err := os.ReadFile(filepath.Join(p.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var cut cmaf.Cutter
		ends, err := cut.Add(data)
		if err != nil || len(ends) < 4 {
			t.Fatalf("%s: %v, %v", file, ends, err)
		}
		if c := p.part(file); c == nil || c.Length != int64(len(data)) {
			t.Errorf("%s has no certificate as a whole: %+v", file, c)
		}
		from := int64(0)
		for _, end := range ends {
			info, err := p.Root.Stat(fmt.Sprintf("%s.%d-%d%s", file, from, end-1, Suffix))
			if err != nil {
				t.Error(err)
			} else if end == ends[0] {
				t.Log(file, info.ModTime().Format(time.StampMilli))
			}
			from = end
		}
	}
}
