package film

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// DASHName is the MPD in the directory that PrepareCMAF returns. The master playlist beside it (MasterName) lists the same segments.
const DASHName = "master.mpd"

// cmafSuffix ends the name of the folder of the CMAF form, which begins as the film's does. Its number is raised when what is made of a
// film changes, so that the film is packaged anew and not encoded anew.
const cmafSuffix = "-cmaf2"

// PrepareCMAF returns the directory of the CMAF form of a film that Prepare made in dir, making it if it is not there yet: picture
// and sound apart, in fragmented MP4, listed for HLS and for DASH. Nothing is encoded.
func PrepareCMAF(ctx context.Context, dir string, o Options) (string, error) {
	final := dir + cmafSuffix
	if _, err := os.Stat(filepath.Join(final, DASHName)); err == nil {
		return final, nil
	}
	ffmpeg, err := o.findFFmpeg(ctx)
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), ".making-cmaf-")
	if err != nil {
		return "", fmt.Errorf("film: make the CMAF form: %w", err)
	}
	defer os.RemoveAll(work)
	o.progress("film: packaging as CMAF")
	out := filepath.Join(work, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return "", fmt.Errorf("film: make the CMAF form: %w", err)
	}
	coded := make([]stream, len(o.Recipe.Renditions))
	for i, r := range o.Recipe.Renditions {
		if coded[i], err = probe(ctx, ffmpeg, filepath.Join(dir, r.Name, "index.m3u8")); err != nil {
			return "", err
		}
	}
	if err := o.ffmpeg(ctx, ffmpeg, o.Recipe.cmafArgs(dir, out, coded[len(coded)-1].audio), ""); err != nil {
		return "", err
	}
	if err := o.Recipe.listCMAF(out, coded); err != nil {
		return "", err
	}
	if err := os.Rename(out, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("film: move the CMAF form into the cache: %w", err)
	}
	return final, nil
}

// cmafArgs have one set of all pictures, between which players switch, and one of the last rendition's sound. The sound is an input of
// its own: ffmpeg counts the time of an input from the first of what is taken of it, and sound begins a frame before the picture. Else
// the last rendition's picture would be late by that frame, and players that switch to it find a gap.
func (r Recipe) cmafArgs(dir, out string, sound bool) []string {
	inputs := r.Renditions
	if sound {
		inputs = append(inputs[:len(inputs):len(inputs)], inputs[len(inputs)-1])
	}
	var args []string
	for _, q := range inputs {
		args = append(args, "-i", filepath.Join(dir, q.Name, "index.m3u8"))
	}
	for i := range r.Renditions {
		args = append(args, "-map", fmt.Sprintf("%d:v:0", i))
	}
	sets := "id=0,streams=v"
	if sound {
		args = append(args, "-map", fmt.Sprintf("%d:a:0", len(r.Renditions)))
		sets += " id=1,streams=a"
	}
	return append(args, "-c", "copy",
		"-tag:v", "avc1", "-tag:a", "mp4a", "-bsf:a", "aac_adtstoasc", // what MPEG-TS has otherwise
		"-f", "dash", "-seg_duration", strconv.Itoa(r.SegmentSeconds), "-hls_playlist", "1", "-adaptation_sets", sets,
		"-init_seg_name", "init-$RepresentationID$.mp4", "-media_seg_name", "$RepresentationID$-$Number%05d$.m4s",
		filepath.Join(out, DASHName))
}

// listCMAF settles the playlists that ffmpeg wrote, and writes the master playlist anew: ffmpeg's has the average bitrate as
// BANDWIDTH, which is the highest (RFC 8216, 4.3.4.2), and its renditions have no names.
func (r Recipe) listCMAF(out string, coded []stream) error {
	sound := track{}
	if n := len(r.Renditions); coded[n-1].audio {
		sound.playlist = cmafPlaylist(n)
		if err := settle(filepath.Join(out, sound.playlist)); err != nil {
			return err
		}
		if err := sound.measure(out); err != nil {
			return err
		}
	}
	variants := make([]variant, len(r.Renditions))
	for i, q := range r.Renditions {
		v := variant{track: track{playlist: cmafPlaylist(i)}, rendition: q, coded: coded[i]}
		v.coded.audio = sound.playlist != ""
		if err := settle(filepath.Join(out, v.playlist)); err != nil {
			return err
		}
		if err := v.measure(out); err != nil {
			return err
		}
		v.peak, v.average = v.peak+sound.peak, v.average+sound.average
		variants[i] = v
	}
	return writeMaster(filepath.Join(out, MasterName), 7, variants, sound.playlist)
}

// cmafPlaylist is ffmpeg's name of the playlist of a representation.
func cmafPlaylist(id int) string { return fmt.Sprintf("media_%d.m3u8", id) }

// settle makes the media playlist of a film of the one that ffmpeg wrote while it packaged: nothing is added to it any more, and it has
// no dates, which say when the film was packaged.
func settle(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("film: read the playlist that ffmpeg wrote: %w", err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#EXT-X-PROGRAM-DATE-TIME:") {
			continue
		}
		b.WriteString(line)
		if strings.HasPrefix(line, "#EXT-X-TARGETDURATION:") {
			b.WriteString("#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-INDEPENDENT-SEGMENTS\n")
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("film: write a playlist: %w", err)
	}
	return nil
}
