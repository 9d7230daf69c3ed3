package playlist

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const masterText = `#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="audio/en.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=800000,AUDIO="a",RESOLUTION=640x360
low.m3u8?session=5
#EXT-X-STREAM-INF:BANDWIDTH=2400000,AUDIO="a",NAME="high"
/high.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i.m3u8"
`

const mediaText = `#EXTM3U
#EXT-X-TARGETDURATION:6
#EXT-X-MAP:URI="all.mp4",BYTERANGE="720"
#EXTINF:6,
#EXT-X-BYTERANGE:1000@720
all.mp4
#EXTINF:5.5,
#EXT-X-BYTERANGE:500
all.mp4
#EXT-X-GAP
#EXTINF:4,
#EXT-X-BYTERANGE:7
other.mp4
#EXT-X-MAP:URI="i.mp4",BYTERANGE="80@20"
#EXTINF:3,
1.m4s
#EXT-X-MAP:URI="i.mp4",BYTERANGE="80@20"
#EXTINF:3,
2.m4s
`

func TestRead(t *testing.T) {
	master, media, err := Read([]byte(masterText))
	want := &Master{
		Variants: []Variant{
			{URI: "low.m3u8?session=5", Resolution: "640x360", Audio: "a", Bandwidth: 800_000},
			{URI: "/high.m3u8", Name: "high", Audio: "a", Bandwidth: 2_400_000},
		},
		Alternatives: []Alternative{{Type: "AUDIO", Group: "a", Name: "en", URI: "audio/en.m3u8"}},
	}
	if err != nil || media != nil || !reflect.DeepEqual(master, want) {
		t.Errorf("master: %+v, %+v, %v", master, media, err)
	}
	all, other := &Object{"all.mp4", 0, 720}, &Object{"i.mp4", 20, 80}
	segments := []Segment{
		{Object: Object{"all.mp4", 720, 1000}, Init: all, Duration: 6}, {Object: Object{"all.mp4", 1720, 500}, Init: all, Duration: 5.5},
		{Object: Object{"other.mp4", 0, 7}, Init: all, Duration: 4, Gap: true}, {Object: Object{"1.m4s", 0, 0}, Init: other, Duration: 3}, {Object: Object{"2.m4s", 0, 0}, Init: other, Duration: 3},
	}
	for _, end := range []string{"", "#EXT-X-ENDLIST\n"} {
		master, media, err = Read([]byte(mediaText + end))
		if err != nil || master != nil || media.Live != (end == "") || media.Target != 6*time.Second || !reflect.DeepEqual(media.Segments, segments) {
			t.Fatalf("media: %+v, %+v, %v", master, media, err)
		}
		if s := media.Segments; s[0].Init != s[2].Init || s[3].Init != s[4].Init || s[2].Init == s[3].Init {
			t.Error("segments that need the same initialization segment do not share it")
		}
	}
}

// TestAClipThatBeginsAgain is listed from its beginning, as the slate of an ad break is: no offset is not the offset 0.
func TestAClipThatBeginsAgain(t *testing.T) {
	_, media, err := Read([]byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-BYTERANGE:100@0\n#EXTINF:4,\nslate.ts\n#EXT-X-BYTERANGE:100@0\r\n#EXTINF:4,\nslate.ts\n#EXT-X-BYTERANGE:50\r\n#EXTINF:4,\nslate.ts\n"))
	if err != nil {
		t.Fatal(err)
	}
	var ranges []Object
	for _, s := range media.Segments {
		ranges = append(ranges, s.Object)
	}
	if want := []Object{{"slate.ts", 0, 100}, {"slate.ts", 0, 100}, {"slate.ts", 100, 50}}; !slices.Equal(ranges, want) {
		t.Errorf("%v, want %v", ranges, want)
	}
}

// TestReadALivePlaylist: numbers, how far behind the end to stay, and the clock, which is counted on and not over a discontinuity.
func TestReadALivePlaylist(t *testing.T) {
	_, media, err := Read([]byte(`#EXTM3U
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:41
#EXT-X-SERVER-CONTROL:HOLD-BACK=6.5
#EXTINF:2,
a.ts
#EXT-X-PROGRAM-DATE-TIME:2026-11-24T08:00:00.250Z
#EXTINF:2,
b.ts
#EXTINF:1.5,
c.ts
#EXT-X-DISCONTINUITY
#EXTINF:2,
d.ts
`))
	if err != nil {
		t.Fatal(err)
	}
	if !media.Live || media.Sequence != 41 || media.HoldBack != 6500*time.Millisecond {
		t.Errorf("%+v", media)
	}
	at := time.Date(2026, 11, 24, 8, 0, 0, 250_000_000, time.UTC)
	for i, want := range []time.Time{{}, at, at.Add(2 * time.Second), {}} {
		if got := media.Segments[i].At; !got.Equal(want) {
			t.Errorf("segment %d begins at %v, want %v", i, got, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	long := "#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + strings.Repeat("#EXTINF:4,\na\n", MaxSegments)
	if _, media, err := Read([]byte(long)); err != nil || len(media.Segments) != MaxSegments {
		t.Errorf("a playlist of %d segments: %v", MaxSegments, err)
	}
	for text, want := range map[string]string{long + "#EXTINF:4,\na\n": "65537 segments", "<html>": "", "": ""} {
		if _, _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// TestWhatIsNoDurationCountsForNothing: no sum and no clock runs over. The segment is listed as ever, since the player says what it plays.
func TestWhatIsNoDurationCountsForNothing(t *testing.T) {
	for _, text := range []string{"nan", "1e300", "-inf", "1e999", "-4", "86401", "x", ""} {
		_, m, err := Read([]byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PROGRAM-DATE-TIME:2026-11-24T08:00:00Z\n#EXTINF:" + text + ",\na.ts\n#EXTINF:4,\nb.ts\n"))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if a, b := m.Segments[0], m.Segments[1]; a.Duration != 0 || a.URI != "a.ts" || b.Duration != 4 || !b.At.Equal(a.At) || m.Target != 4*time.Second {
			t.Errorf("%q: %+v, then %+v", text, a, b)
		}
	}
	for text, want := range map[string]time.Duration{"18446744073709551615": 24 * time.Hour, "18446744074": 24 * time.Hour, "99999999999999999999": 4 * time.Second, "-1": 4 * time.Second, "6": 6 * time.Second} {
		_, m, err := Read([]byte("#EXTM3U\n#EXT-X-TARGETDURATION:" + text + "\n#EXTINF:4,\na.ts\n"))
		if err != nil || m.Target != want {
			t.Errorf("target %s: %+v, %v", text, m, err)
		}
	}
}

// TestTagsThatAreNotReadDoNoHarm: what they name is read as without them.
func TestTagsThatAreNotReadDoNoHarm(t *testing.T) {
	const segments = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n#EXTINF:4,\nb.ts\n"
	_, want, err := Read([]byte(segments))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a key that no segment follows":        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=NONE\nx\n" + segments,
		"an advert that no segment follows":    "#EXTM3U\n#EXT-X-DATERANGE:ID=\"1\",SCTE35-OUT=0xFC00\nx\n" + segments,
		"an advert announced at the live edge": segments + "#EXT-X-DATERANGE:ID=\"1\",START-DATE=\"2026-11-29T12:00:00Z\",SCTE35-OUT=0xFC00\n",
		"parts that nothing is said of":        segments + "#EXT-X-PART:DURATION=1,URI=\"c.ts\"\n",
	} {
		if _, m, err := Read([]byte(text)); err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// TestPlaylistsTakeNoMoreThanTheirLength: the library would go through all parts for each, and give each variant all of its renditions.
func TestPlaylistsTakeNoMoreThanTheirLength(t *testing.T) {
	parts := "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n" + strings.Repeat("#EXT-X-PART:DURATION=1,URI=\"a\"\n", 20_000)
	if _, m, err := Read([]byte(parts)); err != nil || len(m.Segments) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if n := testing.AllocsPerRun(1, func() { _, _, _ = Read([]byte(parts)) }); n > 1000 {
		t.Errorf("%.0f allocations for 20,000 parts", n)
	}
	master := func(variants, renditions int) string {
		text := "#EXTM3U\n"
		for i := range renditions {
			text += fmt.Sprintf("#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"%d\",URI=\"%d.m3u8\"\n", i, i)
		}
		return text + strings.Repeat("#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nv.m3u8\n", variants)
	}
	if m, _, err := Read([]byte(master(64, 1024))); err != nil || len(m.Variants) != 64 || len(m.Alternatives) != 1024 {
		t.Errorf("64 variants with 1,024 renditions: %v", err)
	}
	if _, _, err := Read([]byte(master(1000, 1000))); err == nil || !strings.Contains(err.Error(), "1000 variants") {
		t.Errorf("1,000 variants with 1,000 renditions: %v", err)
	}
}

// FuzzRead: reading ends, with a master playlist, a media playlist or an error, and within the bound.
func FuzzRead(f *testing.F) {
	f.Add([]byte(masterText))
	f.Add([]byte(mediaText))
	f.Add([]byte(lowLatencyText))
	f.Add([]byte("#EXTM3U\n#EXT-X-KEY:METHOD=NONE\nx\n"))
	f.Add([]byte("#EXTM3U\n#EXT-X-TARGETDURATION:18446744073709551615\n#EXTINF:1e300,\na\n#EXTINF:nan,\nb\n#EXTINF:-1e999,\nc\n"))
	f.Add([]byte(lowLatencyHead + "#EXT-X-PART:DURATION=0.5,URI=\"a\"\r\n#EXTINF\n#EXTINF:\n#EXT-X-PART:DURATION=0.5,URI=\"#\"\nb\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		kept := slices.Clone(data)
		master, media, err := Read(data)
		if (master != nil) == (media != nil) && err == nil || err != nil && (master != nil || media != nil) {
			t.Fatalf("%v, %v, %v", master, media, err)
		}
		if media != nil && len(media.Segments) > MaxSegments {
			t.Errorf("%d segments", len(media.Segments))
		}
		if media != nil {
			all := time.Duration(0)
			for _, s := range media.Segments {
				if all += time.Duration(s.Duration * float64(time.Second)); !(s.Duration >= 0) || all < 0 {
					t.Errorf("a duration of %v s, %v in all", s.Duration, all)
				}
			}
			if media.Target < 0 || media.Target > maxSeconds*time.Second || media.HoldBack < 0 {
				t.Errorf("target %v, %v behind the end", media.Target, media.HoldBack)
			}
		}
		if media != nil && media.LowLatency != nil {
			sequence, part := media.Next()
			parts := 0
			for _, s := range media.Segments {
				parts += len(s.Parts)
			}
			if sequence != media.Sequence+int64(len(media.Segments)) || parts+part > MaxParts {
				t.Errorf("next is part %d of %d; %d segments from %d, %d parts", part, sequence, len(media.Segments), media.Sequence, parts)
			}
		}
		if !slices.Equal(kept, data) {
			t.Error("the text that was read has changed")
		}
	})
}
