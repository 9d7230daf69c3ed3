package playlist

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
)

func testSite(t testing.TB) *site.Site {
	t.Helper()
	s, err := site.New(site.Config{
		Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: "https://origin.example.com",
		Key: site.KeyRule{IgnoreQuery: []string{"session"}, Path: "/t/{}/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestListNamesSegmentsAsViewersDo(t *testing.T) {
	m, r, err := List(testSite(t), "/media/film/master.m3u8", nil, []byte(`#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="audio/en.m3u8"
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="en",URI="subs/en.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=800000,AUDIO="a",SUBTITLES="s"
low.m3u8?session=5
#EXT-X-STREAM-INF:BANDWIDTH=2400000,AUDIO="a",SUBTITLES="s"
https://video.example.com/t/SECRET/media/film/high.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=9000000,AUDIO="a",SUBTITLES="s"
https://elsewhere.example.net/ultra.m3u8
`), time.Time{})
	want := []string{"/media/film/low.m3u8?session=5", "/t/media/film/high.m3u8", "/media/film/audio/en.m3u8"}
	if err != nil || r != nil || !slices.Equal(m.Paths, want) || m.Bitrate != 9_000_000 {
		t.Fatalf("master: %+v, %v", m, err)
	}
	m, r, err = List(testSite(t), "/media/film/low.m3u8", nil, []byte(`#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:6
#EXT-X-MAP:URI="all.mp4",BYTERANGE="720@0"
#EXTINF:6,
#EXT-X-BYTERANGE:1000@720
all.mp4
#EXTINF:6,
#EXT-X-BYTERANGE:500
all.mp4
#EXT-X-MAP:URI="/ads/init.mp4"
#EXTINF:3,
../ads/1.m4s?session=9&v=2#t
#EXTINF:3,
https://elsewhere.example.net/2.m4s
#EXT-X-ENDLIST
`), time.Time{})
	if err != nil || m != nil || r.Live || r.Duration != 18*time.Second {
		t.Fatalf("media: %+v, %v", r, err)
	}
	names := []segment.Name{
		"/media/film/all.mp4#0-719", "/media/film/all.mp4#720-1719", "/media/film/all.mp4#1720-2219", "/ads/init.mp4", "/media/ads/1.m4s?v=2",
	}
	for i, l := range r.Segments {
		if i >= len(names) || l.Name != names[i] {
			t.Errorf("segment %d is %q", i, l.Name)
		}
	}
	if len(r.Segments) != len(names) || r.Segments[4].Path != "/media/ads/1.m4s?session=9&v=2" {
		t.Errorf("%d segments; the query that the key drops is still asked for: %+v", len(r.Segments), r.Segments)
	}
}

// TestLiveSegmentsSayWhenTheyWereMade, where their playlist has a clock: initialization segments and films say nothing.
func TestLiveSegmentsSayWhenTheyWereMade(t *testing.T) {
	const text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXT-X-PROGRAM-DATE-TIME:2026-11-24T08:00:00Z\n#EXTINF:4,\na.ts\n" +
		"#EXT-X-GAP\n#EXTINF:4,\nb.ts\n#EXTINF:1.5,\nc.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:4,\nd.ts\n"
	at := time.Date(2026, 11, 24, 8, 0, 4, 0, time.UTC).UnixMilli()
	for end, want := range map[string][]int64{"": {0, at, at + 5500, 0}, "#EXT-X-ENDLIST\n": {0, 0, 0, 0}} {
		_, r, err := List(testSite(t), "/media/live/index.m3u8", nil, []byte(text+end), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		var made []int64
		for _, l := range r.Segments {
			made = append(made, l.Made)
		}
		if !slices.Equal(made, want) {
			t.Errorf("with end %q: %d, want %d", end, made, want)
		}
	}
}

// TestALongPlaylistLastsAsLongAsItSays: what is no duration does not make the sum one that is none.
func TestALongPlaylistLastsAsLongAsItSays(t *testing.T) {
	_, r, err := List(testSite(t), "/media/live/index.m3u8", nil, []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:1e300,\na.ts\n#EXTINF:nan,\nb.ts\n"+strings.Repeat("#EXTINF:86400,\nc.ts\n", MaxSegments-2)), time.Time{})
	if err != nil || len(r.Segments) != MaxSegments || r.Duration != (MaxSegments-2)*24*time.Hour {
		t.Errorf("%v, %v", r.Duration, err)
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte("#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n#EXT-X-BYTERANGE:9@1\na.ts\n"))
	f.Add([]byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n"))
	f.Add([]byte(lowLatencyText))
	s := testSite(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, r, err := List(s, "/a/b.m3u8", nil, b, time.Time{})
		if err != nil || r == nil {
			return
		}
		if r.Duration < 0 || r.Target < 0 {
			t.Errorf("%v in all, %v the longest", r.Duration, r.Target)
		}
		for _, l := range r.Segments {
			if l.Name == "" || l.Path == "" || l.Path[0] != '/' || l.Ranged && (l.First < 0 || l.Last < l.First) {
				t.Errorf("listed %+v", l)
			}
		}
		if r.Parts != nil {
			for _, p := range r.Parts.Listed {
				if p.Name == "" || p.Path == "" || p.Path[0] != '/' || p.Ranged && (p.First < 0 || p.Last < p.First) {
					t.Errorf("listed %+v", p)
				}
			}
		}
	})
}
