package packaging

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
)

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
