package film

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// track is a media playlist, with what was measured on the finished segments.
type track struct {
	playlist      string // from the master playlist's folder, with slashes
	peak, average int    // bits per second
}

// variant is one line of the master playlist. Bitrates are those of picture and sound.
type variant struct {
	track
	rendition Rendition
	coded     stream
}

// measure reads the media playlist below dir and weighs its segments.
func (t *track) measure(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(t.playlist))
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("film: read the playlist that ffmpeg wrote: %w", err)
	}
	var bits, seconds, length float64
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if d, ok := strings.CutPrefix(line, "#EXTINF:"); ok {
			if length, err = strconv.ParseFloat(strings.TrimSuffix(d, ","), 64); err != nil {
				return fmt.Errorf("film: read the playlist %s: %w", t.playlist, err)
			}
			continue
		}
		if line == "" || line[0] == '#' || length <= 0 {
			continue
		}
		info, err := os.Stat(filepath.Join(filepath.Dir(path), line))
		if err != nil {
			return fmt.Errorf("film: weigh a segment of %s: %w", t.playlist, err)
		}
		b := float64(info.Size()) * 8
		bits, seconds = bits+b, seconds+length
		t.peak = max(t.peak, int(b/length))
		length = 0
	}
	if seconds == 0 {
		return fmt.Errorf("film: the playlist %s has no segments", t.playlist)
	}
	t.average = int(bits / seconds)
	return nil
}

// writeMaster writes a master playlist of a version of HLS. sound is the playlist of sound apart; empty: there is none.
func writeMaster(path string, version int, variants []variant, sound string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "#EXTM3U\n#EXT-X-VERSION:%d\n#EXT-X-INDEPENDENT-SEGMENTS\n", version)
	group := ""
	if sound != "" {
		group = `,AUDIO="sound"`
		fmt.Fprintf(&b, "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"sound\",NAME=\"sound\",DEFAULT=YES,AUTOSELECT=YES,URI=%q\n", sound)
	}
	for _, v := range variants {
		codecs := "avc1.4d401e" // main profile, level 3.0: what encodeArgs asks for
		if v.coded.audio {
			codecs += ",mp4a.40.2"
		}
		fmt.Fprintf(&b, "#EXT-X-STREAM-INF:BANDWIDTH=%d,AVERAGE-BANDWIDTH=%d,CODECS=%q,RESOLUTION=%s,NAME=%q%s\n%s\n",
			v.peak, v.average, codecs, v.coded.size, v.rendition.Name, group, v.playlist)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("film: write the master playlist: %w", err)
	}
	return nil
}
