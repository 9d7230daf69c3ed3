package playlist

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// MaxParts bounds the parts that a media playlist lists. A longer one is refused.
const MaxParts = 4096

// LowLatency is what a media playlist says of the parts of its segments (draft-pantos-hls-rfc8216bis, section 4.4.3.8 and 4.4.4.9).
type LowLatency struct {
	PartTarget time.Duration // longest part
	HoldBack   time.Duration // how far behind the end a player that plays parts is to stay; 0: it does not say
	Blocks     bool          // a request for a playlist that is not there yet waits for it
	Growing    *Segment      // the segment behind the last, of the parts that are there; nil: there is none
	Hint       *Object       // the next part; Length 0: all of the object from Offset on; nil: it does not say
}

// Part is a part of a segment.
type Part struct {
	Object
	Duration    float64 // seconds, as written
	Independent bool    // it begins with a picture that needs no other
	Gap         bool    // it has no media
}

// Next is the number of the part that the playlist will list next: the media sequence number of its segment, and its number in it.
// With these as _HLS_msn and _HLS_part a request for the playlist waits for that part. Each part of the growing segment may be its last.
func (m *Media) Next() (sequence int64, part int) {
	sequence = m.Sequence + int64(len(m.Segments))
	if m.LowLatency != nil && m.LowLatency.Growing != nil {
		part = len(m.LowLatency.Growing.Parts)
	}
	return sequence, part
}

// attribute is one NAME=value of a tag.
var attribute = regexp.MustCompile(`([A-Z0-9-]+)=("[^"\r\n]*"|[^",\r\n]*)`)

func attributes(text string) map[string]string {
	out := map[string]string{}
	for _, m := range attribute.FindAllStringSubmatch(text, -1) {
		out[m[1]] = strings.Trim(m[2], `"`)
	}
	return out
}

// partTags are what a playlist says of parts. The library refuses parts before the first segment and byte ranges in
// quotes, guesses from names which segment a part is of, and takes the clock of a segment for its first part. So it does not see them.
type partTags struct {
	target time.Duration
	of     map[int][]Part // by the index of their segment
	hint   *Object

	segment int // index of the next segment
	parts   int // read so far
	begun   bool
}

const (
	partTag = "#EXT-X-PART:"
	hintTag = "#EXT-X-PRELOAD-HINT:"
	infoTag = "#EXT-X-PART-INF:"
	skipTag = "#EXT-X-SKIP:"
)

// takeParts returns the playlist without its tags of parts, and these. A segment that grows gets an entry of its own there.
func takeParts(data []byte) ([]byte, *partTags, error) {
	if !bytes.Contains(data, []byte(infoTag)) {
		return data, nil, nil
	}
	t := &partTags{of: map[int][]Part{}}
	var rest bytes.Buffer
	for line := range bytes.Lines(data) {
		taken, err := t.line(strings.TrimRight(string(line), "\r\n"))
		if err != nil {
			return nil, nil, err
		}
		if !taken {
			rest.Write(line)
		}
	}
	if growing := t.of[t.segment]; growing != nil {
		seconds := 0.0
		for _, p := range growing {
			seconds += p.Duration
		}
		fmt.Fprintf(&rest, "\n#EXTINF:%f,\n%s\n", seconds, growing[0].URI)
	}
	return rest.Bytes(), t, nil
}

// line reads a line. It says whether the library is not to see it.
func (t *partTags) line(line string) (taken bool, err error) {
	switch {
	case strings.HasPrefix(line, partTag):
		return true, t.part(attributes(line[len(partTag):]))
	case strings.HasPrefix(line, hintTag):
		return true, t.hinted(attributes(line[len(hintTag):]))
	case strings.HasPrefix(line, infoTag):
		seconds, err := seconds(attributes(line[len(infoTag):])["PART-TARGET"])
		t.target = time.Duration(seconds * float64(time.Second))
		return true, err
	case strings.HasPrefix(line, skipTag):
		return true, fmt.Errorf("it leaves out segments (%s), which was not asked for", skipTag)
	case strings.HasPrefix(line, "#EXTINF:"):
		t.begun = true
	case line != "" && line[0] != '#' && t.begun:
		t.begun = false
		t.segment++
	}
	return false, nil
}

func (t *partTags) part(a map[string]string) error {
	if t.parts++; t.parts > MaxParts {
		return fmt.Errorf("it lists more than %d parts", MaxParts)
	}
	fail := func(why string) error { return fmt.Errorf("part %d that it lists has %s", t.parts, why) }
	p := Part{Object: Object{URI: a["URI"]}, Independent: a["INDEPENDENT"] == "YES", Gap: a["GAP"] == "YES"}
	if p.URI == "" {
		return fail("no URI")
	}
	var err error
	if p.Duration, err = seconds(a["DURATION"]); err != nil {
		return fail("no duration: " + err.Error())
	}
	if text := a["BYTERANGE"]; text != "" {
		length, offset, placed := strings.Cut(text, "@")
		p.Length, err = number(length)
		if placed && err == nil {
			p.Offset, err = number(offset)
		}
		if err != nil || p.Length == 0 {
			return fail(fmt.Sprintf("the byte range %q", text))
		}
		if of := t.of[t.segment]; !placed && len(of) > 0 && of[len(of)-1].URI == p.URI {
			p.Offset = of[len(of)-1].Offset + of[len(of)-1].Length
		}
		if p.Offset+p.Length > maxSequence {
			return fail(fmt.Sprintf("the byte range %q", text))
		}
	}
	t.of[t.segment] = append(t.of[t.segment], p)
	return nil
}

// hinted takes what a playlist says of the next part. Other hints, and further ones, are passed over.
func (t *partTags) hinted(a map[string]string) error {
	if a["TYPE"] != "PART" || t.hint != nil {
		return nil
	}
	o := &Object{URI: a["URI"]}
	var err error
	if text, there := a["BYTERANGE-START"]; there {
		o.Offset, err = number(text)
	}
	if text, there := a["BYTERANGE-LENGTH"]; there && err == nil {
		o.Length, err = number(text)
	}
	if o.URI == "" || err != nil || o.Offset+o.Length > maxSequence {
		return fmt.Errorf("it hints at no part: URI %q, bytes %q from %q", o.URI, a["BYTERANGE-LENGTH"], a["BYTERANGE-START"])
	}
	t.hint = o
	return nil
}

// apply adds the parts to what the library has read. It has to have found the same segments.
func (t *partTags) apply(m *Media, holdBack float64, blocks bool) error {
	grows := t.of[t.segment] != nil
	if n := len(m.Segments); n != t.segment && !grows || n != t.segment+1 && grows {
		return fmt.Errorf("it lists %d segments, of which %d can be read", t.segment, n)
	}
	low := &LowLatency{PartTarget: t.target, Blocks: blocks, Hint: t.hint}
	if holdBack > 0 && holdBack <= maxSeconds {
		low.HoldBack = time.Duration(holdBack * float64(time.Second))
	}
	for i := range m.Segments {
		m.Segments[i].Parts = t.of[i]
	}
	if grows {
		growing := m.Segments[t.segment]
		growing.Object = Object{}
		m.Segments, low.Growing = m.Segments[:t.segment], &growing
	}
	m.LowLatency = low
	return nil
}

// seconds reads a duration: more than nothing, at most a day.
func seconds(text string) (float64, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || s <= 0 || s > maxSeconds {
		return 0, fmt.Errorf("%q is no duration in seconds", text)
	}
	return s, nil
}

// number reads a count of bytes.
func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxSequence {
		return 0, fmt.Errorf("%q is no count of bytes", text)
	}
	return n, nil
}
