package packaging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// BenchmarkAChangeOfALivePlaylist signs the segment that is new; the others stay, those of an hour and of twelve at 2 s.
func BenchmarkAChangeOfALivePlaylist(b *testing.B) {
	for _, hours := range []int{1, 12} {
		b.Run(fmt.Sprintf("hours=%d", hours), func(b *testing.B) { changeALivePlaylist(b, hours*1800) })
	}
}

func changeALivePlaylist(b *testing.B, kept int) {
	p := newPackager(b, nil)
	p.put("0.ts", content(1000, 3), time.Hour)
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
	n := 0
	add := func() {
		n++
		if err := os.Link(filepath.Join(p.dir, "0.ts"), filepath.Join(p.dir, fmt.Sprintf("%d.ts", n))); err != nil {
			b.Fatal(err)
		}
		list += fmt.Sprintf("#EXTINF:2,\n%d.ts\n", n)
	}
	for range kept {
		add()
	}
	for b.Loop() {
		b.StopTimer()
		add()
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
	p := newPackager(b, func(s *Settings) { s.Workers = 1 })
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
		p.anew()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(hashing), "x-sha256")
}

// BenchmarkCertifyATitle signs one and two hours of a title in six renditions, as leeway certify does; the files are in the page cache.
// x-sha256 is its time over that of reading the same files into SHA-256, as sha256sum does, in the same run, one goroutine each. heap-MB
// is the most that the heap held.
func BenchmarkCertifyATitle(b *testing.B) {
	const renditions, segments, kind = 6, 900, 300_000 // an hour of segments of 4 s; bytes by which the renditions differ
	for hours := 1; hours <= 2; hours++ {
		b.Run(fmt.Sprintf("hours=%d", hours), func(b *testing.B) {
			p := newPackager(b, func(s *Settings) { s.Workers = 1 })
			total := int64(0)
			for r := range renditions {
				data := content((r+1)*kind, byte(r))
				total += int64(hours * segments * len(data))
				p.title(r, hours*segments, data)
			}
			b.SetBytes(total)
			var hashing time.Duration
			most := uint64(0)
			for b.Loop() {
				stop := peak()
				p.whole(b)
				most = max(most, stop())
				b.StopTimer()
				started := time.Now()
				p.sha256sum("*.ts")
				hashing += time.Since(started)
				p.anew()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(hashing), "x-sha256")
			b.ReportMetric(float64(most)/1e6, "heap-MB")
		})
	}
}

// title writes a rendition: all of its segments are one file under many names.
func (p *packager) title(rendition, segments int, data []byte) {
	p.t.Helper()
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
	for i := range segments {
		name := fmt.Sprintf("%d-%d.ts", rendition, i)
		list += fmt.Sprintf("#EXTINF:4,\n%s\n", name)
		if i == 0 {
			p.put(name, data, time.Hour)
		} else if err := os.Link(filepath.Join(p.dir, fmt.Sprintf("%d-0.ts", rendition)), filepath.Join(p.dir, name)); err != nil {
			p.t.Fatal(err)
		}
	}
	p.put(fmt.Sprintf("%d.m3u8", rendition), []byte(list+"#EXT-X-ENDLIST\n"), time.Hour)
}

// sha256sum reads and hashes files whose names match.
func (p *packager) sha256sum(pattern string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, pattern))
	if err != nil {
		p.t.Fatal(err)
	}
	sum, buffer := sha256.New(), make([]byte, 1<<20)
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			p.t.Fatal(err)
		}
		sum.Reset()
		_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{file}, buffer)
		if err := errors.Join(err, file.Close()); err != nil {
			p.t.Fatal(err)
		}
		sum.Sum(nil)
	}
}

// whole signs all playlists of the folder.
func (p *packager) whole(b *testing.B) {
	files, err := p.Playlists()
	if err != nil {
		b.Fatal(err)
	}
	var plans []*Plan
	for _, file := range files {
		plan, err := p.Plan(file)
		if err != nil {
			b.Fatal(err)
		}
		plans = append(plans, plan)
	}
	for _, plan := range plans {
		if _, err := p.Finish(b.Context(), plan); err != nil {
			b.Fatal(err)
		}
	}
}

// peak looks at what the heap holds until stop is called, which returns the most that was seen.
func peak() (stop func() uint64) {
	ended, most := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for seen := uint64(0); ; {
			metrics.Read(sample)
			seen = max(seen, sample[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-ended:
				most <- seen
				return
			}
		}
	}()
	return func() uint64 {
		close(ended)
		return <-most
	}
}
