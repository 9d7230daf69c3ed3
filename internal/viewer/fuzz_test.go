package viewer

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// FuzzPlaylist: whatever an origin sends, reading it ends, and what is read can be played: in order, without overlaps.
func FuzzPlaylist(f *testing.F) {
	for _, text := range []string{
		"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000,AUDIO=\"a\"\nlow/i.m3u8\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"a.m3u8\"\n",
		"#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MAP:URI=\"i.mp4\",BYTERANGE=\"800\"\n#EXTINF:6.0,\n#EXT-X-BYTERANGE:1000@800\na.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:5\na.mp4\n#EXT-X-ENDLIST\n",
		"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n../a.ts?x=1\n#EXT-X-DISCONTINUITY\n#EXTINF:0.1,\nhttp://other.test/b.ts\n#EXT-X-ENDLIST\n",
	} {
		f.Add([]byte(text), 1.0)
		f.Add([]byte(text), 8.0)
	}
	f.Fuzz(func(t *testing.T, data []byte, speed float64) {
		if !(speed > 0.01 && speed <= 1000) {
			return
		}
		video, _, list, err := parsePlaylist("http://video.test/film/master.m3u8", nil, data, speed)
		if err != nil {
			return
		}
		if len(video) == 0 && (list == nil || len(list.entries) == 0 && !list.live) {
			t.Error("neither renditions nor segments, and no error")
		}
		if list == nil {
			return
		}
		playable(t, list.entries)
	})
}

// playable fails the test unless segments are in order, without overlaps.
func playable(t *testing.T, list []entryRef) {
	t.Helper()
	for i, e := range list {
		if e.Duration <= 0 || e.Start < 0 || i > 0 && (e.Start < list[i-1].Start+list[i-1].Duration || e.sequence <= list[i-1].sequence) {
			t.Fatalf("segment %d of %d: %+v", i, len(list), e)
		}
		if e.Ranged && (e.First < 0 || e.Last < e.First) {
			t.Fatalf("segment %d has the range %d-%d", i, e.First, e.Last)
		}
	}
}

// FuzzMPD: the same of an MPD, and of an index that it has.
func FuzzMPD(f *testing.F) {
	for _, text := range []string{
		fmt.Sprintf(filmMPD, 80, videoSet(0, `duration="4"`, 400_000, 1_500_000)),
		`<MPD><Period duration="PT4S">` + videoSet(0, `duration="3"`, 1) + `</Period><Period duration="PT4S">` + videoSet(9, `duration="1"`, 1, 2) + `</Period></MPD>`,
		`<MPD type="dynamic" availabilityStartTime="2027-01-01T00:00:00Z"><Period start="PT0S">` + videoSet(0, `duration="60060" timescale="30000"`, 1) + `</Period></MPD>`,
		`<MPD><Period duration="PT4S"><AdaptationSet mimeType="audio/mp4"><Representation id="a"><SegmentBase indexRange="1-3"/></Representation></AdaptationSet></Period></MPD>`,
	} {
		f.Add([]byte(text), index([]int{5, 6}, 2000, 1000), 1.0)
		f.Add([]byte(text), index([]int{5, 6}, 2000), 8.0)
	}
	at := &url.URL{Scheme: "http", Host: "film.test", Path: mpdPath}
	f.Fuzz(func(t *testing.T, data, sidx []byte, speed float64) {
		if !(speed > 0.01 && speed <= 1000) {
			return
		}
		doc, err := mpd.Parse(data, at)
		if err != nil {
			return
		}
		m, err := listMPD(doc, at, worldBegin, speed)
		if err != nil {
			return
		}
		for _, kind := range []string{"video", "audio"} {
			var first []entryRef
			levels := levelsOf(m, kind, at.String(), speed)
			sets := setsOf(m, kind, levels)
			for _, l := range levels {
				r := representationOf(sets, l, speed)
				for i := range r.periods {
					if in := &r.periods[i]; in.Index != nil && r.take(in, sidx) != nil {
						return
					}
				}
				list := r.entries(timeline{speed: speed, zero: m.Start})
				playable(t, list)
				if first == nil {
					first = list
				}
				list, _ = alike(list, first)
				playable(t, list)
			}
		}
	})
}
