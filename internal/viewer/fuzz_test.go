package viewer

import "testing"

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
		for i, e := range list.entries {
			if e.Duration <= 0 || e.Start < 0 || i > 0 && (e.Start < list.entries[i-1].Start+list.entries[i-1].Duration || e.sequence <= list.entries[i-1].sequence) {
				t.Fatalf("segment %d of %d: %+v", i, len(list.entries), e)
			}
			if e.Ranged && (e.First < 0 || e.Last < e.First) {
				t.Fatalf("segment %d has the range %d-%d", i, e.First, e.Last)
			}
		}
	})
}
