package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/cmaf"
)

// soundFrame is how long a frame of sound is: the encoder's first chunk is longer than the others by that.
const soundFrame = 1024 * time.Second / 48000

// runParts has ffmpeg write each rendition into a pipe, as CMAF with a chunk for each part, and publishes what comes.
func (c Clock) runParts(ctx context.Context, to Target) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd, said, err := encoder(ctx, c.partArgs(time.Now()))
	if err != nil {
		return err
	}
	var ends []*os.File
	for range c.Renditions {
		from, end, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("live: %w", err)
		}
		defer from.Close()
		defer end.Close()
		ends, cmd.ExtraFiles = append(ends, from), append(cmd.ExtraFiles, end)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("live: ffmpeg: %w", err)
	}
	for _, end := range cmd.ExtraFiles {
		_ = end.Close() // it is ffmpeg's
	}
	var running sync.WaitGroup
	stream := &stream{clock: c, to: to, codecs: map[string]string{}, complete: map[int64]int{}, news: make(chan struct{}, 1)}
	var publishing sync.WaitGroup
	publishing.Go(func() {
		if err := stream.publish(ctx); err != nil {
			cancel(fmt.Errorf("live: %w", err))
		}
	})
	for i, r := range c.Renditions {
		running.Go(func() {
			p := &parted{stream: stream, folder: r.Name}
			if err := p.run(ctx, ends[i]); err != nil {
				cancel(fmt.Errorf("live: %s: %w", r.Name, err))
			}
			_, _ = io.Copy(io.Discard, ends[i]) // an ffmpeg that cannot write does not end
		})
	}
	running.Wait() // before ffmpeg: nothing of what it wrote is lost
	close(stream.news)
	publishing.Wait()
	cancelled := context.Cause(ctx)
	err = cmd.Wait()
	if cancelled != nil && !errors.Is(cancelled, context.Canceled) {
		return cancelled
	}
	return failed(ctx, err, said)
}

// partArgs of an ffmpeg that writes.
func (c Clock) partArgs(now time.Time) []string {
	args := c.input(now)
	part := strconv.FormatInt(c.Part.Microseconds(), 10)
	for i, r := range c.Renditions {
		args = append(args, "-map", fmt.Sprintf("[v%d]", i), "-map", "1:a")
		args = append(args, c.codecs()...)
		args = append(args, "-tune", "zerolatency", "-b:v", strconv.Itoa(r.Video), "-maxrate:v", strconv.Itoa(r.Video*11/10), "-bufsize:v", strconv.Itoa(r.Video*2), "-b:a", strconv.Itoa(r.Audio),
			"-f", "mp4", "-movflags", "frag_keyframe+empty_moov+default_base_moof", "-frag_duration", part, "-flush_packets", "1", fmt.Sprintf("pipe:%d", 3+i))
	}
	return args
}

// parted publishes one rendition, part after part.
type parted struct {
	*stream
	folder string
	header string        // file of the header, in the folder
	from   time.Time     // of the stream
	oldest int64         // number of the first of all
	all    []partSegment // that are there; the last one may grow
	told   bool          // a playlist is there
}

// partSegment is a segment that is published in parts.
type partSegment struct {
	number   int64
	start    time.Duration
	duration time.Duration
	parts    []publishedPart
	data     []byte // of a segment that grows
	complete bool
}

type publishedPart struct {
	duration    time.Duration
	independent bool
}

func (s *partSegment) file() string           { return fmt.Sprintf("live-%d.m4s", s.number) }
func (s *partSegment) part(number int) string { return fmt.Sprintf("live-%d.%d.m4s", s.number, number) }

// listedParts is of how many segments a playlist lists the parts: of three target durations (RFC 8216bis, section 4.4.4.9).
const listedParts = 3

// run publishes what comes until it ends.
func (p *parted) run(ctx context.Context, from io.Reader) error {
	r := cmaf.NewReader(from)
	header, err := r.Header()
	for err == nil {
		var c cmaf.Chunk
		if c, err = r.Next(); err == nil {
			err = p.came(ctx, header, c)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // ffmpeg says why
	}
	return err
}

// came publishes a part. Its segment is complete when it is as long as segments are: a player does not wait for the next one to hear
// of that.
func (p *parted) came(ctx context.Context, header []byte, c cmaf.Chunk) error {
	if p.header == "" {
		p.from, p.oldest = p.begin(p.folder, header, c)
		p.header = headerName(p.oldest)
		if err := p.to.put(ctx, p.folder+"/"+p.header, header); err != nil {
			return err
		}
	}
	last := p.growing()
	if last == nil {
		if !c.Independent {
			return fmt.Errorf("the segment at %v begins with a picture that needs others", c.Start)
		}
		p.all = append(p.all, partSegment{number: p.oldest + int64(len(p.all)), start: c.Start})
		last = p.growing()
	}
	if err := p.to.put(ctx, p.folder+"/"+last.part(len(last.parts)), c.Data); err != nil {
		return err
	}
	last.parts = append(last.parts, publishedPart{c.Duration, c.Independent})
	last.duration += c.Duration
	last.data = append(last.data, c.Data...)
	if last.duration+p.clock.Part/2 > p.clock.Segment {
		if err := p.to.put(ctx, p.folder+"/"+last.file(), last.data); err != nil {
			return err
		}
		last.complete, last.data = true, nil
		defer p.ended(last.number)
	}
	if err := p.to.put(ctx, p.folder+"/index.m3u8", p.text()); err != nil {
		return err
	}
	if !p.told {
		p.told = true
		p.playable()
	}
	return p.removeOld(ctx)
}

func (p *parted) growing() *partSegment {
	if n := len(p.all); n > 0 && !p.all[n-1].complete {
		return &p.all[n-1]
	}
	return nil
}

// removeOld removes what left the playlist longer ago than that is long.
func (p *parted) removeOld(ctx context.Context) error {
	for len(p.all) > 2*p.clock.window()+1 {
		s := &p.all[0]
		for i := range s.parts {
			if err := p.to.remove(ctx, p.folder+"/"+s.part(i)); err != nil {
				return err
			}
		}
		if err := p.to.remove(ctx, p.folder+"/"+s.file()); err != nil {
			return err
		}
		p.all, p.oldest = p.all[1:], p.oldest+1
	}
	return nil
}

// text is the playlist.
func (p *parted) text() []byte {
	listed, number, complete := p.all, p.oldest, len(p.all)
	if p.growing() != nil {
		complete--
	}
	if old := complete - p.clock.window(); old > 0 {
		listed, number, complete = listed[old:], number+int64(old), complete-old
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-TARGETDURATION:%d\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=%.2f\n#EXT-X-PART-INF:PART-TARGET=%.2f\n#EXT-X-MEDIA-SEQUENCE:%d\n#EXT-X-MAP:URI=%q\n",
		int(math.Ceil(p.clock.Segment.Seconds())), p.clock.holdBack(), p.clock.partTarget(), number, p.header)
	for i := range listed {
		s := &listed[i]
		fmt.Fprintf(&b, "#EXT-X-PROGRAM-DATE-TIME:%s\n", p.from.Add(s.start).UTC().Format("2006-01-02T15:04:05.000Z"))
		if i >= complete-listedParts {
			for n, part := range s.parts {
				fmt.Fprintf(&b, "#EXT-X-PART:DURATION=%.6f,URI=%q", part.duration.Seconds(), s.part(n))
				if part.independent {
					b.WriteString(",INDEPENDENT=YES")
				}
				b.WriteByte('\n')
			}
		}
		if s.complete {
			fmt.Fprintf(&b, "#EXTINF:%.6f,\n%s\n", s.duration.Seconds(), s.file())
		}
	}
	next := partSegment{number: number + int64(len(listed))}
	hint := next.part(0)
	if s := p.growing(); s != nil {
		hint = s.part(len(s.parts))
	}
	fmt.Fprintf(&b, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=%q\n", hint)
	return []byte(b.String())
}
