package swarmbench

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestADownloadLastsAsLongAsItIsMeantTo(t *testing.T) {
	defer goleak.VerifyNone(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := serveMirror(l)
	dial := func() net.Conn {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if n, err := drain(context.Background(), dial(), 100*time.Millisecond); err != nil || n == 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := drain(ctx, dial(), time.Hour); err != nil {
		t.Errorf("a run that is given up: %v", err)
	}
	c := dial()
	if err := m.close(); err != nil {
		t.Error(err)
	}
	if _, err := drain(context.Background(), c, time.Hour); err == nil {
		t.Error("a server that goes away is no error")
	}
	if err := (*mirror)(nil).close(); err != nil {
		t.Error(err)
	}
}

func TestADownloadIsComparedWithTheOneBesideNoPrefetch(t *testing.T) {
	plans := scenario{viewers: 3, browsers: 1, watch: 90 * time.Second, download: time.Minute}.downloaders()
	last := plans[2]
	if !last.Browser || plans[0].Browser || last.Arrive+last.LeaveAfter > plans[0].Arrive+plans[0].LeaveAfter ||
		last.DownloadAfter+last.DownloadFor > last.LeaveAfter {
		t.Errorf("%+v", plans)
	}
	swarm := func(downloaded, peer, origin int64) Swarm {
		return Swarm{Outcomes: []Outcome{{Plan: plans[0], Stats: signal.Stats{Stalls: 7}}, {Plan: last, Downloaded: downloaded, Stats: signal.Stats{
			Stalls: 1, PlayedMs: 1000, PlayedBits: 2_000_000, PrefetchedBytes: 30, Promotions: 2, Bytes: map[string]int64{"peer": peer, "origin": origin},
		}}}}
	}
	got := compareDownloads(swarm(114_000_000, 60, 40), swarm(112_500_000, 0, 100), swarm(120_000_000, 50, 50))
	for name, want := range map[string]float64{
		"download_rate": 15.2, "download_rate_without_prefetch": 16, "download_rate_origin_only": 15, "download_kept_ratio": 0.95,
		"downloader_stalls": 1, "downloader_prefetched_bytes": 30, "downloader_promotions": 2, "downloader_offload_ratio": 0.6, "downloader_bitrate_origin_only": 2,
	} {
		if got[name] != want {
			t.Errorf("%s: %v instead of %v", name, got[name], want)
		}
	}
	for _, f := range declaredDownloads(beside) {
		if _, ok := got[f.Name]; !ok {
			t.Errorf("%s is declared and not measured", f.Name)
		}
	}
	if r := compareDownloads(Swarm{}, Swarm{}, Swarm{})["download_rate"]; r != 0 {
		t.Errorf("no machine downloaded %v", r)
	}
}
