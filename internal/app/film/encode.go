package film

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// encode makes out (master playlist, a directory a rendition) of input. Each rendition is encoded once and packaged by
// copying, so that repeating a short source costs no encoding time.
func (o Options) encode(ctx context.Context, ffmpeg, input, work, out string) error {
	if _, err := probe(ctx, ffmpeg, input); err != nil {
		return err
	}
	var variants []variant
	for i, r := range o.Recipe.Renditions {
		o.progress("film: encoding %s (%d of %d)", r.Name, i+1, len(o.Recipe.Renditions))
		coded := filepath.Join(work, r.Name+".mp4")
		if err := o.ffmpeg(ctx, ffmpeg, o.Recipe.encodeArgs(r, input, coded), r.Name); err != nil {
			return err
		}
		dir := filepath.Join(out, r.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("film: make %s: %w", dir, err)
		}
		if err := o.ffmpeg(ctx, ffmpeg, o.Recipe.packageArgs(coded, dir), ""); err != nil {
			return err
		}
		result, err := probe(ctx, ffmpeg, coded)
		if err != nil {
			return err
		}
		if err := os.Remove(coded); err != nil {
			return fmt.Errorf("film: tidy up: %w", err)
		}
		v := variant{track: track{playlist: r.Name + "/index.m3u8"}, rendition: r, coded: result}
		if err := v.measure(out); err != nil {
			return err
		}
		variants = append(variants, v)
	}
	return writeMaster(filepath.Join(out, MasterName), 3, variants, "")
}

func (r Recipe) encodeArgs(q Rendition, input, output string) []string {
	gop := strconv.Itoa(r.FPS * r.GOPSeconds)
	return []string{
		"-i", input, "-map", "0:v:0", "-map", "0:a:0?", "-map_metadata", "-1",
		"-vf", fmt.Sprintf("scale=-2:%d,format=yuv420p", q.Height), "-r", strconv.Itoa(r.FPS),
		"-c:v", "libx264", "-preset", "veryfast", "-profile:v", "main", "-level", "3.0",
		"-b:v", strconv.Itoa(q.Video), "-maxrate", strconv.Itoa(q.Video * 11 / 10), "-bufsize", strconv.Itoa(q.Video * 2),
		"-g", gop, "-keyint_min", gop, "-sc_threshold", "0",
		"-c:a", "aac", "-ac", "2", "-ar", "48000", "-b:a", strconv.Itoa(q.Audio),
		output,
	}
}

func (r Recipe) packageArgs(input, dir string) []string {
	return []string{
		"-stream_loop", strconv.Itoa(r.Repeat - 1), "-i", input, "-c", "copy",
		"-f", "hls", "-hls_time", strconv.Itoa(r.SegmentSeconds), "-hls_playlist_type", "vod",
		"-hls_segment_filename", filepath.Join(dir, "seg-%05d.ts"), filepath.Join(dir, "index.m3u8"),
	}
}

// stream is what ffmpeg says of a file.
type stream struct {
	audio bool
	size  string // of the picture, "854x480"
}

var pictureSize = regexp.MustCompile(`Video:.*?, (\d{2,5}x\d{2,5})\b`)

// probe looks into input, and fails with a sentence when it has no picture.
func probe(ctx context.Context, ffmpeg, input string) (stream, error) {
	cmd := exec.CommandContext(ctx, ffmpeg, "-hide_banner", "-nostdin", "-i", input)
	text, err := cmd.CombinedOutput() // exits 1 without an output file; what it prints is what counts
	if ctx.Err() != nil {
		return stream{}, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return stream{}, fmt.Errorf("film: run %s: %w", ffmpeg, err)
	}
	size := pictureSize.FindSubmatch(text)
	if size == nil {
		return stream{}, fmt.Errorf("film: %s holds no video that ffmpeg can read (%s)", input, lastLine(string(text)))
	}
	return stream{audio: bytes.Contains(text, []byte("Audio:")), size: string(size[1])}, nil
}

// ffmpeg runs one command; label, when not empty, names the progress lines.
func (o Options) ffmpeg(ctx context.Context, path string, args []string, label string) error {
	args = append([]string{"-hide_banner", "-nostdin", "-loglevel", "error", "-nostats", "-progress", "pipe:1", "-y"}, args...)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("film: run ffmpeg: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("film: run ffmpeg: %w", err)
	}
	o.report(stdout, label)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("film: ffmpeg failed: %w: %s", err, lastLine(stderr.String()))
	}
	return nil
}

// report prints how much film is encoded, a line a minute of film, until r ends.
func (o Options) report(r io.Reader, label string) {
	const step = int64(time.Minute / time.Microsecond)
	next := step
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		value, ok := strings.CutPrefix(lines.Text(), "out_time_us=")
		at, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil || at < next || label == "" {
			continue
		}
		o.progress("film: %s, %s encoded", label, (time.Duration(at) * time.Microsecond).Truncate(time.Second))
		next = at - at%step + step
	}
	_, _ = io.Copy(io.Discard, r) // an overlong line ends the scanner; ffmpeg must not block on a full pipe
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
