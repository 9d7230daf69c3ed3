package cmaf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"testing/iotest"
	"time"
)

// stream is 3 s of ffmpeg's test picture, 12 pictures a second, of which every twelfth needs no other, in chunks of half a second; the
// track of sound is the first. ffmpeg -f lavfi -i testsrc2=size=64x36:rate=12 -f lavfi -i sine=frequency=330:sample_rate=48000 -t 3
// -map 1:a -map 0:v -c:v libx264 -preset ultrafast -tune zerolatency -crf 45 -pix_fmt yuv420p -g 12 -keyint_min 12 -sc_threshold 0
// -c:a aac -b:a 16k -ac 1 -bitexact -movflags +frag_keyframe+empty_moov+default_base_moof -frag_duration 500000 stream.mp4
func stream(tb testing.TB) []byte {
	tb.Helper()
	data, err := os.ReadFile("testdata/stream.mp4")
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func TestChunksAreReadAsTheyCome(t *testing.T) {
	data := stream(t)
	for name, from := range map[string]io.Reader{"at once": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data))} {
		r := NewReader(from)
		whole, err := r.Header()
		if err != nil {
			t.Fatal(name, err)
		}
		var end time.Duration
		for i := range 6 {
			c, err := r.Next()
			if err != nil {
				t.Fatal(name, err)
			}
			// The encoder's delay of sound is in the first chunk.
			if i == 0 && (c.Start != 0 || c.Duration < 500*time.Millisecond || c.Duration > 700*time.Millisecond) || i > 0 && (c.Duration-500*time.Millisecond).Abs() > time.Millisecond {
				t.Errorf("%s: chunk %d lasts %v from %v", name, i, c.Duration, c.Start)
			}
			if (c.Start-end).Abs() > time.Millisecond || c.Independent != (i%2 == 0) {
				t.Errorf("%s: chunk %d begins at %v, the one before ended at %v; independent: %v", name, i, c.Start, end, c.Independent)
			}
			end = c.Start + c.Duration
			whole = append(whole, c.Data...)
		}
		if !bytes.HasPrefix(data, whole) || string(data[len(whole)+4:len(whole)+8]) != "mfra" {
			t.Errorf("%s: the chunks are not what the stream consists of", name)
		}
	}
}

func TestStreamsThatEndAreToldFromStreamsThatBreakOff(t *testing.T) {
	data := stream(t)
	ends := []int{}
	for at := 0; at < len(data); at += int(binary.BigEndian.Uint32(data[at:])) {
		if kind := string(data[at+4 : at+8]); kind == "moof" || kind == "mfra" {
			ends = append(ends, at)
		}
	}
	for _, cut := range []int{ends[0], ends[3], ends[3] + 1, ends[3] + 9, ends[4] - 1} {
		r := NewReader(bytes.NewReader(data[:cut]))
		_, err := r.Header()
		for err == nil {
			_, err = r.Next()
		}
		if want := io.ErrUnexpectedEOF; slices.Contains(ends, cut) != (err == io.EOF) || err != io.EOF && !errors.Is(err, want) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func box(kind string, content ...byte) []byte {
	return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(8+len(content))), []byte(kind), content)
}

func TestStreamsThatAreNoneAreRefused(t *testing.T) {
	data := stream(t)
	head := bytes.Index(data, []byte("moof")) - 4
	for name, text := range map[string][]byte{
		"a page":                    []byte("<!DOCTYPE html><html>"),
		"a header without a track":  box("moov"),
		"a header that is too long": slices.Concat(binary.BigEndian.AppendUint32(nil, MaxHeader+1), []byte("moov")),
		"media alone":               slices.Concat(data[:head], box("mdat", 1)),
		"a fragment of no track":    slices.Concat(data[:head], box("moof")),
		"a chunk that is too long":  slices.Concat(data[:head], binary.BigEndian.AppendUint32(nil, MaxChunk+1), []byte("mdat")),
		"no duration": slices.Concat(data[:head], box("moof", box("traf", slices.Concat(
			box("tfhd", 0, 0, 0, 0, 0, 0, 0, 2), box("trun", 0, 0, 0, 0, 0, 0, 0, 0))...)...)),
		"many samples": slices.Concat(data[:head], box("moof", box("traf", slices.Concat(
			box("tfhd", 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 1), box("trun", 0, 0, 0, 0, 255, 255, 255, 255))...)...)),
	} {
		r := NewReader(bytes.NewReader(text))
		_, err := r.Header()
		if err == nil {
			_, err = r.Next()
		}
		if err == nil || err == io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReader: reading ends, with chunks within the bounds.
func FuzzReader(f *testing.F) {
	data := stream(f)
	f.Add(data)
	f.Add(data[:bytes.Index(data, []byte("mdat"))+4])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		all, err := r.Header()
		if err != nil {
			return
		}
		for {
			c, err := r.Next()
			if err != nil {
				break
			}
			if c.Duration <= 0 || c.Start < 0 || len(c.Data) > MaxChunk {
				t.Fatalf("a chunk of %v from %v, %d bytes", c.Duration, c.Start, len(c.Data))
			}
			all = append(all, c.Data...)
		}
		if len(all) > len(data) {
			t.Errorf("%d bytes of %d", len(all), len(data))
		}
	})
}
