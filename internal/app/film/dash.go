package film

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// DASHName is the MPD in the directory that PrepareDASH returns. A master playlist (MasterName) beside it names the same segments.
const DASHName = "master.mpd"

// PrepareDASH returns the directory of the DASH form of a film that Prepare made in dir, making it if it is not there yet: picture
// and sound apart, in fragmented MP4. Nothing is encoded.
func PrepareDASH(ctx context.Context, dir string, o Options) (string, error) {
	final := dir + "-dash"
	if _, err := os.Stat(filepath.Join(final, DASHName)); err == nil {
		return final, nil
	}
	ffmpeg, err := o.findFFmpeg(ctx)
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), ".making-dash-")
	if err != nil {
		return "", fmt.Errorf("film: make the DASH form: %w", err)
	}
	defer os.RemoveAll(work)
	o.progress("film: packaging for DASH")
	out := filepath.Join(work, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return "", fmt.Errorf("film: make the DASH form: %w", err)
	}
	last := o.Recipe.Renditions[len(o.Recipe.Renditions)-1].Name
	coded, err := probe(ctx, ffmpeg, filepath.Join(dir, last, "index.m3u8"))
	if err != nil {
		return "", err
	}
	if err := o.ffmpeg(ctx, ffmpeg, o.Recipe.dashArgs(dir, out, coded.audio), ""); err != nil {
		return "", err
	}
	if err := os.Rename(out, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("film: move the DASH form into the cache: %w", err)
	}
	return final, nil
}

// dashArgs have one set of all pictures, between which players switch, and one of the last rendition's sound.
func (r Recipe) dashArgs(dir, out string, sound bool) []string {
	var args []string
	for _, q := range r.Renditions {
		args = append(args, "-i", filepath.Join(dir, q.Name, "index.m3u8"))
	}
	for i := range r.Renditions {
		args = append(args, "-map", fmt.Sprintf("%d:v:0", i))
	}
	sets := "id=0,streams=v"
	if sound {
		args = append(args, "-map", fmt.Sprintf("%d:a:0", len(r.Renditions)-1))
		sets += " id=1,streams=a"
	}
	return append(args, "-c", "copy",
		"-tag:v", "avc1", "-tag:a", "mp4a", "-bsf:a", "aac_adtstoasc", // what MPEG-TS has otherwise
		"-f", "dash", "-seg_duration", strconv.Itoa(r.SegmentSeconds), "-hls_playlist", "1", "-adaptation_sets", sets,
		"-init_seg_name", "init-$RepresentationID$.mp4", "-media_seg_name", "$RepresentationID$-$Number%05d$.m4s",
		filepath.Join(out, DASHName))
}
