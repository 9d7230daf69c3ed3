package transfer_test

import (
	"syscall"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// BenchmarkLanes fetches a segment of 2 MiB in the background and in the foreground, in turn, over a link within one process,
// and prints the processor time of a byte of the background over that of the foreground (both ends), besides both. On a link
// without delay the controller has a few messages under way at a time: it is the dearest place for acks and timers. What a path has
// them cost tells `leeway-lab bench transfer --case lane`.
func BenchmarkLanes(b *testing.B) {
	asks, _ := connect(b)
	var used [2]float64
	for _, lane := range []peer.Lane{peer.Foreground, peer.Background} {
		asks.fetch(lane) // what is made once is no cost of a byte
	}
	b.SetBytes(2 * film.target.Certificate.Length)
	for b.Loop() {
		for _, lane := range []peer.Lane{peer.Foreground, peer.Background} {
			before := processorTime(b)
			asks.fetch(lane)
			used[lane] += processorTime(b) - before
		}
	}
	for lane, name := range map[peer.Lane]string{peer.Foreground: "foreground-ns/B", peer.Background: "background-ns/B"} {
		b.ReportMetric(used[lane]/float64(b.N)/float64(film.target.Certificate.Length), name)
	}
	b.ReportMetric(used[peer.Background]/used[peer.Foreground], "×foreground")
	if n := asks.wrong.Load(); n > 0 {
		b.Errorf("%d wrong pieces", n)
	}
}

// processorTime is what this process has used, in ns.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
