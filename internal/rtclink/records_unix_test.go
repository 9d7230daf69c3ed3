//go:build unix

package rtclink

import (
	"testing"

	"github.com/leeway-video/leeway/internal/procstat"
)

// BenchmarkRecords is a link with records of ours and with pion's: the processor time of both ends for a gigabyte of data and for
// each link that opens, and what each side of an idle link holds, heap and stacks.
func BenchmarkRecords(b *testing.B) {
	for _, way := range []struct {
		name string
		pion bool
	}{{"ours", false}, {"pion", true}} {
		host := func(b *testing.B, own bool) *Host {
			h, err := Listen(Config{Listen: "127.0.0.1:0", SocketPerLink: own, PionRecords: way.pion})
			if err != nil {
				b.Fatal(err)
			}
			return h
		}
		b.Run(way.name+"/data", func(b *testing.B) {
			seed, viewer := host(b, false), host(b, true)
			defer seed.Close()   //nolint:errcheck // the benchmark is over
			defer viewer.Close() //nolint:errcheck // the benchmark is over
			sender, receiver := newEnd(), newEnd()
			all, got := make(chan struct{}), int64(0)
			receiver.data = func(m []byte) {
				if got += int64(len(m)); got == int64(b.N)*benchMessage {
					close(all)
				}
			}
			connect(b, viewer, seed, receiver, sender)
			message, before := make([]byte, benchMessage), procstat.CPU()
			b.SetBytes(benchMessage)
			b.ResetTimer()
			for range b.N {
				for !sender.link.SendData(message) {
					<-sender.drained
				}
			}
			<-all
			b.ReportMetric((procstat.CPU()-before).Seconds()*1e9/float64(b.N*benchMessage), "cpu-s/GB")
		})
		b.Run(way.name+"/idle", func(b *testing.B) {
			const links = 100
			for range b.N {
				seed, viewer := host(b, false), host(b, true)
				goroutines, bytes := cost()
				before := procstat.CPU()
				for range links {
					connectQuiet(b, viewer, seed)
				}
				opened := procstat.CPU() - before
				for _, h := range []*Host{seed, viewer} {
					for l := range h.links {
						settled(b, l)
					}
				}
				more, held := cost()
				b.ReportMetric(float64(held-bytes)/(2*links), "B/side")
				b.ReportMetric(float64(more-goroutines)/(2*links), "goroutines/side")
				b.ReportMetric(opened.Seconds()*1e3/links, "cpu-ms/opening")
				_, _ = viewer.Close(), seed.Close()
			}
		})
	}
}
