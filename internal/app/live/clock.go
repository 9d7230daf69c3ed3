package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Rendition is one quality of a clock.
type Rendition struct {
	Name         string // folder of its playlist and segments
	Height       int    // pixels
	Video, Audio int    // bits per second
}

// Clock encodes a test picture with the time of day, and a tone, in real time: ffmpeg makes and pushes them.
type Clock struct {
	Segment    time.Duration
	Window     time.Duration // length of the playlists
	FPS        int
	Renditions []Rendition   // the lowest first
	Part       time.Duration // length of parts; 0: segments have none, and ffmpeg pushes them itself
}

// goodbye is how long ffmpeg may take to its last playlist.
const goodbye = 3 * time.Second

// Run pushes the stream until ctx ends, and returns why it could not.
func (c Clock) Run(ctx context.Context, to Target) error {
	if c.Part > 0 {
		return c.runParts(ctx, to)
	}
	cmd, said, err := encoder(ctx, c.args(to.Base, time.Now()))
	if err != nil {
		return err
	}
	return failed(ctx, cmd.Run(), said)
}

// encoder is an ffmpeg that is told to end when ctx does, and the end of what it says.
func encoder(ctx context.Context, args []string) (*exec.Cmd, *tail, error) {
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil, nil, errors.New("live: the clock is made by ffmpeg, which is not on PATH (apt-get install ffmpeg)")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = goodbye
	said := &tail{}
	cmd.Stderr = said
	return cmd, said, nil
}

// failed is why a stream ended; nil: ctx did.
func failed(ctx context.Context, err error, said *tail) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		err = errors.New("it came to an end")
	}
	return fmt.Errorf("live: ffmpeg: %w: %s", err, said)
}

// args of an ffmpeg that pushes. Numbers and names of segments begin with the time of day: those of a stream that is started again are
// others.
func (c Clock) args(base string, now time.Time) []string {
	args := c.input(now)
	var streams []string
	for i, r := range c.Renditions {
		args = append(args, "-map", fmt.Sprintf("[v%d]", i), "-map", "1:a",
			fmt.Sprintf("-b:v:%d", i), strconv.Itoa(r.Video), fmt.Sprintf("-maxrate:v:%d", i), strconv.Itoa(r.Video*11/10),
			fmt.Sprintf("-bufsize:v:%d", i), strconv.Itoa(r.Video*2), fmt.Sprintf("-b:a:%d", i), strconv.Itoa(r.Audio))
		streams = append(streams, fmt.Sprintf("v:%d,a:%d,name:%s", i, i, r.Name))
	}
	seconds, window := strconv.FormatFloat(c.Segment.Seconds(), 'f', -1, 64), c.window()
	args = append(args, c.codecs()...)
	return append(args, "-f", "hls", "-hls_time", seconds, "-hls_list_size", strconv.Itoa(window), "-hls_delete_threshold", strconv.Itoa(window+1),
		"-hls_start_number_source", "epoch", "-hls_flags", "program_date_time+delete_segments+independent_segments",
		"-master_pl_name", MasterName, "-var_stream_map", strings.Join(streams, " "), "-method", "PUT",
		"-hls_segment_filename", base+"%v/live-%d.ts", base+"%v/index.m3u8")
}

// window is how many segments a playlist has.
func (c Clock) window() int { return max(leastWindow, int(c.Window/c.Segment)) }

// input is the picture and the tone, and their filters.
func (c Clock) input(now time.Time) []string {
	top := c.Renditions[len(c.Renditions)-1]
	fps := strconv.Itoa(c.FPS)
	return []string{
		"-hide_banner", "-nostdin", "-loglevel", "error",
		"-re", "-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%dx%d:rate=%s", (top.Height*16/9+1)/2*2, top.Height, fps),
		"-re", "-f", "lavfi", "-i", "sine=frequency=330:beep_factor=4:sample_rate=48000",
		"-filter_complex", c.filter(now),
	}
}

// codecs are the settings of the encoders: each segment begins with a picture that needs no other.
func (c Clock) codecs() []string {
	group := strconv.Itoa(int(math.Round(float64(c.FPS) * c.Segment.Seconds())))
	return []string{"-c:v", "libx264", "-preset", "ultrafast", "-g", group, "-keyint_min", group, "-sc_threshold", "0", "-c:a", "aac", "-ac", "2"}
}

// filter writes the time of day, with the number of the frame within its second, on the picture, and scales it for each rendition.
func (c Clock) filter(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `[0:v]drawtext=text='%%{pts\:localtime\:%d\:%%X}.%%{eif\:mod(n\,%d)\:d\:2}':fontsize=h/7:fontcolor=white:box=1:boxcolor=black@0.6:boxborderw=12:x=(w-tw)/2:y=(h-th)/2,format=yuv420p,split=%d`,
		now.Unix(), c.FPS, len(c.Renditions))
	for i := range c.Renditions {
		fmt.Fprintf(&b, "[s%d]", i)
	}
	for i, r := range c.Renditions {
		fmt.Fprintf(&b, ";[s%d]scale=-2:%d[v%d]", i, r.Height, i)
	}
	return b.String()
}

// tail keeps the end of what a program says.
type tail struct{ text []byte }

const tailBytes = 2 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

func (t tail) String() string { return strings.TrimSpace(string(t.text)) }
