package idlebench

import (
	"io"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/benchtest"
	"github.com/leeway-video/leeway/internal/rtclink"
)

// TestMain makes the test binary a side where the bench asks for one.
func TestMain(m *testing.M) { benchtest.Main(m, Bench) }

func TestLinksOpenBetweenTheSides(t *testing.T) {
	p := &pair{ready: make(chan int, 16), usages: map[string]chan usage{}, failed: make(chan error, 2)}
	defer p.stop()
	if err := p.start(&bench.Run{Log: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if err := p.open(t.Context(), 0, 1); err != nil {
		t.Fatal(err)
	}
	before, err := p.usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.open(t.Context(), 1, 4); err != nil {
		t.Fatal(err)
	}
	after, err := p.usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{offerer, answerer} {
		if after[side].RSS <= 0 || after[side].Goroutines <= before[side].Goroutines || after[side].Traffic.SentBytes <= before[side].Traffic.SentBytes {
			t.Errorf("%s: before %+v, with three links more %+v", side, before[side], after[side])
		}
	}
}

func TestFiguresAreOfTheSideThatNeedsMore(t *testing.T) {
	const n = 9
	u := func(rss int64, goroutines int, sent, received int64) usage {
		return usage{RSS: rss, Goroutines: goroutines, Traffic: rtclink.Traffic{SentPackets: sent, SentBytes: 100 * sent, ReceivedPackets: received, ReceivedBytes: 100 * received}}
	}
	before := map[string]usage{offerer: u(1000, 20, 0, 0), answerer: u(1000, 30, 0, 0)}
	begin := map[string]usage{offerer: u(0, 0, 50, 50), answerer: u(0, 0, 50, 50)}
	end := map[string]usage{offerer: u(10_000, 110, 350, 650), answerer: u(19_000, 66, 650, 350)}
	got := figures(before, begin, end, n)
	for name, want := range map[string]float64{
		"rss_bytes_per_link": 2000, "rss_bytes_per_link_offerer": 1000, "rss_bytes_per_link_answerer": 2000,
		"goroutines_per_link": 10, "goroutines_per_link_offerer": 10, "goroutines_per_link_answerer": 4,
		"packets_per_second_per_link": 2, "bits_per_second_per_link": 2 * (100 + headers) * 8,
	} {
		if got[name] != want {
			t.Errorf("%s: %v, expected %v", name, got[name], want)
		}
	}
}
