package film

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// variant is one line of the master playlist, with what was measured on the finished segments.
type variant struct {
	rendition     Rendition
	peak, average int // bits per second
	coded         stream
}

// measure reads the media playlist in dir and weighs its segments.
func measure(dir string, r Rendition, coded stream) (variant, error) {
	text, err := os.ReadFile(filepath.Join(dir, "index.m3u8"))
	if err != nil {
		return variant{}, fmt.Errorf("film: read the playlist that ffmpeg wrote: %w", err)
	}
	v := variant{rendition: r, coded: coded}
	var bits, seconds, length float64
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if d, ok := strings.CutPrefix(line, "#EXTINF:"); ok {
			if length, err = strconv.ParseFloat(strings.TrimSuffix(d, ","), 64); err != nil {
				return variant{}, fmt.Errorf("film: read the playlist of %s: %w", r.Name, err)
			}
			continue
		}
		if line == "" || line[0] == '#' || length <= 0 {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, line))
		if err != nil {
			return variant{}, fmt.Errorf("film: weigh a segment of %s: %w", r.Name, err)
		}
		b := float64(info.Size()) * 8
		bits, seconds = bits+b, seconds+length
		v.peak = max(v.peak, int(b/length))
		length = 0
	}
	if seconds == 0 {
		return variant{}, fmt.Errorf("film: the playlist of %s has no segments", r.Name)
	}
	v.average = int(bits / seconds)
	return v, nil
}

func writeMaster(path string, variants []variant) error {
	var b strings.Builder
	b.WriteString("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-INDEPENDENT-SEGMENTS\n")
	for _, v := range variants {
		codecs := "avc1.4d401e" // main profile, level 3.0: what encodeArgs asks for
		if v.coded.audio {
			codecs += ",mp4a.40.2"
		}
		fmt.Fprintf(&b, "#EXT-X-STREAM-INF:BANDWIDTH=%d,AVERAGE-BANDWIDTH=%d,CODECS=%q,RESOLUTION=%s,NAME=%q\n%s/index.m3u8\n",
			v.peak, v.average, codecs, v.coded.size, v.rendition.Name, v.rendition.Name)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("film: write the master playlist: %w", err)
	}
	return nil
}
