package playlist

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// tags are those that the library (hls-m3u8 0.6.1) sees. It takes any of the others for nothing that is needed here, and some for worse: it
// panics after a key that no segment follows, refuses a playlist that ends with a date range of SCTE-35, and goes through all parts before for
// each part of a playlist that does not say how long parts are.
var tags = [][]byte{
	[]byte("#EXTINF"), []byte("#EXT-X-PROGRAM-DATE-TIME:"), rangeTag, []byte("#EXT-X-DISCONTINUITY"), []byte("#EXT-X-GAP"),
	[]byte("#EXTM3U"), []byte("#EXT-X-VERSION:"), []byte("#EXT-X-TARGETDURATION:"), []byte("#EXT-X-MEDIA-SEQUENCE:"), []byte("#EXT-X-SERVER-CONTROL:"),
	[]byte("#EXT-X-ENDLIST"), []byte("#EXT-X-MEDIA:"), []byte("#EXT-X-STREAM-INF:"), []byte("#EXT-X-I-FRAME-STREAM-INF:"), mapTag,
}

// tagsOfParts are those that takeParts reads.
var tagsOfParts = [][]byte{[]byte(partTag), []byte(hintTag), []byte(infoTag), []byte(skipTag)}

var mapTag, infTag, rangeTag = []byte("#EXT-X-MAP:"), []byte("#EXTINF:"), []byte("#EXT-X-BYTERANGE:")

// notSaid is the offset of a byte range without one. The library reads it as 0, which is that of a clip that begins again.
const notSaid = -1

// mapRange finds the byte range of an initialization segment in quotes. The standard has them. The library takes them for part of the
// number and drops the whole line without an error.
var mapRange = regexp.MustCompile(`^([^\r\n]*BYTERANGE=)"(\d+)(@\d+)?"`)

// readable returns what is read of a playlist, as the library reads it, with its variables filled in.
func readable(data []byte, f *filler) ([]byte, error) {
	out := make([]byte, 0, len(data))
	parts := bytes.HasPrefix(data, []byte(infoTag)) || bytes.Contains(data, []byte("\n"+infoTag))
	for line := range bytes.Lines(data) {
		begins := func(tag []byte) bool { return bytes.HasPrefix(line, tag) }
		if begins(defineTag) {
			if err := f.define(line); err != nil {
				return nil, err
			}
			continue
		}
		if line[0] == '#' && !slices.ContainsFunc(tags, begins) && (!parts || !slices.ContainsFunc(tagsOfParts, begins)) {
			continue
		}
		line, err := f.line(line)
		if err != nil {
			return nil, err
		}
		switch {
		case begins(infTag) && !lasts(line):
			line = []byte("#EXTINF:0,\n")
		case begins(rangeTag) && !bytes.Contains(line, []byte("@")):
			line = fmt.Appendf(nil, "%s@%d\n", bytes.TrimSpace(line), notSaid)
		case begins(mapTag):
			line = mapRange.ReplaceAllFunc(line, unquoted)
		}
		out = append(out, line...)
	}
	return out, nil
}

// lasts says whether an EXTINF has a duration from 0 to maxSeconds. The library takes a longer one, and "nan", for the target duration, too.
func lasts(line []byte) bool {
	text, _, _ := bytes.Cut(bytes.TrimRight(line[len(infTag):], "\r\n"), []byte(","))
	seconds, _ := strconv.ParseFloat(string(text), 64)
	return seconds >= 0 && seconds <= maxSeconds
}

func unquoted(line []byte) []byte {
	m := mapRange.FindSubmatch(line)
	if len(m[3]) == 0 {
		m[3] = []byte("@0")
	}
	return slices.Concat(m[1], m[2], m[3])
}
