package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/leeway-video/leeway/internal/app/film"
	"github.com/leeway-video/leeway/internal/app/live"
	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/webdist"
)

// Lengths of segments where none is asked for: a film's do without many requests, a stream's are what its viewers are behind by.
const (
	filmSegment = 4 * time.Second
	liveSegment = 2 * time.Second

	// livePart is how long the parts of a low-latency stream are. An encoder adds to a part what a packet of sound lasts, 21 ms.
	livePart  = 500 * time.Millisecond
	leastPart = 100 * time.Millisecond
	mostPart  = time.Second // half of the shortest segment

	liveWindow  = 30 * time.Second
	leastWindow = 10 * time.Second
	mostWindow  = 2 * time.Hour
)

// segmentLengths are those that a film can be cut into: whole groups of pictures of the recipe.
var segmentLengths = []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second}

// pictureFlags are of each command that shows a picture of its own.
type pictureFlags struct {
	Media      *string        `help:"Film to play: a video file (needs ffmpeg once), or a folder with master.m3u8." placeholder:"FILE" key:"media" xor:"what"`
	Live       *bool          `help:"A live stream instead of a film: a clock, encoded while it is watched (needs ffmpeg)." key:"live" xor:"what,live"`
	LowLatency *bool          `help:"Publish the segments of --live in parts (low-latency HLS and DASH)." key:"low_latency"`
	Part       *time.Duration `help:"Length of these parts, 100ms to 1s (default 500ms)." placeholder:"DURATION" key:"part"`
	Replay     *bool          `help:"Show the film as a live stream without end; nothing is encoded." key:"replay" xor:"live"`
	Segment    *time.Duration `help:"Length of segments: 2s, 4s or 6s (default 4s, of a live stream 2s)." placeholder:"DURATION" key:"segment"`
	Window     *time.Duration `help:"How far back a live stream can be watched (default 30s)." placeholder:"DURATION" key:"window"`
}

// streams says whether it is a live stream.
func (p PictureConfig) streams() bool { return p.Live || p.Replay }

// check says what does not go together.
func (p PictureConfig) check() error {
	switch {
	case p.Live && p.Replay:
		return cmdline.Usage(errors.New("--live shows a clock and --replay a film: give one of them"))
	case p.LowLatency && !p.Live:
		return cmdline.Usage(errors.New("--low-latency is of the stream of --live alone"))
	case p.Part != 0 && !p.LowLatency:
		return cmdline.Usage(errors.New("--part is how long the parts of --low-latency are: give both, or neither"))
	case p.Live && p.Media != "":
		return cmdline.Usage(errors.New("--live shows a clock and no --media (--replay shows a film as a live stream)"))
	}
	return nil
}

// seconds is the length of a segment.
func (p PictureConfig) seconds() int {
	length := p.Segment
	if length == 0 && p.streams() {
		length = liveSegment
	} else if length == 0 {
		length = filmSegment
	}
	return int(length / time.Second)
}

// path is the one that the picture is served below.
func (p PictureConfig) path() string {
	switch {
	case p.streams():
		return "/media/live/"
	case p.Media == "":
		return "/media/bbb/"
	}
	return "/media/" + film.Slug(p.Media) + "/"
}

// open returns an origin of the picture, and the folder of the film where there is one: its HLS of MPEG-TS, if it was made here. That
// of a stream is empty until a channel pushes into it, and is removed when it is closed.
func (p PictureConfig) open(ctx context.Context, env Env, sink metric.Sink) (source *origin.Server, dir string, err error) {
	if err := p.check(); err != nil {
		return nil, "", err
	}
	if !p.Live {
		if dir, err = p.folder(ctx, env); err != nil {
			return nil, "", err
		}
	}
	if !p.streams() {
		source, err = p.openFilm(ctx, env, dir, sink)
		return source, dir, err
	}
	temporary, err := os.MkdirTemp("", "leeway-live-")
	if err != nil {
		return nil, "", fmt.Errorf("live: make a folder: %w (set TMPDIR to one that can be written)", err)
	}
	if source, err = origin.Open(temporary, p.path(), sink); err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(temporary))
	}
	source.Temporary, source.Replays = temporary, p.Replay
	return source, dir, nil
}

// openFilm returns an origin of the film in dir. One that was made here is served as CMAF, which is one swarm for HLS and DASH, and
// below it as MPEG-TS; where it cannot be packaged, as MPEG-TS alone.
func (p PictureConfig) openFilm(ctx context.Context, env Env, dir string, sink metric.Sink) (*origin.Server, error) {
	if dir == p.Media {
		return origin.Open(dir, p.path(), sink)
	}
	served := dir
	options, err := filmOptions(env, p.seconds())
	if err != nil {
		return nil, err
	}
	if cmaf, err := film.PrepareCMAF(ctx, dir, options); err == nil {
		served = cmaf
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	} else {
		_, _ = fmt.Fprintf(env.Stderr, "the film plays as MPEG-TS, in players of HLS alone: %v\n", err)
	}
	source, err := origin.Open(served, p.path(), sink)
	if err != nil {
		return nil, err
	}
	if source.TS, err = os.OpenRoot(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("origin: open the film: %w", err), source.Close())
	}
	return source, nil
}

// folder returns the film's: media itself when it is one, else what is made of it.
func (p PictureConfig) folder(ctx context.Context, env Env) (string, error) {
	if p.Media != "" {
		info, err := os.Stat(p.Media)
		if err != nil {
			return "", cmdline.Usage(fmt.Errorf("--media: %w (give a video file, or a folder of HLS)", err))
		}
		if info.IsDir() {
			if _, err := os.Stat(filepath.Join(p.Media, film.MasterName)); err != nil {
				return "", cmdline.Usage(fmt.Errorf("--media: %s holds no %s (give a folder of HLS, or a video file)", p.Media, film.MasterName))
			}
			return p.Media, nil
		}
	}
	return prepareFilm(ctx, env, p.Media, p.seconds())
}

// shown is what the page says of the picture that source serves, and the tracker that its script asks; empty: the page's own host.
func (p PictureConfig) shown(tracker string, source *origin.Server) webdist.Film {
	shown := webdist.Film{
		Tracker: tracker,
		Source:  p.path() + film.MasterName, LowLatency: p.LowLatency,
		Title: "Big Buck Bunny", Attribution: "© Blender Foundation, CC BY 3.0",
	}
	switch {
	case p.Live:
		shown.Title, shown.Attribution = "Clock", ""
	case p.Media != "":
		shown.Title, shown.Attribution = filepath.Base(p.Media), ""
	}
	if p.streams() {
		shown.Title += " (live)"
	}
	for _, name := range []string{film.DASHName, live.DASHName} {
		if _, err := source.Root.Stat(name); err == nil {
			shown.DASH = p.path() + name
		}
	}
	return shown
}

// prepareFilm makes the HLS form of file, or of the sample film when file is empty, in segments of so many seconds.
func prepareFilm(ctx context.Context, env Env, file string, seconds int) (string, error) {
	options, err := filmOptions(env, seconds)
	if err != nil {
		return "", err
	}
	if file == "" {
		return film.PrepareBunny(ctx, options)
	}
	return film.Prepare(ctx, file, options)
}

// filmOptions are those of films in segments of so many seconds.
func filmOptions(env Env, seconds int) (film.Options, error) {
	cache, err := film.CacheDir(env.Getenv)
	if err != nil {
		return film.Options{}, err
	}
	options := film.Options{
		Cache: cache, Recipe: film.DefaultRecipe(),
		Progress: func(format string, args ...any) { _, _ = io.WriteString(env.Stderr, fmt.Sprintf(format, args...)+"\n") },
	}
	options.Recipe.SegmentSeconds = seconds
	return options, nil
}
