package cmaf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// cut cuts a segment that comes in pieces of so many bytes.
func cut(data []byte, size int) (ends []int64, whole bool, err error) {
	var c Cutter
	for piece := range slices.Chunk(data, size) {
		more, err := c.Add(piece)
		if ends = append(ends, more...); err != nil {
			return ends, c.Whole(), err
		}
	}
	return ends, c.Whole(), nil
}

// wide is a box whose size has 64 bits.
func wide(kind string, content ...byte) []byte {
	head := append([]byte{0, 0, 0, 1}, kind...)
	return append(binary.BigEndian.AppendUint64(head, uint64(16+len(content))), content...)
}

func TestASegmentIsCutBehindItsMedia(t *testing.T) {
	for name, c := range map[string]struct {
		boxes []byte
		ends  []int64
		whole bool
	}{
		"two chunks":                {slices.Concat(box("styp", 1, 2), box("moof"), box("mdat", 1, 2, 3), box("prft"), box("emsg"), box("moof"), box("mdat")), []int64{29, 61}, true},
		"sizes of 64 bits":          {slices.Concat(wide("moof", 1), wide("mdat", 1, 2)), []int64{35}, true},
		"boxes behind the last":     {slices.Concat(box("moof"), box("mdat"), box("free", 1)), []int64{16}, true},
		"boxes between":             {slices.Concat(box("moof"), box("free", 1), box("mdat")), []int64{25}, true},
		"a moof box without media":  {slices.Concat(box("moof"), box("mdat"), box("moof")), []int64{16}, false},
		"half a box":                {slices.Concat(box("moof"), box("mdat"), box("moof", 1)[:8]), []int64{16}, false},
		"half a head":               {slices.Concat(box("moof"), box("mdat"), box("moof")[:3]), []int64{16}, false},
		"half a head of 64 bits":    {slices.Concat(box("moof"), box("mdat"), wide("free")[:9]), []int64{16}, false},
		"no chunk":                  {box("ftyp", 1, 2, 3), nil, false},
		"nothing":                   {nil, nil, false},
		"media that has not come":   {slices.Concat(box("moof"), box("mdat", 1, 2)[:9]), nil, false},
		"a page, as far as it goes": {[]byte("<!DOCTYPE html><html>"), nil, false},
	} {
		for size := range len(c.boxes) + 1 {
			if ends, whole, err := cut(c.boxes, size+1); err != nil || !slices.Equal(ends, c.ends) || whole != c.whole {
				t.Errorf("%s, in pieces of %d: %v, %v, %v; want %v, %v", name, size+1, ends, whole, err, c.ends, c.whole)
			}
		}
	}
}

func TestASegmentThatIsNoneIsNotCut(t *testing.T) {
	one := slices.Concat(box("moof"), box("mdat"))
	for name, c := range map[string][]byte{
		"to the end":             {0, 0, 0, 0, 'm', 'o', 'o', 'f'},
		"too short":              {0, 0, 0, 7, 'm', 'o', 'o', 'f'},
		"too short, of 64 bits":  {0, 0, 0, 1, 'm', 'o', 'o', 'f', 0, 0, 0, 0, 0, 0, 0, 15},
		"too long":               {0, 0, 0, 1, 'm', 'o', 'o', 'f', 255, 255, 255, 255, 255, 255, 255, 255},
		"media without moof":     box("mdat"),
		"media behind the media": slices.Concat(box("styp"), box("mdat")),
	} {
		for size := range 20 {
			var c2 *CutError
			ends, whole, err := cut(slices.Concat(one, c, one), size+1)
			if !errors.As(err, &c2) || c2.At < 16 || c2.At > 24 || whole || !slices.Equal(ends, []int64{16}) {
				t.Errorf("%s: %v, %v, %v", name, ends, whole, err)
			}
		}
	}
	var c Cutter
	_, first := c.Add(box("mdat"))
	if ends, err := c.Add(one); err == nil || err != first || ends != nil {
		t.Errorf("after an error: %v, %v", ends, err)
	}
}

// TestSegmentsOfFFmpegAreCut: of its low-latency DASH, and of a stream of fragments.
func TestSegmentsOfFFmpegAreCut(t *testing.T) {
	data := stream(t)
	ends, whole, err := cut(data, 1000)
	if err != nil || len(ends) != 6 || !whole || string(data[ends[5]+4:ends[5]+8]) != "mfra" {
		t.Errorf("%v, %v, %v", ends, whole, err)
	}
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	dir := t.TempDir()
	command := exec.Command(ffmpeg, "-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=25", "-t", "3.9", "-c:v", "libx264",
		"-preset", "ultrafast", "-g", "50", "-keyint_min", "50", "-sc_threshold", "0", "-f", "dash", "-seg_duration", "2", "-ldash", "1", "-streaming", "1",
		"-use_timeline", "0", "-frag_type", "duration", "-frag_duration", "0.5", filepath.Join(dir, "live.mpd"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg: %v\n%s", err, out)
	}
	data, err = os.ReadFile(filepath.Join(dir, "chunk-stream0-00001.m4s"))
	if err != nil {
		t.Fatal(err)
	}
	ends, whole, err = cut(data, 700)
	if err != nil || !whole || len(ends) < 4 || len(ends) != bytes.Count(data, []byte("moof")) || ends[len(ends)-1] != int64(len(data)) {
		t.Errorf("%d bytes: %v, %v, %v", len(data), ends, whole, err)
	}
}

// FuzzCutter: however the bytes come, chunks end at the same places, each behind the one before.
func FuzzCutter(f *testing.F) {
	f.Add(stream(f)[:9000], 100)
	f.Add(slices.Concat(wide("moof", 1), wide("mdat", 1, 2), box("moof"), box("mdat", 3)), 3)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		ends, whole, err := cut(data, 1+(size&0xffff))
		var c *CutError
		if err != nil && (!errors.As(err, &c) || whole) {
			t.Fatal(err)
		}
		last := int64(0)
		for _, end := range ends {
			if end < last+16 || end > int64(len(data)) {
				t.Fatalf("%d bytes: %v", len(data), ends)
			}
			last = end
		}
		again, whole2, err2 := cut(data, len(data)+1)
		if !slices.Equal(ends, again) || whole != whole2 || (err == nil) != (err2 == nil) {
			t.Errorf("%v, %v, %v; at once %v, %v, %v", ends, whole, err, again, whole2, err2)
		}
	})
}
