package packaging

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkAChangeOfALivePlaylist signs the segment that is new; 1,800 others stay, as in an hour at 2 s.
func BenchmarkAChangeOfALivePlaylist(b *testing.B) {
	p := newPackager(b, nil)
	const kept = 1800
	p.put("0.ts", content(1000, 3), time.Hour)
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
	for i := range kept {
		list += fmt.Sprintf("#EXTINF:2,\n0.ts?%d\n", i)
	}
	n := kept
	for b.Loop() {
		b.StopTimer()
		list += fmt.Sprintf("#EXTINF:2,\n0.ts?%d\n", n)
		n++
		p.put("a.m3u8", []byte(list), time.Hour)
		b.StartTimer()
		if _, _, err := p.Certify(context.Background(), "a.m3u8"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(p.verified.Load())/float64(b.N), "verified/op")
}

// BenchmarkCertify signs a playlist whose files are in the page cache. x-sha256 is its time over that of SHA-256 of the same
// bytes in the same run.
func BenchmarkCertify(b *testing.B) {
	p := newPackager(b, func(s *Settings) { s.Again, s.Workers = true, 1 })
	const files, size = 40, 2_500_000
	data := content(size, 3)
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
	for i := range files {
		p.put(fmt.Sprintf("%d.ts", i), data, time.Hour)
		list += fmt.Sprintf("#EXTINF:4,\n%d.ts\n", i)
	}
	p.put("a.m3u8", []byte(strings.TrimSpace(list)+"\n#EXT-X-ENDLIST\n"), time.Hour)
	b.SetBytes(files * size)
	b.ReportAllocs()
	var hashing time.Duration
	for b.Loop() {
		if _, _, err := p.Certify(context.Background(), "a.m3u8"); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		started := time.Now()
		for range files {
			sha256.Sum256(data)
		}
		hashing += time.Since(started)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(hashing), "x-sha256")
}
