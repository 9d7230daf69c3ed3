package packaging

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRangesThatOverlapAreReadFewTimes: a playlist of some hundred kilobytes names thousands of ranges, or of queries, of one file.
func TestRangesThatOverlapAreReadFewTimes(t *testing.T) {
	const size, names = 400_000, 5000
	for name, line := range map[string]func(i int) string{
		"ranges":  func(i int) string { return fmt.Sprintf("#EXT-X-BYTERANGE:%d@%d\n#EXTINF:4,\nall.mp4\n", size-i, i) },
		"queries": func(i int) string { return fmt.Sprintf("#EXTINF:4,\nall.mp4?n=%d\n", i) },
	} {
		p := newPackager(t, nil)
		p.put("all.mp4", content(size, 3), time.Hour)
		var text strings.Builder
		text.WriteString("#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:4\n")
		for i := range names {
			text.WriteString(line(i))
		}
		text.WriteString("#EXT-X-ENDLIST\n")
		p.put("all.m3u8", []byte(text.String()), time.Hour)
		plan := p.certify("all.m3u8")
		if p.Read() > mostReads*size || p.Read() == 0 || plan.Unsaid == 0 {
			t.Errorf("%s: a playlist of %d bytes has %d read and hashed; %d segments are signed, %d are not", name, text.Len(), p.Read(), plan.Segments(), plan.Unsaid)
		}
	}
}

// TestASegmentThatSaysNoDurationIsSigned: the life of the certificates is that of the durations that are some.
func TestASegmentThatSaysNoDurationIsSigned(t *testing.T) {
	for _, duration := range []string{"1e300", "nan", "-1e300"} {
		p := newPackager(t, nil)
		p.put("a.ts", content(1000, 3), time.Minute)
		p.put("live.m3u8", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:"+duration+",\na.ts\n#EXTINF:4,\na.ts\n"), 0)
		p.certify("live.m3u8")
		if c := p.list("live.m3u8")["/media/bbb/a.ts"]; c == nil || c.NotAfter.Sub(c.IssuedAt) != 4*time.Second+liveGrace {
			t.Errorf("%s: %+v", duration, c)
		}
	}
}
